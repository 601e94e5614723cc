/// Appending: claim, copy, publish. The committer is only woken, never waited for, unless the ring is full or the caller
/// asked for durability.
#include <algorithm>
#include <cstring>
#include <vector>

#include "log/log_core.h"

namespace tier {
namespace {

using log_format::kFramePrefix;
using log_format::store_u32;

constexpr int kSpins = 64;
constexpr int kYields = 16;
constexpr Duration kParkMost = 500us;

void put_frame(std::byte* at, ByteSpan record) noexcept {
  store_u32(at, static_cast<std::uint32_t>(record.size()));
  if (!record.empty()) std::memcpy(at + kFramePrefix, record.data(), record.size());
}

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

Result<Sequence> LogCore::append(ByteSpan record) {
  TIER_TRY(const std::uint64_t sequence, append_one(record));
  if (options_.durability == Durability::kSync) [[unlikely]]
    TIER_CHECK(make_durable(sequence + 1, true, Deadline::never()));
  return Sequence{sequence};
}

Result<Sequence> LogCore::append_durable(ByteSpan record) {
  TIER_TRY(const std::uint64_t sequence, append_one(record));
  TIER_CHECK(make_durable(sequence + 1, true, Deadline::never()));
  return Sequence{sequence};
}

Result<std::uint64_t> LogCore::append_one(ByteSpan record) {
  if (record.size() > inline_most_) [[unlikely]] {
    if (read_only_ || record.size() > options_.max_record.value)
      return too_large(record.size(), options_.max_record.value, "record");
    std::byte prefix[kFramePrefix];
    store_u32(prefix, static_cast<std::uint32_t>(record.size()));
    const ByteSpan parts[] = {prefix, record};
    RingStub stub{parts, static_cast<std::uint32_t>(kFramePrefix + record.size()), 1};
    return append_stub(stub);
  }
  const auto bytes = static_cast<std::uint32_t>(kFramePrefix + record.size());
  Ring::Claim claim;
  TIER_CHECK(this->claim(1, bytes, claim));
  put_frame(ring_->bytes_at(claim.position), record);
  const std::uint64_t sequence = ring_->full_sequence(claim);
  ring_->publish(sequence, bytes, 0);
  published(claim);
  return sequence;
}

Result<Sequence> LogCore::append_batch(std::span<const ByteSpan> records) {
  if (records.empty()) return Status(Code::kInvalid, "a batch has at least one record");
  std::uint64_t payload = 0;
  for (const ByteSpan& r : records) payload += r.size();
  if (payload > options_.max_record.value) return too_large(payload, options_.max_record.value, "batch");
  if (read_only_) return refusal();
  // Half the slots, so that a batch always fits in an empty ring; half a segment, so that its block always fits in one.
  const std::uint64_t most =
      std::min<std::uint64_t>(ring_->slots() / 2, options_.segment_size.value / 4 / kFramePrefix);
  if (records.size() > most) return too_large(records.size(), most, "batch, in records,");

  const auto bytes = static_cast<std::uint32_t>(payload + kFramePrefix * records.size());
  const auto count = static_cast<std::uint32_t>(records.size());
  std::uint64_t sequence = 0;
  if (bytes > inline_most_) {
    // Rare and large: the frames' prefixes are gathered beside the records, which stay where they are.
    std::vector<std::byte> prefixes(kFramePrefix * records.size());
    std::vector<ByteSpan> parts(records.size() * 2);
    for (std::size_t i = 0; i < records.size(); ++i) {
      std::byte* prefix = prefixes.data() + i * kFramePrefix;
      store_u32(prefix, static_cast<std::uint32_t>(records[i].size()));
      parts[2 * i] = {prefix, kFramePrefix};
      parts[2 * i + 1] = records[i];
    }
    RingStub stub{parts, bytes, count};
    TIER_TRY(sequence, append_stub(stub));
  } else {
    Ring::Claim claim;
    TIER_CHECK(this->claim(count, bytes, claim));
    std::byte* at = ring_->bytes_at(claim.position);
    for (const ByteSpan& r : records) {
      put_frame(at, r);
      at += kFramePrefix + r.size();
    }
    sequence = ring_->full_sequence(claim);
    for (std::uint32_t i = count; i-- > 0;)  // R3
      ring_->publish(sequence + i, static_cast<std::uint32_t>(kFramePrefix + records[i].size()),
                     i + 1 < count && !TIER_BUG("log_batch_split") ? Ring::kMore : 0);
    published(claim);
  }
  if (options_.durability == Durability::kSync) TIER_CHECK(make_durable(sequence + count, true, Deadline::never()));
  return Sequence{sequence};
}

Result<std::uint64_t> LogCore::append_stub(RingStub& stub) {
  const RingStub* pointer = &stub;
  Ring::Claim claim;
  TIER_CHECK(this->claim(stub.count, sizeof pointer, claim));
  std::memcpy(ring_->bytes_at(claim.position), &pointer, sizeof pointer);
  const std::uint64_t sequence = ring_->full_sequence(claim);
  ring_->publish(sequence, sizeof pointer, Ring::kStub);
  published(claim);
  // The caller's bytes must stay until they are written, whatever happens.
  Deadline ask = Deadline::now();  // not at each signal: on a full disk every vain attempt signals
  for (;;) {
    const std::uint32_t ticket = state_->progress.ticket();
    if (state_->committed.sequence() >= sequence + stub.count) return sequence;
    if (const Status s = poisoned(); !s.ok()) {
      // No commit runs or begins after the poison is seen with committing_ free, so nobody reads the stub any more.
      for (;;) {
        const std::uint32_t again = state_->progress.ticket();
        {
          MutexLock lock(lead_mutex_);
          if (!committing_) return s;
        }
        state_->progress.wait(again, Deadline::never());
      }
    }
    if (runtime_.clock->passed(ask)) {
      want(kWantCommit);
      ask = runtime_.clock->in(10ms);
    }
    state_->progress.wait(ticket, ask);
  }
}

Result<Reservation> LogCore::reserve(std::size_t size) {
  if (size > options_.max_record.value) return too_large(size, options_.max_record.value, "record");
  if (size > inline_most_) return too_large(size, inline_most_, "reservation");
  const auto bytes = static_cast<std::uint32_t>(kFramePrefix + size);
  Ring::Claim claim;
  TIER_CHECK(this->claim(1, bytes, claim));
  std::byte* at = ring_->bytes_at(claim.position);
  Reservation r;
  r.log_ = this;
  r.sequence_ = Sequence{ring_->full_sequence(claim)};
  r.bytes_ = {at + kFramePrefix, size};
  return r;
}

void Reservation::publish() noexcept {
  if (log_ != nullptr) log_->finish_reservation(sequence_, bytes_, false);
  log_ = nullptr;
}

Reservation::~Reservation() {
  if (log_ != nullptr) log_->finish_reservation(sequence_, bytes_, true);
}

void LogCore::finish_reservation(Sequence sequence, MutableByteSpan bytes, bool abandoned) noexcept {
  auto length = static_cast<std::uint32_t>(bytes.size());
  if (abandoned) {
    std::memset(bytes.data(), 0, bytes.size());  // whatever was half written is nobody's record
    length |= log_format::kVoidBit;
  }
  store_u32(bytes.data() - kFramePrefix, length);
  ring_->publish(sequence.value, static_cast<std::uint32_t>(kFramePrefix + bytes.size()), 0);
  if (ring_->disarm()) wake_committer();  // the claim was long ago; whether it crossed is not known any more
}

Status LogCore::claim(std::uint32_t records, std::uint32_t bytes, Ring::Claim& out) {
  if (ring_ != nullptr && ring_->try_claim(records, bytes, out)) [[likely]]
    return {};
  return claim_slowly(records, bytes, out);
}

Status LogCore::claim_slowly(std::uint32_t records, std::uint32_t bytes, Ring::Claim& out) {
  if (read_only_ || ring_ == nullptr || ring_->frozen()) return refusal();
  const auto full = [&] {
    // relaxed: the reason is for the message; it may be a moment old.
    if (commit_trouble_.load(std::memory_order_relaxed) == Code::kDiskFull)
      return fail(Code::kDiskFull, 0, "the disk is full and so is the ring; free some space, appends then go on by themselves",
                  "log '%s', next sequence %llu", engine().path().c_str(),
                  static_cast<unsigned long long>(ring_->claimed()));
    return fail(Code::kQueueFull, 0, "the ring is full; wait, enlarge ring_size or let append block",
                "log '%s', next sequence %llu", engine().path().c_str(),
                static_cast<unsigned long long>(ring_->claimed()));
  };
  full_waits_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a statistic
  want(kWantCommit);
  if (options_.queue_full == QueueFull::kFail) return full();

  const Deadline until = runtime_.clock->in(options_.queue_full_timeout);
  for (int turn = 0;; ++turn) {
    const std::uint32_t ticket = space_.ticket();
    if (ring_->try_claim(records, bytes, out)) return {};
    if (ring_->frozen()) return refusal();
    if (turn < kSpins) {
      relax();
      continue;
    }
    if (turn < kSpins + kYields) {
      runtime_.parker->yield();
      continue;
    }
    if (runtime_.clock->passed(until)) return full();
    want(kWantCommit);
    space_.wait(ticket, std::min(until, runtime_.clock->in(kParkMost)));
  }
}

void LogCore::published(const Ring::Claim& claim) noexcept {
  if (ring_->must_wake(claim) && ring_->disarm()) [[unlikely]]
    wake_committer();
}

Status LogCore::too_large(std::uint64_t size, std::uint64_t limit, const char* what) const {
  if (read_only_) return refusal();
  return fail(Code::kTooLarge, 0, "over the limit; split it or raise max_record", "%s of %llu, at most %llu", what,
              static_cast<unsigned long long>(size), static_cast<unsigned long long>(limit));
}

/// Why no claim succeeds any more.
Status LogCore::refusal() const {
  if (read_only_) return Status(Code::kUnsupported, "the log was opened read-only; open it for writing");
  if (const Status s = poisoned(); !s.ok()) return s;
  return fail(Code::kClosing, 0, "the log is closing or closed; open it again", "log '%s'",
              state_->engine->path().c_str());
}

}  // namespace tier
