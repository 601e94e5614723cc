#include "harness/clock.h"

#include <algorithm>
#include <cmath>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tier::bench {
namespace {

bool has_invariant_counter() noexcept {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
#else
  return false;
#endif
}

}  // namespace

const StampClock& StampClock::instance() {
  static const StampClock clock;
  return clock;
}

StampClock::StampClock() : counter_(has_invariant_counter()) {
  if (counter_) find_rate();
  find_step();
  find_cost();
}

void StampClock::find_rate() {
  // The middle one of a few short calibrations: one that was interrupted between its two readings gives a rate that is
  // off.
  std::vector<double> rates;
  for (int i = 0; i < 7; ++i) {
    const std::uint64_t from_ns = monotonic_ns();
    const std::uint64_t from = now();
    std::uint64_t to_ns = from_ns;
    while (to_ns - from_ns < 5'000'000) to_ns = monotonic_ns();
    rates.push_back(static_cast<double>(to_ns - from_ns) / static_cast<double>(now() - from));
  }
  std::sort(rates.begin(), rates.end());
  ns_per_tick_ = rates[rates.size() / 2];
}

void StampClock::find_step() {
  // Work of many lengths between two stamps. On a fine clock the differences take every value; on a coarse one they are
  // multiples of its step, give or take the rounding to whole ticks.
  std::vector<std::uint64_t> gaps;
  volatile std::uint64_t sink = 1;
  for (unsigned i = 0; i < 50'000; ++i) {
    const std::uint64_t before = now();
    for (unsigned k = 0; k < i % 41; ++k) sink = sink * 7;
    if (const std::uint64_t gap = now() - before; gap != 0) gaps.push_back(gap);
  }
  if (gaps.empty()) return;
  std::sort(gaps.begin(), gaps.end());
  const std::uint64_t least = gaps[gaps.size() / 1000];  // not the very first, which may be a fluke
  double step = static_cast<double>(least);
  // Twice: the first guess is good enough to count the steps in each gap, and their mean is a better guess.
  double near = 0, steps = 0, ticks = 0;
  for (int pass = 0; pass < 2; ++pass) {
    near = steps = ticks = 0;
    double looked_at = 0;
    for (const std::uint64_t gap : gaps) {
      if (gap > 8 * least) break;
      const double g = static_cast<double>(gap);
      const double whole = std::round(g / step);
      near += std::abs(g - whole * step) <= 1.5 + 0.01 * g ? 1 : 0;
      steps += whole;
      ticks += g;
      ++looked_at;
    }
    near /= looked_at;
    if (near > 0.95) step = ticks / steps;
  }
  if (near > 0.95 && step >= 8) step_ticks_ = step;
}

void StampClock::find_cost() {
  double least = 1e18;
  for (int batch = 0; batch < 50; ++batch) {
    constexpr int kStamps = 2000;
    const std::uint64_t from = now();
    std::uint64_t last = from;
    for (int i = 0; i < kStamps; ++i) {
      last = now();
      asm volatile("" : : "r"(last) : "memory");  // every stamp is used, as in a measured loop
    }
    least = std::min(least, static_cast<double>(last - from) / kStamps);
  }
  cost_ticks_ = least;
}

}  // namespace tier::bench
