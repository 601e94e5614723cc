/// Worker: a background task with a queue of caller-owned jobs.
///
/// Shape       jobs are intrusive (no allocation) and run in order of submission, one at a time.
/// Invariants  (W1) a job is in the queue at most once; submitting one that waits is a no-op, one that runs runs again.
///             (W2) after stop() no job runs and none is accepted.
/// Threads     submit, drain: any task but the worker's own jobs may drain. stop, ~Worker: the owner, once.
/// Cost        submit: one lock, and one wake when the worker sleeps.
#pragma once

#include <memory>

#include "base/mutex.h"
#include "tier/runtime.h"

namespace tier {

class Worker {
 public:
  /// Work to do; alive until it has run or the worker is stopped or drained.
  class Job {
   public:
    virtual ~Job() = default;
    virtual void run() = 0;

   private:
    friend class Worker;
    Job* next_ = nullptr;
    bool queued_ = false;
  };

  Worker(Runtime& runtime, const char* name) noexcept;
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  Status start();
  /// False once the worker is stopped.
  bool submit(Job& job);
  /// Waits until everything submitted before the call has run. False at the deadline.
  bool drain(Deadline until);
  /// Ends after the job that runs now; jobs that wait are dropped. Idempotent.
  void stop();

 private:
  void loop();

  Runtime& runtime_;
  const char* name_;
  Mutex mutex_;
  Event changed_;
  Job* head_ TIER_GUARDED_BY(mutex_) = nullptr;
  Job* tail_ TIER_GUARDED_BY(mutex_) = nullptr;
  std::uint64_t submitted_ TIER_GUARDED_BY(mutex_) = 0;
  std::uint64_t finished_ TIER_GUARDED_BY(mutex_) = 0;
  bool stopping_ TIER_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Task> task_;
};

}  // namespace tier
