/// BlockIndex: the sparse index of a log in memory: for each segment, places between blocks and the sequence that follows.
///
/// Shape       anchors sorted by sequence, one every `stride` records at the most; kept per segment, so that truncation
///             drops whole groups. Filled by the committer as it writes and by readers as they pass; lost on close, since it
///             is derived: block headers can be walked again.
/// Threads     any; one mutex, held for a binary search.
/// Cost        24 bytes an anchor.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "tier/types.h"

namespace tier {

class BlockIndex {
 public:
  struct Anchor {
    std::uint64_t sequence = 0;  ///< first of the block that follows
    std::uint64_t end = 0;       ///< where the block before it ended
    std::uint32_t epoch = 0;
  };

  BlockIndex(Parker& parker, std::uint64_t segment_size, std::uint32_t stride)
      : mutex_(parker), segment_size_(segment_size), stride_(stride) {}

  /// Notes that the block with `first_sequence`, at `address`, follows one that ended at `end`.
  void note(std::uint64_t first_sequence, std::uint64_t address, std::uint64_t end, std::uint32_t epoch);
  /// The last anchor at or below `sequence`.
  std::optional<Anchor> find(std::uint64_t sequence) const;
  void drop_below(std::uint64_t address);
  void clear();

 private:
  mutable Mutex mutex_;
  const std::uint64_t segment_size_;
  const std::uint32_t stride_;
  std::map<std::uint64_t, std::vector<Anchor>> segments_ TIER_GUARDED_BY(mutex_);  // by segment index
};

}  // namespace tier
