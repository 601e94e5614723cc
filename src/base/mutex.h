/// Mutex and Event: blocking built on the injected Parker, never on the operating system directly.
///
/// Shape       Mutex words: 0 free, 1 held, 2 held and somebody parks (Drepper, "Futexes are tricky", mutex 2).
///             Event: a 32-bit generation; waiters remember the one they saw.
/// Threads     any. A Mutex is not recursive. Lock order: docs/concurrency.md.
/// Cost        uncontended: one exchange to lock, one to unlock.
#pragma once

#include <atomic>
#include <cstdint>

#include "tier/runtime.h"

#if defined(__clang__)
#define TIER_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define TIER_THREAD_ANNOTATION(x)
#endif
#define TIER_GUARDED_BY(x) TIER_THREAD_ANNOTATION(guarded_by(x))
#define TIER_REQUIRES(...) TIER_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
/// For what locks in one function and unlocks in another, as fork handlers do.
#define TIER_NO_THREAD_SAFETY_ANALYSIS TIER_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace tier {

class TIER_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  explicit Mutex(Parker& parker) noexcept : parker_(parker) {}
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() noexcept TIER_THREAD_ANNOTATION(acquire_capability()) {
    std::uint32_t free = 0;
    // [M1] acquire: pairs with the release in unlock().
    if (word_.compare_exchange_strong(free, 1, std::memory_order_acquire, std::memory_order_relaxed)) return;
    while (word_.exchange(2, std::memory_order_acquire) != 0) parker_.park(word_, 2, Deadline::never());
  }
  bool try_lock() noexcept TIER_THREAD_ANNOTATION(try_acquire_capability(true)) {
    std::uint32_t free = 0;
    return word_.compare_exchange_strong(free, 1, std::memory_order_acquire, std::memory_order_relaxed);  // [M1]
  }
  void unlock() noexcept TIER_THREAD_ANNOTATION(release_capability()) {
    if (word_.exchange(0, std::memory_order_release) == 2) parker_.unpark_one(word_);  // [M1]
  }

 private:
  std::atomic<std::uint32_t> word_{0};
  Parker& parker_;
};

class TIER_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) noexcept TIER_THREAD_ANNOTATION(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() TIER_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// Readers share, a writer excludes; a waiting writer holds new readers back. Word: bit 31 a writer holds, bit 30 a writer
/// waits, the rest counts readers.
class TIER_THREAD_ANNOTATION(capability("mutex")) SharedMutex {
 public:
  explicit SharedMutex(Parker& parker) noexcept : parker_(parker) {}
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  void lock_shared() noexcept TIER_THREAD_ANNOTATION(acquire_shared_capability()) {
    std::uint32_t seen = word_.load(std::memory_order_relaxed);  // relaxed: the exchange below decides
    for (;;) {
      if ((seen & (kWriter | kWaiting)) != 0) {
        parker_.park(word_, seen, Deadline::never());
        seen = word_.load(std::memory_order_relaxed);
        continue;
      }
      if (word_.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire, std::memory_order_relaxed)) return;
    }
  }
  void unlock_shared() noexcept TIER_THREAD_ANNOTATION(release_shared_capability()) {
    const std::uint32_t before = word_.fetch_sub(1, std::memory_order_release);
    if (before == (kWaiting | 1)) parker_.unpark_all(word_);
  }
  void lock() noexcept TIER_THREAD_ANNOTATION(acquire_capability()) {
    std::uint32_t seen = word_.load(std::memory_order_relaxed);  // relaxed: the exchange below decides
    for (;;) {
      if ((seen & ~kWaiting) == 0) {
        // Takes the waiting mark with it; another waiting writer sets it again when it wakes.
        if (word_.compare_exchange_weak(seen, kWriter, std::memory_order_acquire, std::memory_order_relaxed)) return;
        continue;
      }
      if ((seen & kWaiting) == 0) {
        if (!word_.compare_exchange_weak(seen, seen | kWaiting, std::memory_order_relaxed, std::memory_order_relaxed))
          continue;
        seen |= kWaiting;
      }
      parker_.park(word_, seen, Deadline::never());
      seen = word_.load(std::memory_order_relaxed);
    }
  }
  void unlock() noexcept TIER_THREAD_ANNOTATION(release_capability()) {
    word_.exchange(0, std::memory_order_release);
    parker_.unpark_all(word_);
  }

 private:
  static constexpr std::uint32_t kWriter = 1u << 31;
  static constexpr std::uint32_t kWaiting = 1u << 30;
  std::atomic<std::uint32_t> word_{0};
  Parker& parker_;
};

class TIER_THREAD_ANNOTATION(scoped_lockable) SharedLock {
 public:
  explicit SharedLock(SharedMutex& mutex) noexcept TIER_THREAD_ANNOTATION(acquire_shared_capability(mutex))
      : mutex_(mutex) {
    mutex_.lock_shared();
  }
  ~SharedLock() TIER_THREAD_ANNOTATION(release_capability()) { mutex_.unlock_shared(); }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

 private:
  SharedMutex& mutex_;
};

class TIER_THREAD_ANNOTATION(scoped_lockable) ExclusiveLock {
 public:
  explicit ExclusiveLock(SharedMutex& mutex) noexcept TIER_THREAD_ANNOTATION(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.lock();
  }
  ~ExclusiveLock() TIER_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  ExclusiveLock(const ExclusiveLock&) = delete;
  ExclusiveLock& operator=(const ExclusiveLock&) = delete;

 private:
  SharedMutex& mutex_;
};

/// Something happened: waiters take ticket(), test their condition, and wait(ticket) if it does not hold.
/// Cost        signal() without waiters: one exchange and one load, no system call.
class Event {
 public:
  explicit Event(Parker& parker) noexcept : parker_(parker) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // [E1] acquire/release: what was done before signal() is seen by whoever reads the new ticket.
  std::uint32_t ticket() const noexcept { return generation_.load(std::memory_order_acquire); }
  void wait(std::uint32_t ticket, Deadline until) noexcept {
    // [E2] Sequentially consistent with signal(): either it sees this waiter, or park() sees the new generation.
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    parker_.park(generation_, ticket, until);
    waiters_.fetch_sub(1, std::memory_order_release);  // nothing depends on it: a count too high only wakes for nothing
  }
  void signal() noexcept {
    generation_.fetch_add(1, std::memory_order_seq_cst);  // [E1] [E2]
    if (waiters_.load(std::memory_order_seq_cst) != 0) parker_.unpark_all(generation_);
  }

 private:
  std::atomic<std::uint32_t> generation_{0};
  std::atomic<std::uint32_t> waiters_{0};
  Parker& parker_;
};

}  // namespace tier
