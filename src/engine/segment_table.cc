#include "engine/segment_table.h"

#include <new>

#include "base/assert.h"

namespace tier {

SegmentTable::~SegmentTable() {
  for (std::atomic<Leaf*>& place : root_) {
    std::unique_ptr<Leaf> leaf(place.load(std::memory_order_acquire));  // [B1]
    if (leaf == nullptr) continue;
    for (std::atomic<Segment*>& s : *leaf) {
      if (Segment* segment = s.load(std::memory_order_acquire); segment != nullptr) segment->release();  // [B1]
    }
  }
  for (const auto& [epoch, segment] : retired_) segment->release();
}

Status SegmentTable::insert(Segment* segment) {
  MutexLock lock(mutex_);
  std::atomic<Leaf*>& place = root_[segment->index() / kLeaf];
  Leaf* leaf = place.load(std::memory_order_relaxed);  // relaxed: written under the mutex
  if (leaf == nullptr) {
    leaf = new (std::nothrow) Leaf{};
    if (leaf == nullptr) return Status(Code::kOutOfMemory, "cannot allocate the segment table; lower the memory options");
    place.store(leaf, std::memory_order_release);  // [B1]
  }
  std::atomic<Segment*>& entry = (*leaf)[segment->index() % kLeaf];
  TIER_ASSERT(entry.load(std::memory_order_relaxed) == nullptr);  // relaxed: written under the mutex
  entry.store(segment, std::memory_order_release);                // [B1]
  size_.fetch_add(1, std::memory_order_relaxed);                  // relaxed: a statistic
  return {};
}

void SegmentTable::remove(std::uint64_t index) {
  MutexLock lock(mutex_);
  Leaf* leaf = root_[index / kLeaf].load(std::memory_order_relaxed);  // relaxed: written under the mutex
  if (leaf == nullptr) return;
  Segment* segment = (*leaf)[index % kLeaf].exchange(nullptr, std::memory_order_seq_cst);  // before retire(): B1
  if (segment == nullptr) return;
  size_.fetch_sub(1, std::memory_order_relaxed);  // relaxed: a statistic
  segment->removed.store(true, std::memory_order_release);  // [B2] pairs with sync's look: nothing is owed to it
  retired_.emplace_back(epochs_.retire(), segment);
}

void SegmentTable::sweep() {
  std::vector<Segment*> gone;
  {
    MutexLock lock(mutex_);
    if (retired_.empty()) return;
    const std::uint64_t safe = epochs_.safe_epoch();
    std::erase_if(retired_, [&](const std::pair<std::uint64_t, Segment*>& r) {
      if (r.first >= safe) return false;  // B1
      gone.push_back(r.second);
      return true;
    });
  }
  for (Segment* segment : gone) segment->release();
}

}  // namespace tier
