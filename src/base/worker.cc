#include "base/worker.h"

#include "base/assert.h"

namespace tier {

Worker::Worker(Runtime& runtime, const char* name) noexcept
    : runtime_(runtime), name_(name), mutex_(*runtime.parker), changed_(*runtime.parker) {}

Worker::~Worker() { stop(); }

Status Worker::start() {
  TIER_TRY(task_, runtime_.executor->start(name_, [this] { loop(); }));
  return {};
}

bool Worker::submit(Job& job) {
  {
    MutexLock lock(mutex_);
    if (stopping_) return false;  // W2
    if (job.queued_) return true;  // W1
    job.queued_ = true;
    job.next_ = nullptr;
    if (tail_ != nullptr) tail_->next_ = &job;
    else head_ = &job;
    tail_ = &job;
    ++submitted_;
  }
  changed_.signal();
  return true;
}

bool Worker::drain(Deadline until) {
  std::uint64_t target = 0;
  {
    MutexLock lock(mutex_);
    target = submitted_;
  }
  for (;;) {
    const std::uint32_t ticket = changed_.ticket();
    {
      MutexLock lock(mutex_);
      if (finished_ >= target || stopping_) return finished_ >= target;
    }
    if (runtime_.clock->passed(until)) return false;
    changed_.wait(ticket, until);
  }
}

void Worker::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.signal();
  if (task_ != nullptr) {
    task_->join();
    task_.reset();
  }
  MutexLock lock(mutex_);
  for (; head_ != nullptr; head_ = head_->next_) head_->queued_ = false;
  tail_ = nullptr;
}

void Worker::loop() {
  for (;;) {
    const std::uint32_t ticket = changed_.ticket();
    Job* job = nullptr;
    {
      MutexLock lock(mutex_);
      if (stopping_) return;
      job = head_;
      if (job != nullptr) {
        head_ = job->next_;
        if (head_ == nullptr) tail_ = nullptr;
        job->queued_ = false;  // W1: from here a submit queues it again
      }
    }
    if (job == nullptr) {
      changed_.wait(ticket, Deadline::never());
      continue;
    }
    job->run();
    {
      MutexLock lock(mutex_);
      ++finished_;
    }
    changed_.signal();
  }
}

}  // namespace tier
