#include "log/block_index.h"

#include <algorithm>

namespace tier {

void BlockIndex::note(std::uint64_t first_sequence, std::uint64_t address, std::uint64_t end, std::uint32_t epoch) {
  MutexLock lock(mutex_);
  std::vector<Anchor>& anchors = segments_[address / segment_size_];
  const auto above = std::upper_bound(anchors.begin(), anchors.end(), first_sequence,
                                      [](std::uint64_t s, const Anchor& a) { return s < a.sequence; });
  // The first block of a segment is always kept; others when they are a stride away from both neighbours.
  if (above != anchors.begin() && first_sequence - std::prev(above)->sequence < stride_) return;
  if (above != anchors.end() && above->sequence - first_sequence < stride_ && above != anchors.begin()) return;
  anchors.insert(above, Anchor{first_sequence, end, epoch});
}

std::optional<BlockIndex::Anchor> BlockIndex::find(std::uint64_t sequence) const {
  MutexLock lock(mutex_);
  // Segments are in order of sequence. Step back from the first group that begins above; usually one step.
  auto after = segments_.end();
  for (; after != segments_.begin(); --after) {
    const std::vector<Anchor>& group = std::prev(after)->second;
    if (!group.empty() && group.front().sequence <= sequence) break;
  }
  if (after == segments_.begin()) return std::nullopt;
  const std::vector<Anchor>& anchors = std::prev(after)->second;
  return *std::prev(std::upper_bound(anchors.begin(), anchors.end(), sequence,
                                     [](std::uint64_t s, const Anchor& a) { return s < a.sequence; }));
}

void BlockIndex::drop_below(std::uint64_t address) {
  MutexLock lock(mutex_);
  segments_.erase(segments_.begin(), segments_.lower_bound(address / segment_size_));
}

void BlockIndex::clear() {
  MutexLock lock(mutex_);
  segments_.clear();
}

}  // namespace tier
