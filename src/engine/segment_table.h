/// SegmentTable: from a segment's number to the Segment, without a lock; and the graveyard of removed ones.
///
/// Shape       root of 16,384 leaf pointers, each leaf 16,384 segments, made when first needed and kept until the end.
/// Invariants  (B1) a pointer read under a guard stays valid while the guard lives: a removed segment's reference is dropped
///                  only when no guard entered before its removal remains (EpochProtector's E2).
/// Threads     find: any, under a guard or for a segment that cannot be removed meanwhile. insert, remove, sweep: any.
/// Cost        find: two loads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/epoch.h"
#include "base/mutex.h"
#include "engine/segment.h"

namespace tier {

class SegmentTable {
 public:
  explicit SegmentTable(Parker& parker) noexcept : mutex_(parker) {}
  ~SegmentTable();

  EpochProtector& epochs() noexcept { return epochs_; }

  Segment* find(std::uint64_t index) const noexcept {
    if (index >= kSegmentsMax) return nullptr;
    const Leaf* leaf = root_[index / kLeaf].load(std::memory_order_acquire);  // [B1] pairs with insert()
    return leaf == nullptr ? nullptr : (*leaf)[index % kLeaf].load(std::memory_order_seq_cst);  // B1: after the guard
  }
  /// Takes the reference that the caller holds. The place is free.
  Status insert(Segment* segment);
  /// Unlinks it, if it is there; its file closes when the last user has gone.
  void remove(std::uint64_t index);
  /// Drops what no guard can see any more.
  void sweep();
  std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }  // relaxed: a statistic

 private:
  static constexpr std::uint64_t kLeaf = 1u << 14;
  using Leaf = std::array<std::atomic<Segment*>, kLeaf>;
  static_assert(kLeaf * kLeaf == kSegmentsMax);

  EpochProtector epochs_;
  std::array<std::atomic<Leaf*>, kLeaf> root_{};
  std::atomic<std::size_t> size_{0};
  Mutex mutex_;
  std::vector<std::pair<std::uint64_t, Segment*>> retired_ TIER_GUARDED_BY(mutex_);
};

}  // namespace tier
