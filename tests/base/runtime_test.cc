/// The operating system's runtime: what every wait of Tier rests on. Times are only ever bounded from below.
#include "tier/runtime.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>

namespace tier {
namespace {

Clock& system_clock() { return *Runtime::system().clock; }
Parker& parker() { return *Runtime::system().parker; }

TEST(SystemClock, MonotonicTimeNeverGoesBack) {
  std::uint64_t last = system_clock().monotonic_ns();
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t now = system_clock().monotonic_ns();
    ASSERT_GE(now, last);
    last = now;
  }
  EXPECT_GT(system_clock().wall_ns(), 1'600'000'000'000'000'000u);
}

TEST(SystemClock, DeadlinesPassOnceTheirTimeHasCome) {
  EXPECT_TRUE(system_clock().passed(Deadline::now()));
  EXPECT_FALSE(system_clock().passed(Deadline::never()));
  EXPECT_EQ(system_clock().in(Duration::max()), Deadline::never());
  EXPECT_TRUE(system_clock().passed(system_clock().in(-5s)));
  EXPECT_FALSE(system_clock().passed(system_clock().in(1h)));
}

TEST(SystemParker, ReturnsAtOnceWhenTheWordDiffers) {
  const std::atomic<std::uint32_t> word{2};
  parker().park(word, 1, Deadline::never());  // would hang
}

TEST(SystemParker, ReturnsAtTheDeadline) {
  const std::atomic<std::uint32_t> word{1};
  parker().park(word, 1, Deadline::now());
  parker().park(word, 1, Deadline{1});  // long past
  const Deadline until = system_clock().in(2ms);
  while (!system_clock().passed(until)) parker().park(word, 1, until);  // would hang
}

TEST(SystemParker, WhoChangesTheWordWakesTheWaiter) {
  std::atomic<std::uint32_t> word{0};
  std::thread waiter([&] {
    while (word.load() == 0) parker().park(word, 0, Deadline::never());
    word.store(2);
    parker().unpark_all(word);
  });
  word.store(1);
  parker().unpark_one(word);
  while (word.load() == 1) parker().park(word, 1, Deadline::never());
  waiter.join();
  EXPECT_EQ(word.load(), 2u);
}

TEST(SystemParker, SleepsAtLeastAsLongAsAsked) {
  const std::uint64_t before = system_clock().monotonic_ns();
  parker().sleep(2ms);
  parker().sleep(0ms);
  parker().sleep(-1ms);
  EXPECT_GE(system_clock().monotonic_ns() - before, 2'000'000u);
}

TEST(SystemRandom, DoesNotRepeat) {
  Random& random = *Runtime::system().random;
  EXPECT_NE(random.next(), random.next());
}

TEST(SystemExecutor, RunsATaskUnderItsName) {
  std::array<char, 16> name{};
  bool ran = false;
  Result<std::unique_ptr<Task>> task = Runtime::system().executor->start("a-name-that-is-too-long", [&] {
    pthread_getname_np(pthread_self(), name.data(), name.size());
    ran = true;
  });
  ASSERT_TRUE(task.ok());
  (*task)->join();
  (*task)->join();
  EXPECT_TRUE(ran);
  EXPECT_EQ(std::string(name.data()), "a-name-that-is-");
}

TEST(SystemExecutor, DroppingATaskWaitsForIt) {
  bool ran = false;
  {
    Result<std::unique_ptr<Task>> task = Runtime::system().executor->start("test", [&] { ran = true; });
    ASSERT_TRUE(task.ok());
  }
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace tier
