/// Claims, leases and what is built from them: append and allocate.
#include <bit>

#include "base/assert.h"
#include "engine/engine_core.h"

namespace tier {

AppendLease::~AppendLease() {
  if (engine_ != nullptr) engine_->lease_commit(ticket_, address_.value + size_.value);
}

Status AppendLease::write(Bytes offset, std::span<const ByteSpan> parts) {
  if (engine_ == nullptr) return Status(Code::kInvalid, "the lease has ended; claim a new range");
  std::uint64_t total = 0;
  for (const ByteSpan part : parts) total += part.size();
  if (offset > size_ || total > size_.value - offset.value) {
    return fail(Code::kInvalid, 0, "more bytes than were claimed; claim enough", "%llu bytes at %llu of a lease of %llu",
                static_cast<unsigned long long>(total), static_cast<unsigned long long>(offset.value),
                static_cast<unsigned long long>(size_.value));
  }
  return engine_->lease_write(address_.value + offset.value, parts);
}

void AppendLease::commit() noexcept {
  if (engine_ == nullptr) return;
  engine_->lease_commit(ticket_, address_.value + size_.value);
  engine_ = nullptr;
}

Result<AppendLease> EngineCore::claim(Bytes n, const ClaimOptions& options) {
  TIER_CHECK(check_writable());
  if (!std::has_single_bit(options.alignment) || options.alignment > 4096) {
    return fail(Code::kInvalid, 0, "a claim's alignment is out of range; change it",
                "alignment = %u, must be a power of two up to 4096", options.alignment);
  }
  if (options.one_segment && n.value > segment_size_) {
    return fail(Code::kTooLarge, 0, "the range does not fit one segment; claim less or use larger segments",
                "%llu bytes, a segment has %llu", static_cast<unsigned long long>(n.value),
                static_cast<unsigned long long>(segment_size_));
  }
  ClaimedRange range;
  TIER_CHECK(claim_range(n.value, options, range));
  AppendLease lease;
  lease.engine_ = this;
  lease.address_ = Address{range.start};
  lease.size_ = n;
  lease.ticket_ = range.ticket;
  return lease;
}

Status EngineCore::claim_range(std::uint64_t n, const ClaimOptions& options, ClaimedRange& range) {
  if (n == 0 || n >= Address::kMax) [[unlikely]] {
    return fail(n == 0 ? Code::kInvalid : Code::kTooLarge, 0, "a range has at least one byte and fits the address space",
                "%llu bytes", static_cast<unsigned long long>(n));
  }
  for (Deadline until{};;) {
    const ClaimOutcome outcome = tail_.try_claim(n, options.alignment, options.one_segment, segment_size_, range);
    if (outcome == ClaimOutcome::kClaimed) [[likely]] {
      // relaxed: a stale value wakes the worker once more or one claim later.
      if (range.end >= refill_at_.load(std::memory_order_relaxed)) [[unlikely]] ask_refill();
      return {};
    }
    if (until == Deadline{}) until = std::max(claim_deadline(options.until), Deadline{1});
    TIER_CHECK(wait_to_claim(outcome, range.end, until));
  }
}

Status EngineCore::wait_to_claim(ClaimOutcome outcome, std::uint64_t end, Deadline until) {
  TIER_CHECK(check_writable());
  if (outcome == ClaimOutcome::kNoSpace) return wait_for_space(end, until);
  // The ring is full or the tail is frozen: either ends with a signal of published_.
  Status s;
  publish_waiters_.fetch_add(1, std::memory_order_seq_cst);  // before the look: see lease_commit()
  const std::uint32_t ticket = published_.ticket();
  if (outcome == ClaimOutcome::kRingFull ? tail_.ring_full() : tail_.frozen()) {
    if (runtime_.clock->passed(until)) {
      s = fail(Code::kTimedOut, 0, "an earlier append is not published yet; commit or drop its lease",
               "store '%s' at %llu", path_.c_str(), static_cast<unsigned long long>(tail_.committed()));
    } else {
      published_.wait(ticket, until);
    }
  }
  publish_waiters_.fetch_sub(1, std::memory_order_relaxed);  // relaxed: too high a count only signals once more
  return s;
}

void EngineCore::lease_commit(std::uint64_t ticket, std::uint64_t end) noexcept {
  // Sequentially consistent: either we see the waiter's count, or it sees what we published.
  if (tail_.publish(ticket, end) && publish_waiters_.load(std::memory_order_seq_cst) != 0) [[unlikely]]
    published_.signal();
}

Status EngineCore::lease_write(std::uint64_t at, std::span<const ByteSpan> parts) {
  TIER_CHECK(check_writable());
  std::uint64_t total = 0;
  for (const ByteSpan part : parts) total += part.size();
  if (total == 0) return {};
  // C2: no guard.
  if (const std::uint64_t offset = at & (segment_size_ - 1); total <= segment_size_ - offset) [[likely]]
    return write_segment(*resident(at), offset, parts);
  for (const ByteSpan part : parts) {
    for (std::uint64_t done = 0; done < part.size();) {
      const std::uint64_t offset = at & (segment_size_ - 1);
      const ByteSpan chunk = part.subspan(done, std::min<std::uint64_t>(part.size() - done, segment_size_ - offset));
      TIER_CHECK(write_segment(*resident(at), offset, std::span(&chunk, 1)));
      at += chunk.size();
      done += chunk.size();
    }
  }
  return {};
}

Result<Address> EngineCore::append(ByteSpan bytes) {
  TIER_TRY(AppendLease lease, claim(Bytes{bytes.size()}, {}));
  TIER_CHECK(lease_write(lease.address_.value, std::span(&bytes, 1)));
  const Address at = lease.address_;
  lease.commit();
  return at;
}

Result<Address> EngineCore::allocate(Bytes n) {
  TIER_CHECK(check_writable());
  ClaimedRange range;
  TIER_CHECK(claim_range(n.value, {}, range));
  lease_commit(range.ticket, range.end);  // N2: it reads as zeros, for nothing was ever written above the tail
  return Address{range.start};
}

}  // namespace tier
