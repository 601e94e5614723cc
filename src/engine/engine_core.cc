#include "engine/engine_core.h"

#include <bit>

#include "base/assert.h"

namespace tier {

EngineCore::EngineCore(std::unique_ptr<SegmentStore> store, std::string path, const EngineOptions& options,
                       Runtime& runtime)
    : store_(std::move(store)),
      path_(std::move(path)),
      options_(options),
      kind_(options.kind),
      runtime_(runtime),
      durable_store_(store_->durable()),
      published_(*runtime.parker),
      table_(*runtime.parker),
      open_(*runtime.parker),
      admin_(*runtime.parker),
      worker_(runtime, "tier-engine"),
      grow_(*runtime.parker),
      prepare_mutex_(*runtime.parker),
      prepared_(*runtime.parker),
      managed_sync_(*runtime.parker),
      sync_gate_(*runtime.parker),
      sync_ended_(*runtime.parker),
      mark_(*runtime.parker),
      poison_mutex_(*runtime.parker) {}

EngineCore::~EngineCore() {
  release_store();
  std::vector<Pinned> dirty;
  take_dirty(dirty);
}

Status EngineCore::refused(std::uint32_t refusal) const {
  if ((refusal & kClosedState) != 0)
    return fail(Code::kClosing, 0, "the engine is closed; open it again", "store '%s'", path_.c_str());
  if ((refusal & kReadOnlyOpen) != 0)
    return fail(Code::kAccess, 0, "the engine was opened read-only; open it for writing", "store '%s'", path_.c_str());
  if ((refusal & kPoisonedState) != 0) {
    MutexLock lock(poison_mutex_);
    return poison_.as(Code::kPoisoned, "a sync failed earlier; check the device, then open the engine again");
  }
  return fail(Code::kNotReady, 0, "recovery is not finished; end it with reclaim_tail()", "store '%s'", path_.c_str());
}

Status EngineCore::poison(Status cause) {
  {
    MutexLock lock(poison_mutex_);
    if (poison_.ok()) poison_ = cause;  // the first one tells why
  }
  refusal_.fetch_or(kPoisonedState, std::memory_order_acq_rel);  // [C1]
  prepared_.signal();
  published_.signal();
  return cause;
}

Tails EngineCore::tails() const noexcept {
  // In this order, so that each is at most the next (they only grow).
  Tails t;
  t.begin = Address{begin_.load(std::memory_order_acquire)};      // [R1]
  t.durable = Address{durable_.load(std::memory_order_acquire)};  // [S1]
  t.committed = Address{tail_.committed()};
  t.allocated = Address{tail_.allocated()};
  return t;
}

bool EngineCore::wait_quiet(Deadline until) noexcept {
  publish_waiters_.fetch_add(1, std::memory_order_seq_cst);  // before quiet(): see lease_commit()
  bool quiet = false;
  for (;;) {
    const std::uint32_t ticket = published_.ticket();
    quiet = tail_.quiet();
    if (quiet || runtime_.clock->passed(until)) break;
    published_.wait(ticket, until);
  }
  publish_waiters_.fetch_sub(1, std::memory_order_relaxed);  // relaxed: too high a count only signals once more
  return quiet;
}

Deadline EngineCore::claim_deadline(Deadline until) const noexcept {
  return std::min(until, runtime_.clock->in(options_.claim_timeout));
}

Status EngineCore::put_owner_data(ByteSpan bytes) {
  MutexLock admin(admin_);
  TIER_CHECK(check_writable());
  if (bytes.size() > kOwnerDataMax) {
    return fail(Code::kTooLarge, 0, "the owner's data does not fit the manifest; keep less", "%zu bytes, at most %zu",
                bytes.size(), kOwnerDataMax);
  }
  return update_manifest([&](Manifest& m) {
    m.owner.fill(std::byte{0});
    std::copy(bytes.begin(), bytes.end(), m.owner.begin());
    m.owner_bytes = static_cast<std::uint32_t>(bytes.size());
  });
}

ByteSpan EngineCore::owner_data() const noexcept { return std::span(manifest_.owner).first(manifest_.owner_bytes); }

Status EngineCore::close(std::uint64_t value) {
  MutexLock admin(admin_);
  const std::uint32_t refusal = refusal_.load(std::memory_order_acquire);  // [C1]
  if ((refusal & kClosedState) != 0) return {};
  if ((refusal & (kReadOnlyOpen | kRecovering)) != 0) {
    release_store();
    return {};
  }
  Status s = check_writable();
  if (s.ok()) {
    tail_.freeze();
    if (!wait_quiet(claim_deadline(Deadline::never()))) {
      tail_.thaw();
      published_.signal();
      return fail(Code::kTimedOut, 0, "an append is still being filled; commit or drop its lease, then close again",
                  "store '%s' at %llu", path_.c_str(), static_cast<unsigned long long>(tail_.committed()));
    }
    worker_.stop();
    TIER_POINT("engine/close/drained");
    s = sync();
    TIER_POINT("engine/close/synced");
    if (s.ok()) {
      s = update_manifest([&](Manifest& m) {
        m.clean = true;
        m.clean_mark = {Address{tail_.committed()}, value, m.epoch};
      });
    }
  }
  release_store();
  return s;
}

void EngineCore::release_store() noexcept {
  refusal_.fetch_or(kClosedState, std::memory_order_acq_rel);  // [C1]
  prepared_.signal();
  published_.signal();
  worker_.stop();
  MutexLock open(open_);  // nobody opens a segment any more
  {
    MutexLock grow(grow_);
    const std::uint64_t first = segment_size_ == 0 ? 0 : begin_.load(std::memory_order_acquire) >> segment_shift_;  // [R1]
    const std::uint64_t end = segment_size_ == 0 ? 0 : segments_end_ >> segment_shift_;
    for (std::uint64_t i = first; i < end; ++i) table_.remove(i);
  }
  table_.sweep();
  store_->detach();
}

std::string EngineCore::locate(Address at) const {
  return "file '" + store_->name_of(at.value >> segment_shift_) + "' at offset " +
         std::to_string(kSegmentDataOffset + (at.value & (segment_size_ - 1)));
}

EngineStatistics EngineCore::statistics() const {
  // relaxed: each is a number of its own.
  EngineStatistics s;
  s.segments = table_.size();
  s.appended = tail_.committed() - std::min(tail_.committed(), tail_at_open_);
  s.syncs = sync_count_.load(std::memory_order_relaxed);
  s.prepared_bytes = prepared_bytes_.load(std::memory_order_relaxed);
  s.claim_waits = claim_waits_.load(std::memory_order_relaxed);
  const std::uint64_t first = begin_.load(std::memory_order_relaxed) >> segment_shift_;
  for (std::uint64_t i = first, seen = 0; seen < s.segments && i < kSegmentsMax; ++i, ++seen) {
    const auto info = store_->file_system().stat(store_->name_of(i));
    if (info.ok()) s.bytes_on_disk += info->allocated;
  }
  return s;
}

}  // namespace tier
