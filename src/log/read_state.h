/// ReadState: what readers of a log share with it, and may outlive it with.
///
/// Invariants  (V1) a frontier's address is published before its sequence, so a reader that takes the sequence first gets
///                  an address at least as far.
///             (V2) bytes below a frontier's address never change while they can be read (until truncation).
/// Threads     any. The writer alone moves the frontiers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/mutex.h"
#include "log/block_index.h"
#include "tier/engine.h"
#include "tier/log.h"

namespace tier {

/// A point between two blocks.
struct LogPosition {
  std::uint64_t end = 0;       ///< where the block before ended
  std::uint64_t sequence = 0;  ///< of the next record
  std::uint32_t epoch = 0;     ///< the next block has at least this one
  std::uint32_t crc = 0;       ///< header checksum of the block before, 0 when not known
};

class Frontier {
 public:
  void set(const LogPosition& p) noexcept {
    address_.store(p.end, std::memory_order_release);
    sequence_.store(p.sequence, std::memory_order_release);  // [V1] pairs with sequence()
  }
  std::uint64_t sequence() const noexcept { return sequence_.load(std::memory_order_acquire); }
  std::uint64_t address() const noexcept { return address_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::uint64_t> sequence_{0};
  std::atomic<std::uint64_t> address_{0};
};

class Follower;

struct ReadState {
  ReadState(Runtime& runtime_in, std::shared_ptr<Engine> engine_in, std::uint32_t index_stride);
  ~ReadState();

  Runtime& runtime;
  std::shared_ptr<Engine> engine;
  Frontier first;
  Frontier durable;
  Frontier committed;
  std::atomic<bool> closed{false};
  /// Signalled whenever a frontier moved or the log closed or broke.
  Event progress;
  BlockIndex index;
  std::unique_ptr<Follower> follower;  ///< of a read-only open

  /// Where the kept records begin, both halves of the same moment: truncation may move it while it is read.
  LogPosition first_position() const {
    MutexLock lock(first_mutex_);
    return {first.address(), first.sequence(), 0, 0};
  }
  void set_first(const LogPosition& p) {
    MutexLock lock(first_mutex_);
    first.set(p);
  }
  /// kTruncated for a sequence below first.
  Status given_up(std::uint64_t sequence) const;

 private:
  mutable Mutex first_mutex_;
};

}  // namespace tier
