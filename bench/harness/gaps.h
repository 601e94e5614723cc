/// Gaps: the differences between stamps, with percentiles finer than the clock's own step.
///
/// Shape       counts of whole steps up to 4,096 of them, a log-linear histogram above.
/// Invariants  (G1) some processors advance their counter in steps of many ticks (10 ns). A call of 25 ns then shows as
///                  20 or 30, each half of the time, for its start falls anywhere in a step. So a count of k steps
///                  stands for durations from k - 1/2 to k + 1/2, and a percentile is interpolated in there. Error for a
///                  constant duration: a tenth of a step.
/// Threads     one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "harness/clock.h"
#include "tier/histogram.h"

namespace tier::bench {

class Gaps {
 public:
  void record(std::uint64_t ticks) {
    if (exact_.empty()) exact_.resize(kExact);
    const double steps = static_cast<double>(ticks) / StampClock::instance().step_ticks();
    const std::uint64_t whole = static_cast<std::uint64_t>(steps + 0.5);
    if (whole < kExact) {
      ++exact_[whole];
    } else {
      above_.record(ticks);
    }
    ++count_;
  }
  std::uint64_t count() const noexcept { return count_; }

  /// In ticks, the cost of a stamp included; 0 when empty.
  double percentile(double p) const noexcept {
    const double rank = p * static_cast<double>(count_);
    const double step = StampClock::instance().step_ticks();
    double seen = 0;
    for (std::size_t k = 0; k < exact_.size(); ++k) {
      const double here = static_cast<double>(exact_[k]);
      if (here > 0 && seen + here >= rank) {
        return std::max(0.0, (static_cast<double>(k) - 0.5 + (rank - seen) / here) * step);
      }
      seen += here;
    }
    if (above_.count() == 0) return 0;
    return static_cast<double>(above_.percentile((rank - seen) / static_cast<double>(above_.count())));
  }

 private:
  static constexpr std::size_t kExact = 4096;
  std::vector<std::uint64_t> exact_;
  Histogram above_;
  std::uint64_t count_ = 0;
};

}  // namespace tier::bench
