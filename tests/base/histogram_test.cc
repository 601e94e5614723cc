/// Histogram against sorted values: the promised 1.6 % at every percentile and magnitude.
#include "tier/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace tier {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

/// The value at a rank, as percentile() defines it.
std::uint64_t exact(const std::vector<std::uint64_t>& sorted, double p) {
  const double rank = std::ceil(p * static_cast<double>(sorted.size()));
  const std::size_t idx = rank < 1 ? 0 : static_cast<std::size_t>(rank) - 1;
  return sorted[std::min(idx, sorted.size() - 1)];
}

void expect_close(std::uint64_t got, std::uint64_t wanted, double p) {
  const std::uint64_t apart = got > wanted ? got - wanted : wanted - got;
  EXPECT_LE(apart, wanted / 64) << "percentile " << p << ": " << got << ", exactly " << wanted;
}

constexpr double kPercentiles[] = {0.0, 0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0};

TEST(Histogram, EmptyAnswersZero) {
  const Histogram h;
  EXPECT_EQ(h.count(), 0u);
  EXPECT_EQ(h.min(), 0u);
  EXPECT_EQ(h.max(), 0u);
  EXPECT_EQ(h.mean(), 0.0);
  EXPECT_EQ(h.percentile(0.5), 0u);
}

TEST(Histogram, PercentilesAreWithinTheirBound) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const int magnitude : {6, 10, 20, 40, 63}) {
    Histogram h;
    std::vector<std::uint64_t> values;
    for (int i = 0; i < 10'000; ++i) {
      // Even over magnitudes, as latencies are, not over values.
      const std::uint64_t v = random() >> (64 - 1 - random() % static_cast<std::uint64_t>(magnitude));
      values.push_back(v);
      h.record(v);
    }
    std::sort(values.begin(), values.end());
    EXPECT_EQ(h.count(), values.size());
    EXPECT_EQ(h.min(), values.front());
    EXPECT_EQ(h.max(), values.back());
    for (const double p : kPercentiles) expect_close(h.percentile(p), exact(values, p), p);
  }
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram h;
  std::vector<std::uint64_t> values;
  for (std::uint64_t v = 0; v < 128; ++v) {
    values.push_back(v);
    h.record(v);
  }
  for (const double p : kPercentiles) EXPECT_EQ(h.percentile(p), exact(values, p)) << p;
  EXPECT_DOUBLE_EQ(h.mean(), 63.5);
}

TEST(Histogram, TakesEveryValue) {
  for (int bit = 0; bit < 64; ++bit) {
    for (const std::uint64_t v : {(std::uint64_t{1} << bit) - 1, std::uint64_t{1} << bit, (std::uint64_t{1} << bit) + 1}) {
      Histogram h;
      h.record(v);
      EXPECT_EQ(h.percentile(0.5), v);  // one value: its bucket's middle is held within min and max
    }
  }
  Histogram h;
  h.record(0);
  h.record(kMax);
  EXPECT_EQ(h.min(), 0u);
  EXPECT_EQ(h.max(), kMax);
  EXPECT_EQ(h.percentile(0.5), 0u);
  expect_close(h.percentile(1.0), kMax, 1.0);
}

TEST(Histogram, OutOfRangeSharesAreClamped) {
  Histogram h;
  h.record(10);
  h.record(20);
  EXPECT_EQ(h.percentile(-1), 10u);
  EXPECT_EQ(h.percentile(2), 20u);
}

TEST(Histogram, MergingIsRecordingBoth) {
  std::mt19937_64 random(3);
  auto first = std::make_unique<Histogram>();
  auto second = std::make_unique<Histogram>();
  auto both = std::make_unique<Histogram>();
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t v = random() >> (random() % 64);
    (i % 3 == 0 ? *first : *second).record(v);
    both->record(v);
  }
  first->merge(*second);
  first->merge(Histogram());
  EXPECT_EQ(first->count(), both->count());
  EXPECT_EQ(first->min(), both->min());
  EXPECT_EQ(first->max(), both->max());
  EXPECT_DOUBLE_EQ(first->mean(), both->mean());
  for (const double p : kPercentiles) EXPECT_EQ(first->percentile(p), both->percentile(p));
  first->clear();
  EXPECT_EQ(first->count(), 0u);
  EXPECT_EQ(first->percentile(1), 0u);
}

}  // namespace
}  // namespace tier
