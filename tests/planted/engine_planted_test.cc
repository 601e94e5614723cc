/// Goal: the engine's crash harness catches each bug that is planted in the engine, within the budget of its own test.
/// Method: the same histories as engine_crash_test.cc with one bug switched on; some history must fail.
#include <gtest/gtest.h>

#include <iostream>

#include "../crash/engine_history.h"
#include "base/assert.h"

namespace tier::testing {
namespace {

class EnginePlanted : public ::testing::TestWithParam<const char*> {
 protected:
  void TearDown() override { planted_bug = ""; }
};

TEST_P(EnginePlanted, IsCaught) {
  planted_bug = GetParam();
  constexpr std::uint64_t kBudget = 3000;
  for (std::uint64_t seed = 1; seed <= kBudget; ++seed) {
    const SimProfile profile = seed % 3 == 0 ? SimProfile::kHostile : SimProfile::kOrdinary;
    const EngineHistoryReport r = run_engine_history({.seed = seed, .profile = profile});
    if (r.failure.empty()) continue;
    std::cout << GetParam() << " caught by history " << seed << ": " << r.failure << "\n";
    return;
  }
  FAIL() << GetParam() << " was not caught in " << kBudget << " histories";
}

INSTANTIATE_TEST_SUITE_P(Bugs, EnginePlanted,
                         ::testing::Values("engine_skip_dir_sync", "engine_durable_before_sync", "engine_manifest_same_slot",
                                           "engine_skip_header_sync", "engine_sync_again_after_failure",
                                           "engine_sync_misses_older_segment", "engine_reclaim_head_before_manifest",
                                           "engine_keep_cut_tail", "engine_epoch_not_bumped"),
                         [](const auto& bug) { return std::string(bug.param); });

}  // namespace
}  // namespace tier::testing
