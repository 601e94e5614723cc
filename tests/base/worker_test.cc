/// Worker: jobs in order, one at a time; drain waits for them, stop drops them. Gates, not times, decide who runs when.
#include "base/worker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace tier {
namespace {

Runtime& runtime() { return Runtime::system(); }

class FunctionJob final : public Worker::Job {
 public:
  explicit FunctionJob(std::function<void()> body) : body_(std::move(body)) {}
  void run() override { body_(); }

 private:
  std::function<void()> body_;
};

/// Something that a test opens, once.
class Gate {
 public:
  void open() noexcept {
    open_.store(true, std::memory_order_release);  // [G1]
    event_.signal();
  }
  void wait() noexcept {
    for (;;) {
      const std::uint32_t ticket = event_.ticket();
      if (open_.load(std::memory_order_acquire)) return;  // [G1]
      event_.wait(ticket, Deadline::never());
    }
  }

 private:
  std::atomic<bool> open_{false};
  Event event_{*runtime().parker};
};

TEST(Worker, RunsJobsInOrderAndDrainWaitsForThem) {
  Worker worker(runtime(), "test");
  std::vector<int> order;
  std::vector<FunctionJob> jobs;
  for (int i = 0; i < 100; ++i) jobs.emplace_back([&order, i] { order.push_back(i); });
  for (Worker::Job& job : jobs) EXPECT_TRUE(worker.submit(job));  // before start: they wait
  ASSERT_TRUE(worker.start().ok());
  ASSERT_TRUE(worker.drain(Deadline::never()));
  ASSERT_EQ(order.size(), jobs.size());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

// W1
TEST(Worker, SubmittingAJobThatWaitsChangesNothing) {
  Worker worker(runtime(), "test");
  int runs = 0;
  FunctionJob job([&] { ++runs; });
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(worker.submit(job));
  ASSERT_TRUE(worker.start().ok());
  ASSERT_TRUE(worker.drain(Deadline::never()));
  EXPECT_EQ(runs, 1);
}

// W1
TEST(Worker, AJobThatIsSubmittedWhileItRunsRunsAgain) {
  Worker worker(runtime(), "test");
  Gate running;
  Gate go_on;
  int runs = 0;
  FunctionJob job([&] {
    if (++runs > 1) return;
    running.open();
    go_on.wait();
  });
  ASSERT_TRUE(worker.start().ok());
  EXPECT_TRUE(worker.submit(job));
  running.wait();
  EXPECT_TRUE(worker.submit(job));
  EXPECT_TRUE(worker.submit(job));  // waits already
  go_on.open();
  ASSERT_TRUE(worker.drain(Deadline::never()));
  EXPECT_EQ(runs, 2);
}

TEST(Worker, AJobMaySubmitItself) {
  Worker worker(runtime(), "test");
  Gate done;
  int runs = 0;
  Worker::Job* self = nullptr;
  FunctionJob job([&] {
    if (++runs < 10) EXPECT_TRUE(worker.submit(*self));
    else done.open();
  });
  self = &job;
  ASSERT_TRUE(worker.start().ok());
  EXPECT_TRUE(worker.submit(job));
  done.wait();
  ASSERT_TRUE(worker.drain(Deadline::never()));
  EXPECT_EQ(runs, 10);
}

TEST(Worker, DrainGivesUpAtItsDeadline) {
  Worker worker(runtime(), "test");
  Gate go_on;
  FunctionJob job([&] { go_on.wait(); });
  ASSERT_TRUE(worker.start().ok());
  EXPECT_TRUE(worker.submit(job));
  EXPECT_FALSE(worker.drain(Deadline::now()));
  EXPECT_FALSE(worker.drain(runtime().clock->in(1ms)));
  go_on.open();
  EXPECT_TRUE(worker.drain(Deadline::never()));
}

TEST(Worker, DrainOfAnIdleWorkerReturnsAtOnce) {
  Worker worker(runtime(), "test");
  EXPECT_TRUE(worker.drain(Deadline::now()));
  ASSERT_TRUE(worker.start().ok());
  EXPECT_TRUE(worker.drain(Deadline::now()));
}

// W2
TEST(Worker, StopLetsTheRunningJobEndAndDropsTheRest) {
  Worker worker(runtime(), "test");
  Gate running;
  Gate go_on;
  bool ended = false;
  bool second_ran = false;
  FunctionJob first([&] {
    running.open();
    go_on.wait();
    ended = true;
  });
  FunctionJob second([&] { second_ran = true; });
  ASSERT_TRUE(worker.start().ok());
  EXPECT_TRUE(worker.submit(first));
  EXPECT_TRUE(worker.submit(second));
  running.wait();
  std::thread stopper([&] { worker.stop(); });
  while (worker.submit(first)) runtime().parker->yield();  // false: stop() has begun
  go_on.open();
  stopper.join();
  EXPECT_TRUE(ended);
  EXPECT_FALSE(second_ran);
  EXPECT_FALSE(worker.submit(second));
  EXPECT_FALSE(worker.drain(Deadline::never()));  // what was dropped will never have run
  worker.stop();
}

TEST(Worker, ManySubmittersLoseNothing) {
  constexpr int kThreads = 3;
  constexpr int kJobs = 500;
  Worker worker(runtime(), "test");
  ASSERT_TRUE(worker.start().ok());
  int runs = 0;
  std::vector<std::vector<FunctionJob>> jobs(kThreads);
  for (auto& mine : jobs)
    for (int i = 0; i < kJobs; ++i) mine.emplace_back([&runs] { ++runs; });
  std::vector<std::thread> threads;
  for (auto& mine : jobs) {
    threads.emplace_back([&worker, &mine] {
      for (Worker::Job& job : mine) EXPECT_TRUE(worker.submit(job));
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(worker.drain(Deadline::never()));
  EXPECT_EQ(runs, kThreads * kJobs);
}

}  // namespace
}  // namespace tier
