#include "fs/local_ring.h"

#include <algorithm>
#include <cerrno>

#include "base/assert.h"
#include "fs/local_calls.h"
#include "fs/local_file.h"
#include "fs/local_process.h"

namespace tier {
namespace {

/// A wait with a deadline, and as many completions as there are submissions (R1).
constexpr unsigned kNeeded = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP;

}  // namespace

LocalRing::LocalRing(Runtime& runtime) noexcept
    : runtime_(runtime), generation_(fork_generation()), mutex_(*runtime.parker), reaped_(*runtime.parker) {}

LocalRing::~LocalRing() {
  if (foreign()) return;  // its memory is not mapped here
  MutexLock lock(mutex_);
  TIER_ASSERT(in_flight_ == 0);  // every File has waited for its own
  if (state_ == State::kReady) ::io_uring_queue_exit(&ring_);
}

bool LocalRing::available() noexcept {
  io_uring probe{};
  if (::io_uring_queue_init(1, &probe, 0) != 0) return false;
  const bool enough = (probe.features & kNeeded) == kNeeded;
  ::io_uring_queue_exit(&probe);
  return enough;
}

bool LocalRing::foreign() const noexcept { return generation_ != fork_generation(); }

bool LocalRing::set_up() {
  if (state_ == State::kUnset) {
    state_ = State::kFailed;
    if (::io_uring_queue_init(kDepth, &ring_, 0) != 0) return false;
    if ((ring_.features & kNeeded) == kNeeded)
      state_ = State::kReady;
    else
      ::io_uring_queue_exit(&ring_);
  }
  return state_ == State::kReady;
}

bool LocalRing::start(IoOp& op) {
  if (foreign()) return false;
  MutexLock lock(mutex_);
  if (!set_up()) return false;
  static_cast<LocalFile*>(op.file)->begin_operation();
  ++in_flight_;
  op.next = nullptr;
  if (tail_ != nullptr)
    tail_->next = &op;
  else
    head_ = &op;
  tail_ = &op;
  submit();
  return true;
}

void LocalRing::submit() {
  while (head_ != nullptr && submitted_ < kDepth) {  // R1
    io_uring_sqe* sqe = ::io_uring_get_sqe(&ring_);
    if (sqe == nullptr) break;  // entries that the kernel has not taken yet fill the queue
    IoOp& op = *head_;
    head_ = op.next;
    if (head_ == nullptr) tail_ = nullptr;
    op.next = nullptr;
    prepare(*sqe, op);
    ++submitted_;
  }
  stalled_ = false;
  while (::io_uring_sq_ready(&ring_) != 0) {
    const int taken = ::io_uring_submit(&ring_);
    if (taken == -EINTR) continue;
    if (taken > 0) continue;
    stalled_ = true;  // no memory for it now: the next call of start() or poll() tries again
    break;
  }
}

void LocalRing::prepare(io_uring_sqe& sqe, IoOp& op) {
  const int fd = static_cast<LocalFile*>(op.file)->descriptor();
  const std::uint64_t offset = op.offset + op.transferred;
  switch (op.kind) {
    case IoOp::Kind::kRead: {
      const auto n = std::min<std::uint64_t>(op.into.size() - op.transferred, kTransferMost);
      ::io_uring_prep_read(&sqe, fd, op.into.data() + op.transferred, static_cast<unsigned>(n), offset);
      break;
    }
    case IoOp::Kind::kWrite: {
      const auto n = std::min<std::uint64_t>(op.from.size() - op.transferred, kTransferMost);
      ::io_uring_prep_write(&sqe, fd, op.from.data() + op.transferred, static_cast<unsigned>(n), offset);
      break;
    }
    case IoOp::Kind::kSync:
      ::io_uring_prep_fsync(&sqe, fd, op.sync_kind == SyncKind::kData ? IORING_FSYNC_DATASYNC : 0);
      break;
  }
  ::io_uring_sqe_set_data(&sqe, &op);
}

/// Takes what has ended off the ring: a list of finished operations, in order. What is not finished is queued again.
IoOp* LocalRing::reap(std::size_t& count) {
  IoOp* first = nullptr;
  IoOp** last = &first;
  io_uring_cqe* cqe = nullptr;
  while (::io_uring_peek_cqe(&ring_, &cqe) == 0) {
    auto& op = *static_cast<IoOp*>(::io_uring_cqe_get_data(cqe));
    const int result = cqe->res;
    ::io_uring_cqe_seen(&ring_, cqe);
    --submitted_;
    auto& file = *static_cast<LocalFile*>(op.file);
    op.next = nullptr;
    if (!file.advance(op, result)) {  // R3
      if (tail_ != nullptr)
        tail_->next = &op;
      else
        head_ = &op;
      tail_ = &op;
      continue;
    }
    file.end_operation();  // R4
    --in_flight_;
    ++count;
    *last = &op;
    last = &op.next;
  }
  return first;
}

std::size_t LocalRing::poll(Deadline until) {
  if (foreign()) return 0;
  for (;;) {
    const std::uint32_t ticket = reaped_.ticket();
    IoOp* finished = nullptr;
    std::size_t count = 0;
    bool ours = false;
    Deadline pause = until;
    {
      MutexLock lock(mutex_);
      if (in_flight_ == 0) return 0;
      if (!waiting_) {
        finished = reap(count);
        submit();
        if (count == 0 && until != Deadline::now()) waiting_ = ours = true;  // R2
        if (stalled_) pause = std::min(until, runtime_.clock->in(1ms));
      }
    }
    if (finished != nullptr) {
      reaped_.signal();
      while (finished != nullptr) {
        IoOp& op = *finished;
        finished = op.next;  // done() may start it again or end its life
        op.next = nullptr;
        op.done(op);  // R4
      }
      return count;
    }
    if (ours) {
      wait(pause);
      {
        MutexLock lock(mutex_);
        waiting_ = false;
      }
      reaped_.signal();
    } else if (until != Deadline::now()) {
      reaped_.wait(ticket, until);
    } else {
      return 0;
    }
    if (runtime_.clock->passed(until)) until = Deadline::now();  // one last look, without waiting
  }
}

/// Waits in the kernel until something completes. It only says that there is something to look at.
void LocalRing::wait(Deadline until) {
  __kernel_timespec time{};
  io_uring_getevents_arg argument{};
  if (until != Deadline::never()) {
    const std::uint64_t now = runtime_.clock->monotonic_ns();
    const std::uint64_t left = until.ns > now ? until.ns - now : 0;
    time.tv_sec = static_cast<long long>(left / 1'000'000'000u);
    time.tv_nsec = static_cast<long long>(left % 1'000'000'000u);
    argument.ts = reinterpret_cast<std::uintptr_t>(&time);
  }
  ::io_uring_enter2(static_cast<unsigned>(ring_.ring_fd), 0, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
                    reinterpret_cast<sigset_t*>(&argument), sizeof argument);
}

}  // namespace tier
