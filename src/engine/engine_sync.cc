/// Durability: the dirty set, numbered syncs, poisoning.
#include <algorithm>

#include "base/assert.h"
#include "engine/engine_core.h"

namespace tier {

void EngineCore::mark_dirty(Segment& segment) noexcept {
  if (segment.data() == nullptr && segment.file()->write_through()) return;
  // relaxed: where nothing outlives the process a write need not be ordered against the sync that runs now.
  if (!durable_store_ && segment.dirty.load(std::memory_order_relaxed)) return;
  // [D1] acq_rel: the write is ordered before the sync whose take_dirty() this exchange precedes. G2
  if (segment.dirty.exchange(true, std::memory_order_acq_rel)) return;
  segment.acquire();
  segment.next_dirty = dirty_.load(std::memory_order_relaxed);  // relaxed: the exchange decides
  // [D2] release: pairs with take_dirty().
  while (!dirty_.compare_exchange_weak(segment.next_dirty, &segment, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

void EngineCore::take_dirty(std::vector<Pinned>& dirty) {
  Segment* s = dirty_.exchange(nullptr, std::memory_order_acq_rel);  // [D2]
  while (s != nullptr) {
    Segment* next = s->next_dirty;  // read first: from the exchange on a writer may put it into the next set
    dirty.emplace_back(s);
    s->dirty.exchange(false, std::memory_order_acq_rel);  // [D1]
    s = next;
  }
}

Status EngineCore::sync(Address up_to) {
  TIER_CHECK(check_writable());
  if (options_.tail_policy != TailPolicy::kManaged) return sync_once(up_to.value);
  MutexLock lock(managed_sync_);
  return sync_once(up_to.value);
}

Status EngineCore::sync_once(std::uint64_t up_to) {
  std::vector<Pinned> dirty;
  std::uint64_t number = 0;
  std::uint64_t target = 0;
  {
    // Numbered in the order of their looks: what an earlier sync took, a later one may rely on once that one has ended.
    MutexLock gate(sync_gate_);
    number = ++syncs_begun_;
    target = std::min(up_to, tail_.committed());  // N3: before the dirty set, for an append is dirty before it is committed
    take_dirty(dirty);
  }
  if (TIER_BUG("engine_durable_before_sync")) durable_.store(std::max(durable_.load(), target));
  TIER_POINT("engine/sync/taken");
  Status s = sync_files(dirty, target);
  if (!s.ok() && !TIER_BUG("engine_sync_again_after_failure")) s = poison(s);
  dirty.clear();
  // Only the completed prefix counts.
  while (syncs_ended_.load(std::memory_order_acquire) != number - 1) {  // [S2] pairs with the store below
    const std::uint32_t ticket = sync_ended_.ticket();
    if (syncs_ended_.load(std::memory_order_acquire) != number - 1) sync_ended_.wait(ticket, Deadline::never());  // [S2]
  }
  if (s.ok()) s = check_writable();  // an earlier one failed: N4
  if (s.ok() && target > durable_.load(std::memory_order_relaxed))  // relaxed: only the next in order writes it
    durable_.store(target, std::memory_order_release);              // [S1]
  syncs_ended_.store(number, std::memory_order_release);            // [S2]
  sync_ended_.signal();
  return s;
}

Status EngineCore::sync_files(std::vector<Pinned>& dirty, std::uint64_t target) {
  std::sort(dirty.begin(), dirty.end(),
            [](const Pinned& a, const Pinned& b) { return a.segment->index() < b.segment->index(); });
  if (TIER_BUG("engine_sync_misses_older_segment") && dirty.size() > 1) dirty.erase(dirty.begin(), dirty.end() - 1);
  Pinned home;
  if (options_.tail_policy == TailPolicy::kManaged && target > durable_.load(std::memory_order_relaxed)) {  // relaxed: N3
    TIER_TRY(home, pin_mark_home(target));
  }
  for (const Pinned& r : dirty) {
    if (r.segment != home.segment) TIER_CHECK(sync_segment(*r.segment));
  }
  if (home.segment == nullptr) return {};
  // The mark goes with the last sync, so that it never tells of an older segment whose bytes are not durable.
  TIER_CHECK(write_mark_to(*home.segment, {Address{target}, 0, epoch()}));
  TIER_POINT("engine/sync/mark_written");
  return sync_segment(*home.segment);
}

Status EngineCore::sync_segment(Segment& segment) {
  if (segment.removed.load(std::memory_order_acquire)) return {};  // [B2]
  std::uint64_t mark_generation = 0;
  {
    MutexLock lock(mark_);
    mark_generation = segment.marks.newest.generation;
  }
  // [D3] acquire: what changed the metadata is done before the sync.
  const bool all = segment.metadata_dirty.exchange(false, std::memory_order_acq_rel);
  sync_count_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a statistic
  TIER_CHECK(segment.file()->sync(all ? SyncKind::kAll : SyncKind::kData));
  TIER_POINT("engine/sync/file_synced");
  MutexLock lock(mark_);
  if (segment.marks.newest.generation == mark_generation) segment.marks.newest_synced = true;  // G3
  return {};
}

}  // namespace tier
