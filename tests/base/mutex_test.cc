/// Mutex, SharedMutex and Event: exclusion, order and no lost wake-up, under threads (and TSan in its build).
#include "base/mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/counting_parker.h"

namespace tier {
namespace {

using testing::CountingParker;

TEST(Mutex, ExcludesThreads) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 20'000;
  Mutex mutex(*Runtime::system().parker);
  std::uint64_t count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        MutexLock lock(mutex);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, std::uint64_t{kThreads} * kRounds);
}

TEST(Mutex, TryLockAnswersAtOnce) {
  CountingParker parker;
  Mutex mutex(parker);
  ASSERT_TRUE(mutex.try_lock());
  std::thread([&] { EXPECT_FALSE(mutex.try_lock()); }).join();
  mutex.unlock();
  ASSERT_TRUE(mutex.try_lock());
  mutex.unlock();
  EXPECT_EQ(parker.parks(), 0u);
}

TEST(Mutex, AFreeOneNeverParksAndAHeldOneDoes) {
  CountingParker parker;
  Mutex mutex(parker);
  for (int i = 0; i < 100; ++i) MutexLock lock(mutex);
  EXPECT_EQ(parker.parks(), 0u);

  mutex.lock();
  bool entered = false;
  std::thread waiter([&] {
    MutexLock lock(mutex);
    entered = true;
  });
  parker.wait_for_parks(1);
  EXPECT_FALSE(entered);
  mutex.unlock();
  waiter.join();
  EXPECT_TRUE(entered);
}

TEST(SharedMutex, ReadersShare) {
  CountingParker parker;
  SharedMutex mutex(parker);
  SharedLock mine(mutex);
  std::thread([&] { SharedLock theirs(mutex); }).join();  // returns only if both may hold it
  EXPECT_EQ(parker.parks(), 0u);
}

TEST(SharedMutex, AWriterExcludesReadersAndWriters) {
  constexpr int kReaders = 3;
  constexpr int kWriters = 2;
  constexpr std::uint64_t kRounds = 5'000;
  SharedMutex mutex(*Runtime::system().parker);
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  std::atomic<int> torn{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kWriters; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < kRounds; ++i) {
        ExclusiveLock lock(mutex);
        ++first;
        ++second;
      }
    });
  }
  for (int t = 0; t < kReaders; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < kRounds; ++i) {
        SharedLock lock(mutex);
        if (first != second) torn.fetch_add(1, std::memory_order_relaxed);  // relaxed: joined below
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(torn.load(), 0);
  EXPECT_EQ(first, kWriters * kRounds);
}

TEST(SharedMutex, AWaitingWriterComesBeforeNewReaders) {
  CountingParker parker;
  SharedMutex mutex(parker);
  std::vector<char> order;
  mutex.lock_shared();
  std::thread writer([&] {
    ExclusiveLock lock(mutex);
    order.push_back('w');
  });
  parker.wait_for_parks(1);
  std::thread reader([&] {
    SharedLock lock(mutex);
    order.push_back('r');
  });
  parker.wait_for_parks(2);
  mutex.unlock_shared();
  writer.join();
  reader.join();
  EXPECT_EQ(order, (std::vector<char>{'w', 'r'}));
}

TEST(Event, ASignalBeforeTheWaitIsNotLost) {
  Event event(*Runtime::system().parker);
  const std::uint32_t ticket = event.ticket();
  event.signal();
  event.wait(ticket, Deadline::never());  // would hang
  EXPECT_NE(event.ticket(), ticket);
}

TEST(Event, AWaitEndsAtItsDeadline) {
  Event event(*Runtime::system().parker);
  Clock& clock = *Runtime::system().clock;
  const Deadline until = clock.in(1ms);
  while (!clock.passed(until)) event.wait(event.ticket(), until);
  event.wait(event.ticket(), Deadline::now());
}

TEST(Event, WakesAllWaiters) {
  constexpr std::size_t kWaiters = 3;
  CountingParker parker;
  Event event(parker);
  std::atomic<bool> happened{false};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kWaiters; ++t) {
    threads.emplace_back([&] {
      for (;;) {
        const std::uint32_t ticket = event.ticket();
        if (happened.load(std::memory_order_relaxed)) return;  // relaxed: the ticket orders it, Event [E1]
        event.wait(ticket, Deadline::never());
      }
    });
  }
  parker.wait_for_parks(kWaiters);
  happened.store(true, std::memory_order_relaxed);  // relaxed: signal() releases it, Event [E1]
  event.signal();
  for (std::thread& thread : threads) thread.join();
}

TEST(Event, PingPongLosesNothing) {
  constexpr std::uint32_t kRounds = 5'000;
  Event event(*Runtime::system().parker);
  std::atomic<std::uint32_t> turn{0};
  const auto play = [&](std::uint32_t parity) {
    for (std::uint32_t i = parity; i < kRounds; i += 2) {
      for (;;) {
        const std::uint32_t ticket = event.ticket();
        if (turn.load(std::memory_order_relaxed) == i) break;  // relaxed: the ticket orders it, Event [E1]
        event.wait(ticket, Deadline::never());
      }
      turn.store(i + 1, std::memory_order_relaxed);  // relaxed: signal() releases it, Event [E1]
      event.signal();
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
  EXPECT_EQ(turn.load(), kRounds);
}

}  // namespace
}  // namespace tier
