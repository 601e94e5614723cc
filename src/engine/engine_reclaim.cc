/// Giving up the head, and taking back the tail.
///
/// Order of reclaim_head: manifest with the new begin durable; segments unlinked; names removed; the rest punched. A crash
/// leaves files below begin, which the next owner removes.
/// Order of reclaim_tail: what lies below the new tail synced; manifest with the higher epoch and the cut durable; later
/// segments removed; the rest of the tail segment erased, marks above it too; synced. A crash leaves bytes above the cut, and
/// segments of a lower epoch at or above it, which the next owner recognizes by that; its own reclaim_tail erases them.
#include <algorithm>

#include "base/assert.h"
#include "engine/engine_core.h"

namespace tier {

Status EngineCore::reclaim_head(Address address) {
  const std::uint64_t to = address.value;
  MutexLock admin(admin_);
  TIER_CHECK(check_writable());
  const std::uint64_t begin = begin_.load(std::memory_order_relaxed);  // relaxed: written under admin_
  if (to < begin) return {};
  if (const std::uint64_t durable = durable_.load(std::memory_order_acquire); to > durable) {  // [S1]
    return fail(Code::kInvalid, 0, "only what is durable can be given up; sync first", "address %llu, durable up to %llu",
                static_cast<unsigned long long>(to), static_cast<unsigned long long>(durable));
  }
  if (to > begin) {
    TIER_POINT("engine/reclaim_head/before");
    if (TIER_BUG("engine_reclaim_head_before_manifest")) TIER_CHECK(remove_segments_below(to >> segment_shift_));
    TIER_CHECK(update_manifest([&](Manifest& m) { m.begin = to; }));
    TIER_POINT("engine/reclaim_head/manifest");
    begin_.store(to, std::memory_order_seq_cst);  // [R1] [V1] before any byte goes
  }
  TIER_CHECK(remove_segments_below(to >> segment_shift_));
  TIER_POINT("engine/reclaim_head/removed");
  const std::uint64_t offset = align_down(to & (segment_size_ - 1), 4096);
  if (offset == 0 || !store_->file_system().capabilities().has(Capability::kPunch)) return {};
  TIER_TRY(Pinned first, pin(to >> segment_shift_));
  // A view of bytes below `to` keeps them; the next call punches from the start again. [V1]
  if (first->views.load(std::memory_order_seq_cst) != 0) return {};
  TIER_CHECK(first->file()->punch(0, offset));
  TIER_POINT("engine/reclaim_head/punched");
  return {};
}

Status EngineCore::remove_segments_below(std::uint64_t index) {
  if (removed_below_ >= index) return {};
  for (std::uint64_t i = removed_below_; i < index; ++i) {
    table_.remove(i);
    TIER_CHECK(store_->remove(i));
    TIER_POINT("engine/reclaim_head/one_removed");
  }
  {
    // The tail may have stood at the very end of the last one.
    MutexLock lock(grow_);
    segments_end_ = std::max(segments_end_, index << segment_shift_);
  }
  TIER_CHECK(checked(store_->sync_names()));
  removed_below_ = index;
  table_.sweep();
  return {};
}

Status EngineCore::reclaim_tail(Address address) {
  const std::uint64_t to = address.value;
  MutexLock admin(admin_);
  const std::uint32_t refusal = refusal_.load(std::memory_order_acquire);  // [C1]
  if ((refusal & ~std::uint32_t{kRecovering}) != 0) return refused(refusal);
  TIER_CHECK(check_range(to, 0));
  const bool recovering = (refusal & kRecovering) != 0;
  tail_.freeze();
  if (!wait_quiet(claim_deadline(Deadline::never()))) {
    tail_.thaw();
    published_.signal();
    return fail(Code::kBusy, 0, "an append is still being filled; commit or drop its lease, then try again",
                "store '%s' at %llu", path_.c_str(), static_cast<unsigned long long>(tail_.committed()));
  }
  MutexLock managed(managed_sync_);
  MutexLock gate(sync_gate_);
  // Those that are under way end first: none may report what is cut as durable.
  while (syncs_ended_.load(std::memory_order_acquire) != syncs_begun_) {  // [S2]
    const std::uint32_t ticket = sync_ended_.ticket();
    if (syncs_ended_.load(std::memory_order_acquire) != syncs_begun_) sync_ended_.wait(ticket, Deadline::never());
  }
  MutexLock grow(grow_);
  if (to > tail_.committed() && !recovering) {
    tail_.thaw();
    published_.signal();
    return check_range(to, 0);
  }
  const Status s = cut_tail(to);
  if (!s.ok()) {
    // Halfway cut: the tail stays frozen at what is certain, and nothing more is written until the next owner finishes it.
    return refusal_.load(std::memory_order_relaxed) == kRecovering ? s : poison(s);  // relaxed: admin_ is held
  }
  place_tails(to);
  if (recovering) tail_at_open_ = to;
  refusal_.fetch_and(~std::uint32_t{kRecovering}, std::memory_order_acq_rel);  // [C1] recovery ends
  tail_.thaw();
  published_.signal();
  worker_.submit(prepare_job_);
  return {};
}

Status EngineCore::cut_tail(std::uint64_t to) {
  // What stays is durable before the manifest says that it is the tail.
  std::vector<Pinned> dirty;
  take_dirty(dirty);
  for (const Pinned& r : dirty) {
    if (const Status s = sync_segment(*r.segment); !s.ok()) return poison(s);
  }
  TIER_POINT("engine/reclaim_tail/before");
  const bool untouched = recovered_.clean && (refusal_.load(std::memory_order_relaxed) & kRecovering) != 0 &&
                         recovered_.clean_mark.address.value == to;  // relaxed: admin_ is held
  TIER_CHECK(update_manifest([&](Manifest& m) {
    if (!TIER_BUG("engine_epoch_not_bumped")) ++m.epoch;
    m.cut = to;
    m.clean = false;
    m.clean_mark = {};
  }));
  epoch_.store(manifest_.epoch, std::memory_order_relaxed);  // relaxed: a number
  TIER_POINT("engine/reclaim_tail/manifest");
  const std::uint64_t keep = align_up(to, segment_size_);  // segments from here on go
  const std::uint64_t first_gone = keep >> segment_shift_;
  for (std::uint64_t i = segments_end_ >> segment_shift_; i-- > first_gone;) {
    table_.remove(i);
    TIER_CHECK(store_->remove(i));
    TIER_POINT("engine/reclaim_tail/one_removed");
  }
  if (segments_end_ > keep) TIER_CHECK(checked(store_->sync_names()));
  segments_end_ = keep;
  TIER_POINT("engine/reclaim_tail/removed");
  if (to != keep) {
    TIER_TRY(Pinned tail, pin(to >> segment_shift_));
    if (!untouched && !TIER_BUG("engine_keep_cut_tail")) {
      const std::uint64_t offset = to & (segment_size_ - 1);
      TIER_CHECK(tail->file()->erase(offset, segment_size_ - offset));
      TIER_POINT("engine/reclaim_tail/erased");
      TIER_CHECK(drop_marks_above(*tail.segment, to));
      tail->metadata_dirty.store(true, std::memory_order_release);  // [D3]
      if (const Status s = sync_segment(*tail.segment); !s.ok()) return poison(s);
    }
    tail->reserved = to & (segment_size_ - 1);
  }
  TIER_POINT("engine/reclaim_tail/synced");
  table_.sweep();
  return {};
}

}  // namespace tier
