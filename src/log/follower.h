/// Follower: keeps a read-only log's frontiers up with a writer in another process.
///
/// Each step reads the manifest and the hint page again and walks the blocks that have come since. With a live writer what
/// its hint page, its block headers or its marks call durable is durable; without one, all that recovery would keep.
/// Threads     any; one step at a time.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "log/block_reader.h"
#include "log/read_state.h"

namespace tier {

class Follower {
 public:
  Follower(ReadState& state, const LogPosition& from);
  /// kCorruption where a live frontier cannot be read.
  Status step();
  bool writer_alive() const noexcept { return writer_alive_.load(std::memory_order_relaxed); }  // relaxed: information

 private:
  Status walk() TIER_REQUIRES(mutex_);

  ReadState& state_;
  Mutex mutex_;
  BlockReader reader_ TIER_GUARDED_BY(mutex_);
  LogPosition seen_ TIER_GUARDED_BY(mutex_);
  LogPosition safe_ TIER_GUARDED_BY(mutex_);               // the last one that is durable
  std::deque<LogPosition> above_ TIER_GUARDED_BY(mutex_);  // from safe_ to seen_
  std::uint64_t mark_ TIER_GUARDED_BY(mutex_) = 0;
  std::uint32_t epoch_ TIER_GUARDED_BY(mutex_) = 0;
  std::atomic<bool> writer_alive_{false};
};

}  // namespace tier
