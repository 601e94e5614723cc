/// The log keeps its promises through power cuts, kills and faults at any moment (reliability goals G1 to G4).
///
/// Random histories until the time is used up or the number is reached, then short scripted ones that lose the power at
/// every single call. A failure prints the seed: TIER_CRASH_SEED=seed runs it alone.
#include <gtest/gtest.h>

#include <chrono>
#include <cinttypes>
#include <cstdlib>

#include "crash/log_history.h"

namespace tier::testing {
namespace {

std::uint64_t environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
}

/// Histories `from` to `to`; each one starts from its number, so that any of them can be run again.
void run_histories(std::uint64_t from, std::uint64_t to) {
  std::uint64_t failures = 0, states = 0, records = 0, faults = 0;
  if (const std::uint64_t seed = environment("TIER_CRASH_SEED", 0); seed != 0) {
    if (from != 1) GTEST_SKIP() << "the first test runs it";
    from = seed;
    to = seed + 1;
  }
  for (std::uint64_t seed = from; seed < to; ++seed) {
    LogHistory history(LogCase::random(seed));
    EXPECT_TRUE(history.run()) << history.failure();
    failures += history.failure().empty() ? 0 : 1;
    ASSERT_LT(failures, 8u);
    states += history.states();
    records += history.records();
    faults += history.faults_hit();
  }
  std::printf("%" PRIu64 " histories, %" PRIu64 " crash states, %" PRIu64 " records, %" PRIu64 " faults\n", to - from,
              states, records, faults);
}

#ifdef __SANITIZE_ADDRESS__
constexpr std::uint64_t kUsual = 900;
#else
constexpr std::uint64_t kUsual = 12'000;
#endif
const std::uint64_t kHistories = environment("TIER_CRASH_HISTORIES", kUsual);

// Several tests, so that they run in as many processes.
TEST(LogCrash, RandomHistoriesLoseNothing1) { run_histories(1, 1 + kHistories / 3); }
TEST(LogCrash, RandomHistoriesLoseNothing2) { run_histories(1'000'001, 1'000'001 + kHistories / 3); }
TEST(LogCrash, RandomHistoriesLoseNothing3) { run_histories(2'000'001, 2'000'001 + kHistories / 3); }

TEST(LogCrash, ASeedGivesTheSameHistoryAgain) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    LogHistory one(LogCase::random(seed));
    LogHistory other(LogCase::random(seed));
    EXPECT_EQ(one.run(), other.run()) << "seed " << seed;
    EXPECT_EQ(one.trace(), other.trace()) << "seed " << seed;
    EXPECT_EQ(one.states(), other.states()) << "seed " << seed;
  }
}

/// A short history whose second life loses the power at every call in turn: at creation or recovery, while it works, while
/// it closes. Each place gives the images "nothing survived", "all survived" and some seeded ones.
void cut_everywhere(LogCase what) {
  constexpr std::uint64_t kCallsMost = 4000;
  constexpr std::uint64_t kSeeded = 4;
  what.cycles = 0;
  std::uint64_t states = 0;
  for (unsigned lives = 0; lives < 2; ++lives) {
    for (std::uint64_t calls = 0;; ++calls) {
      ASSERT_LT(calls, kCallsMost);
      bool cut = true;
      for (std::uint64_t image = 0; image < 2 && cut; ++image) {
        what.images = image == 0 ? static_cast<unsigned>(kSeeded) : 0;
        LogHistory history(what);
        for (unsigned life = 0; life < lives; ++life)
          ASSERT_TRUE(history.cycle({.seed = what.seed + life, .end = LogHistory::End::kPower})) << history.failure();
        ASSERT_TRUE(history.cycle({.seed = what.seed + lives,
                                   .end = LogHistory::End::kPowerAtCall,
                                   .calls = calls,
                                   .image = image == 0 ? LogHistory::Image::kAllOld : LogHistory::Image::kAllNew}))
            << "cut at call " << calls << "\n"
            << history.failure();
        cut = history.cut();
        ASSERT_TRUE(history.cycle({.seed = what.seed + 7, .end = LogHistory::End::kClose}))
            << "after a cut at call " << calls << "\n"
            << history.failure();
        states += history.states();
      }
      if (!cut) break;  // the life ended before that call
    }
  }
  std::printf("%" PRIu64 " crash states\n", states);
}

class EveryCall : public ::testing::TestWithParam<int> {};

TEST_P(EveryCall, LosesNothingWhenThePowerGoesThere) {
  LogCase c = LogCase::random(static_cast<std::uint64_t>(GetParam()) + 500);
  c.options.durability = static_cast<Durability>(GetParam() % 3);
  c.options.segment_size = Bytes{4096u << (GetParam() % 2)};
  c.options.max_record = Bytes{1024};
  c.options.ring_size = Bytes{8192};
  c.options.batch_bytes = Bytes{600};
  c.options.batch_records = 4;
  c.options.batch_interval = std::chrono::microseconds(500);
  c.options.queue_full = QueueFull::kBlock;
  c.options.align = GetParam() % 4 == 3 ? BlockAlign::kPage : BlockAlign::kPacked;
  c.options.mode = FileMode::kBuffered;
  c.record_size = 150;
  c.producers = 1 + static_cast<unsigned>(GetParam()) % 2;
  c.operations = 12;
  c.batches = c.truncation = true;
  c.tail = false;
  cut_everywhere(c);
}

INSTANTIATE_TEST_SUITE_P(Scripts, EveryCall, ::testing::Range(0, 6));

}  // namespace
}  // namespace tier::testing
