/// Goal: fibers, time and choices behave as a Runtime must, and are the same for the same seed.
/// Method: the base floor's own mutexes, events and workers run on the simulator; a deadlock is a death test.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/worker.h"
#include "testing/sim_runtime.h"

namespace tier::testing {
namespace {

/// Several tasks append their name in an order that the seed chooses.
std::string interleaving(std::uint64_t seed, std::uint64_t* trace = nullptr) {
  std::string order;
  SimRuntime sim(seed);
  sim.run([&] {
    std::vector<std::unique_ptr<Task>> tasks;
    for (char name = 'a'; name < 'e'; ++name)
      tasks.push_back(*sim.runtime().executor->start("appender", [&, name] {
        for (int i = 0; i < 3; ++i) {
          order += name;
          sim.runtime().parker->yield();
        }
      }));
  });
  if (trace != nullptr) *trace = sim.trace();
  return order;
}

TEST(SimRuntime, SameSeedGivesTheSameInterleaving) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::uint64_t first = 0, second = 0;
    const std::string order = interleaving(seed, &first);
    EXPECT_EQ(order, interleaving(seed, &second));
    EXPECT_EQ(first, second);
    seen.insert(order);
  }
  EXPECT_GT(seen.size(), 40u);
}

TEST(SimRuntime, SleepTakesVirtualTimeOnly) {
  SimRuntime sim(1);
  std::vector<int> woken;
  sim.run([&] {
    const std::uint64_t begin = sim.runtime().clock->monotonic_ns();
    auto late = *sim.runtime().executor->start("late", [&] {
      sim.runtime().parker->sleep(48h);
      woken.push_back(2);
    });
    auto early = *sim.runtime().executor->start("early", [&] {
      sim.runtime().parker->sleep(24h);
      woken.push_back(1);
    });
    late->join();
    const Duration passed(static_cast<std::int64_t>(sim.runtime().clock->monotonic_ns() - begin));
    EXPECT_GE(passed, Duration(48h));
    EXPECT_LT(passed, Duration(48h + 1ms));
  });
  EXPECT_EQ(woken, (std::vector<int>{1, 2}));
}

TEST(SimRuntime, WallClockJumpsWithoutTheMonotonicOne) {
  SimRuntime sim(1);
  Clock& clock = *sim.runtime().clock;
  const std::uint64_t wall = clock.wall_ns();
  const std::uint64_t monotonic = clock.monotonic_ns();
  sim.jump_wall(-1h);
  EXPECT_LT(clock.wall_ns(), wall);
  sim.jump_wall(2h);
  EXPECT_GT(clock.wall_ns(), wall + 3'000'000'000'000u);
  EXPECT_GT(clock.monotonic_ns(), monotonic);
  EXPECT_LT(clock.monotonic_ns(), monotonic + 1'000'000);
}

TEST(SimRuntime, ParkReturnsAtOnceWhenTheWordDiffersOrTheDeadlineHasPassed) {
  SimRuntime sim(1);
  const std::atomic<std::uint32_t> word{7};
  sim.run([&] {
    sim.runtime().parker->park(word, 6, Deadline::never());
    sim.runtime().parker->park(word, 7, Deadline::now());
  });
}

TEST(SimRuntime, ParkEndsAtItsDeadline) {
  SimRuntime sim(1, {.spurious = 0});
  const std::atomic<std::uint32_t> word{7};
  sim.run([&] {
    const Deadline until = sim.runtime().clock->in(10ms);
    sim.runtime().parker->park(word, 7, until);
    EXPECT_TRUE(sim.runtime().clock->passed(until));
  });
}

TEST(SimRuntime, ASpinThatYieldsReachesItsDeadline) {
  SimRuntime sim(1);
  bool done = false;
  sim.run([&] {
    auto other = *sim.runtime().executor->start("sleeper", [&] {
      sim.runtime().parker->sleep(1s);
      done = true;
    });
    while (!done) sim.runtime().parker->yield();
  });
  EXPECT_TRUE(done);
}

TEST(SimRuntime, MutexExcludesAcrossSuspension) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SimRuntime sim(seed);
    Mutex mutex(*sim.runtime().parker);
    SharedMutex shared(*sim.runtime().parker);
    int inside = 0, most = 0, writers = 0;
    sim.run([&] {
      std::vector<std::unique_ptr<Task>> tasks;
      for (int t = 0; t < 4; ++t)
        tasks.push_back(*sim.runtime().executor->start("locker", [&, t] {
          for (int i = 0; i < 5; ++i) {
            {
              MutexLock lock(mutex);
              most = std::max(most, ++inside);
              sim.runtime().parker->yield();
              --inside;
            }
            if (t == 0) {
              ExclusiveLock lock(shared);
              ++writers;
              sim.runtime().parker->yield();
              --writers;
            } else {
              SharedLock lock(shared);
              EXPECT_EQ(writers, 0);
              sim.runtime().parker->yield();
            }
          }
        }));
    });
    ASSERT_EQ(most, 1) << "seed " << seed;
  }
}

TEST(SimRuntime, WithoutAMutexAnUpdateIsLost) {
  int lost = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SimRuntime sim(seed);
    int counter = 0;
    sim.run([&] {
      const auto add = [&] {
        for (int i = 0; i < 4; ++i) {
          const int seen = counter;
          sim.preempt();
          counter = seen + 1;
        }
      };
      auto other = *sim.runtime().executor->start("adder", add);
      add();
    });
    lost += counter < 8 ? 1 : 0;
  }
  EXPECT_GT(lost, 20);
}

struct CountingJob final : Worker::Job {
  explicit CountingJob(SimRuntime& runtime) : sim(runtime) {}
  void run() override {
    sim.sleep(1ms);
    ++runs;
  }
  SimRuntime& sim;
  int runs = 0;
};

TEST(SimRuntime, WorkerRunsDrainsAndStops) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SimRuntime sim(seed);
    CountingJob job(sim);
    Worker worker(sim.runtime(), "worker");
    sim.run([&] {
      ASSERT_TRUE(worker.start().ok());
      EXPECT_TRUE(worker.submit(job));
      EXPECT_TRUE(worker.drain(Deadline::never()));
      EXPECT_EQ(job.runs, 1);
      EXPECT_TRUE(worker.submit(job));
      EXPECT_FALSE(worker.drain(sim.runtime().clock->in(10us)));
    });
    worker.stop();  // outside run(): the fibers run until it may return
    EXPECT_FALSE(worker.submit(job));
  }
}

TEST(SimRuntime, EventsWakeWhoeverWaits) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SimRuntime sim(seed);
    Event event(*sim.runtime().parker);
    bool ready = false;
    int woken = 0;
    sim.run([&] {
      std::vector<std::unique_ptr<Task>> tasks;
      for (int t = 0; t < 3; ++t)
        tasks.push_back(*sim.runtime().executor->start("waiter", [&] {
          for (;;) {
            const std::uint32_t ticket = event.ticket();
            if (ready) break;
            event.wait(ticket, Deadline::never());
          }
          ++woken;
        }));
      sim.sleep(1us);
      ready = true;
      event.signal();
    });
    ASSERT_EQ(woken, 3) << "seed " << seed;
  }
}

TEST(SimRuntime, RandomOfTheProductIsSeeded) {
  SimRuntime a(5), b(5), c(6);
  const std::uint64_t first = a.runtime().random->next();
  EXPECT_EQ(first, b.runtime().random->next());
  EXPECT_NE(first, c.runtime().random->next());
}

TEST(SimRuntime, IsFoundByItsRuntime) {
  SimRuntime sim(1);
  EXPECT_EQ(SimRuntime::of(&sim.runtime()), &sim);
  EXPECT_EQ(SimRuntime::of(&Runtime::system()), nullptr);
}

TEST(SimRuntimeDeathTest, DeadlockNamesWhoWaits) {
  EXPECT_DEATH(
      {
        SimRuntime sim(1);
        Mutex mutex(*sim.runtime().parker);
        sim.run([&] {
          mutex.lock();
          auto task = *sim.runtime().executor->start("forgetful", [&] { mutex.lock(); });
          task->join();
        });
      },
      "deadlock.*\n.*task 'main' #1: joins task 'forgetful' #2\n.*task 'forgetful' #2: parked on word");
}

TEST(SimRuntimeDeathTest, LivelockIsReported) {
  EXPECT_DEATH(
      {
        SimRuntime sim(1, {.steps = 1000});
        sim.run([&] {
          for (;;) sim.runtime().parker->yield();
        });
      },
      "livelock.*\n.*task 'main' #1: runs");
}

TEST(SimRuntimeDeathTest, TasksMustEndFirst) {
  EXPECT_DEATH(
      {
        std::unique_ptr<Task> task;
        SimRuntime sim(1);
        task = *sim.runtime().executor->start("left", [] {});
        sim.~SimRuntime();
      },
      "destroyed while tasks still run");
}

}  // namespace
}  // namespace tier::testing
