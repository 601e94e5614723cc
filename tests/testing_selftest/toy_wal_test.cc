/// Goal: the simulator tells a store that is right from one that is not. Method: a toy log that syncs properly never
/// breaks its promise; the same log with one fault planted is caught within 500 seeds.
#include <gtest/gtest.h>

#include <cstdio>

#include "testing_selftest/toy_wal.h"

namespace tier::testing {
namespace {

constexpr std::uint64_t kFirstSeed = 1;
// Sanitizers look for other faults, at a tenth of the speed.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kShare = 10;
#else
constexpr std::uint64_t kShare = 1;
#endif

void expect_right(const ToyHistory& history, std::uint64_t seeds) {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + seeds / kShare; ++seed)
    if (const auto wrong = toy_violation(seed, history); wrong) GTEST_FAIL() << *wrong;
}

void expect_caught(ToyHistory history) {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + 500; ++seed)
    if (const auto wrong = toy_violation(seed, history); wrong) {
      std::printf("caught: %s\n", wrong->c_str());
      return;
    }
  GTEST_FAIL() << "not caught within 500 seeds";
}

TEST(ToyWal, LosesNothingThatItAcknowledged) { expect_right({}, 2000); }
TEST(ToyWal, LosesNothingOnAHostileDisk) { expect_right({.profile = SimProfile::kHostile}, 1000); }
TEST(ToyWal, LosesNothingWithOperationsInFlight) { expect_right({.async = true}, 500); }
TEST(ToyWal, LosesNothingWithDirectWrites) { expect_right({.mode = FileMode::kDirect}, 500); }
TEST(ToyWal, LosesNothingWithWriteThrough) { expect_right({.mode = FileMode::kWriteThrough}, 500); }
TEST(ToyWal, LosesNothingWithWriteThroughAndNoSync) {
  expect_right({.bug = ToyBug::kNoSync, .mode = FileMode::kDirectWriteThrough}, 500);
}

TEST(ToyWalBug, NoSyncIsCaught) { expect_caught({.bug = ToyBug::kNoSync}); }
TEST(ToyWalBug, AckBeforeSyncIsCaught) { expect_caught({.bug = ToyBug::kAckBeforeSync}); }
TEST(ToyWalBug, NoDirectorySyncIsCaught) { expect_caught({.bug = ToyBug::kNoDirectorySync}); }
TEST(ToyWalBug, RenameWithoutSyncIsCaught) { expect_caught({.bug = ToyBug::kRenameWithoutSync}); }
TEST(ToyWalBug, SyncAgainAfterFailureIsCaught) { expect_caught({.bug = ToyBug::kSyncAgainAfterFailure}); }
TEST(ToyWalBug, WritesSwappedIsCaught) { expect_caught({.bug = ToyBug::kWritesSwapped}); }
TEST(ToyWalBug, TailNotErasedIsCaught) {
  expect_caught({.bug = ToyBug::kTailNotErased, .profile = SimProfile::kHostile});
}

TEST(ToyWal, LosesNothingAtAnyCallOfItsHistory) {
  for (std::uint64_t call = 0; call < 40 / kShare; ++call)
    for (std::uint64_t seed = 1; seed <= 20; ++seed)
      if (const auto wrong = toy_violation(seed, {.cycles = 2, .first_cut = call}); wrong) GTEST_FAIL() << *wrong;
}

TEST(ToyWal, SameSeedGivesTheSameTrace) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const ToyHistory history{.async = seed % 2 == 0};
    std::uint64_t first = 0, second = 0, other = 0;
    ASSERT_EQ(toy_violation(seed, history, &first), toy_violation(seed, history, &second));
    ASSERT_EQ(first, second) << "seed " << seed;
    toy_violation(seed + 1000, history, &other);
    ASSERT_NE(first, other) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tier::testing
