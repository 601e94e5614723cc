/// Runtime: what the host hands in. Time, randomness, background tasks, and the one way to wait.
///
/// No code of Tier reads a clock, starts a thread or blocks one except through these interfaces, so the whole stack also
/// runs on a simulator's virtual time with fibers for tasks (tests/testing). `Runtime::system()` is the operating system's.
///
/// Threads     every method may be called from any task.
/// Units       nanoseconds; a Deadline is a point of the runtime's monotonic clock.
#pragma once

#include <atomic>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "tier/result.h"
#include "tier/types.h"

namespace tier {

using Duration = std::chrono::nanoseconds;
using namespace std::chrono_literals;  // NOLINT: options read as 10ms, 5s

/// A point of the monotonic clock, after which a wait ends.
struct Deadline {
  std::uint64_t ns = 0;
  constexpr auto operator<=>(const Deadline&) const noexcept = default;
  static constexpr Deadline never() noexcept { return {~std::uint64_t{0}}; }
  /// Already past: do not wait at all.
  static constexpr Deadline now() noexcept { return {0}; }
};

class Clock {
 public:
  virtual ~Clock() = default;
  /// Never goes back. Waits and time-outs use only this one.
  virtual std::uint64_t monotonic_ns() noexcept = 0;
  /// Since 1970; may jump both ways, so nothing is ordered by it.
  virtual std::uint64_t wall_ns() noexcept = 0;

  Deadline in(Duration d) noexcept {
    if (d == Duration::max()) return Deadline::never();
    return {monotonic_ns() + static_cast<std::uint64_t>(d.count() < 0 ? 0 : d.count())};
  }
  bool passed(Deadline d) noexcept { return d != Deadline::never() && monotonic_ns() >= d.ns; }
};

class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint64_t next() noexcept = 0;
};

/// Waits on a 32-bit word, as a futex does. A waiter reads the word, decides that it must wait, and parks on the value it
/// read; whoever changes the condition changes the word and then unparks.
class Parker {
 public:
  virtual ~Parker() = default;
  /// Returns at once if `word` != `expected`; else when unparked, at the deadline, or for no reason. Callers loop.
  virtual void park(const std::atomic<std::uint32_t>& word, std::uint32_t expected, Deadline until) noexcept = 0;
  virtual void unpark_one(const std::atomic<std::uint32_t>& word) noexcept = 0;
  virtual void unpark_all(const std::atomic<std::uint32_t>& word) noexcept = 0;
  /// Lets others run: the polite form of spinning.
  virtual void yield() noexcept = 0;
  /// Sleeps for at least `d`.
  virtual void sleep(Duration d) noexcept = 0;
};

/// A running background task; joined by join() or its destructor.
class Task {
 public:
  virtual ~Task() = default;
  virtual void join() noexcept = 0;
};

class Executor {
 public:
  virtual ~Executor() = default;
  /// Runs `body` concurrently under a short name (15 characters show up in system tools).
  virtual Result<std::unique_ptr<Task>> start(const char* name, std::function<void()> body) = 0;
};

struct Runtime {
  Clock* clock;
  Random* random;
  Parker* parker;
  Executor* executor;
  /// The operating system's clock, entropy, futexes and threads. Lives as long as the process.
  static Runtime& system() noexcept;
};

}  // namespace tier
