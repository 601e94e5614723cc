/// LocalRing: one io_uring for the operations in flight of one local file system.
///
/// Shape       queued -> submitted (at most kDepth) -> reaped -> done(). Operations are linked through IoOp::next;
///             nothing is allocated. A short transfer goes back to the queue with what is left of it.
/// Invariants  (R1) at most kDepth operations are submitted, so the completion queue cannot overflow.
///             (R2) one poller at a time waits in the kernel; the others park until it has reaped.
///             (R3) a cancelled or interrupted operation has not happened: it is queued again. (The kernel cancels what
///                  a thread submitted when that thread exits.)
///             (R4) done() is called outside the lock, after the operation was taken off its file.
/// Threads     any. The ring is of the process that made it; in a child of fork start() declines.
#pragma once

#include <liburing.h>

#include <cstddef>

#include "base/mutex.h"
#include "tier/fs.h"

namespace tier {

class LocalFile;

class LocalRing {
 public:
  static constexpr unsigned kDepth = 256;

  explicit LocalRing(Runtime& runtime) noexcept;
  ~LocalRing();
  LocalRing(const LocalRing&) = delete;
  LocalRing& operator=(const LocalRing&) = delete;

  /// Whether this process may have a ring now.
  static bool available() noexcept;

  /// Takes over a checked operation with op.file and op.transferred set. False: no ring, complete it otherwise.
  bool start(IoOp& op);
  std::size_t poll(Deadline until);
  /// In a child of the process that made it.
  bool foreign() const noexcept;

 private:
  enum class State : std::uint8_t { kUnset, kReady, kFailed };

  bool set_up() TIER_REQUIRES(mutex_);
  void submit() TIER_REQUIRES(mutex_);
  void prepare(io_uring_sqe& sqe, IoOp& op) TIER_REQUIRES(mutex_);
  IoOp* reap(std::size_t& count) TIER_REQUIRES(mutex_);
  void wait(Deadline until);

  Runtime& runtime_;
  const std::uint32_t generation_;
  Mutex mutex_;
  Event reaped_;
  State state_ TIER_GUARDED_BY(mutex_) = State::kUnset;
  io_uring ring_{};
  IoOp* head_ TIER_GUARDED_BY(mutex_) = nullptr;
  IoOp* tail_ TIER_GUARDED_BY(mutex_) = nullptr;
  std::size_t submitted_ TIER_GUARDED_BY(mutex_) = 0;
  std::size_t in_flight_ TIER_GUARDED_BY(mutex_) = 0;
  bool stalled_ TIER_GUARDED_BY(mutex_) = false;  // the kernel refused a submission for now
  bool waiting_ TIER_GUARDED_BY(mutex_) = false;  // R2
};

}  // namespace tier
