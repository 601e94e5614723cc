/// StampClock: the cheapest clock whose differences can be trusted, for stamping every call of a measured loop.
///
/// Shape       the time stamp counter where it ticks at one rate on all cores (invariant TSC), calibrated against the
///             monotonic clock when the program starts; the monotonic clock elsewhere.
/// Invariants  (C1) a loop that takes one stamp a call sees calls back to back: the differences add up to the loop's
///                  time.
///             (C2) cost_ticks() is what a stamp costs an otherwise empty loop in this run (the quietest of many short
///                  ones).
/// Limits      the counter does not wait for earlier instructions to end, so a short call hides part of its stamp's
///             cost. measure.h therefore takes means from loops without stamps, and what a stamp costs from both kinds.
#pragma once

#include <chrono>
#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace tier::bench {

class StampClock {
 public:
  static const StampClock& instance();

  std::uint64_t now() const noexcept {
#if defined(__x86_64__)
    if (counter_) [[likely]]
      return __rdtsc();
#endif
    return monotonic_ns();
  }
  double ns(double ticks) const noexcept { return ticks * ns_per_tick_; }
  double ns(std::uint64_t ticks) const noexcept { return ns(static_cast<double>(ticks)); }
  double cost_ticks() const noexcept { return cost_ticks_; }
  const char* name() const noexcept { return counter_ ? "rdtsc" : "steady_clock"; }
  /// By how much the clock advances at a time: 1 tick, or many where the processor's counter is coarse.
  double step_ticks() const noexcept { return step_ticks_; }

  static std::uint64_t monotonic_ns() noexcept {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
  }

 private:
  StampClock();
  void find_rate();
  void find_step();
  void find_cost();
  bool counter_ = false;
  double ns_per_tick_ = 1;
  double cost_ticks_ = 0;
  double step_ticks_ = 1;
};

/// The monotonic clock in seconds, for budgets.
inline double seconds_now() noexcept { return static_cast<double>(StampClock::monotonic_ns()) * 1e-9; }

}  // namespace tier::bench
