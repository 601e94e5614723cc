/// Goal: after any power cut or kill, in any call, recovery included, an engine has what it acknowledged and nothing that was
/// never written.
/// Method: seeded histories of 6 lives each on the simulated disk (engine_history.h); a failure prints its seed.
#include <cstdlib>
#include <iostream>

#include <gtest/gtest.h>

#include "engine_history.h"

namespace tier::testing {
namespace {

std::uint64_t histories() {
  const char* n = std::getenv("TIER_CRASH_HISTORIES");
  return n != nullptr ? std::strtoull(n, nullptr, 10) : 1500;
}

void run_all(SimProfile profile, std::uint64_t first_seed, std::uint64_t n) {
  EngineHistoryReport sum;
  for (std::uint64_t seed = first_seed; seed < first_seed + n; ++seed) {
    const EngineHistoryReport r = run_engine_history({.seed = seed, .profile = profile});
    ASSERT_EQ(r.failure, "") << "seed " << seed;
    sum.power_cuts += r.power_cuts;
    sum.cuts_while_opening += r.cuts_while_opening;
    sum.kills += r.kills;
    sum.clean_closes += r.clean_closes;
    sum.failed_syncs += r.failed_syncs;
  }
  std::cout << n << " histories from seed " << first_seed << ": " << sum.power_cuts << " power cuts, "
            << sum.cuts_while_opening << " of them while opening, " << sum.kills << " kills, " << sum.clean_closes
            << " clean closes, " << sum.failed_syncs << " failed syncs\n";
  // The generator reaches what it is for.
  EXPECT_GT(sum.cuts_while_opening, 0u);
  EXPECT_GT(sum.kills, 0u);
  EXPECT_GT(sum.clean_closes, 0u);
  EXPECT_GT(sum.failed_syncs, 0u);
}

TEST(EngineCrash, AcknowledgedBytesSurviveAndNothingElseAppears) { run_all(SimProfile::kOrdinary, 1, histories()); }

TEST(EngineCrash, WholeSectorsSurviveAHostileDisk) { run_all(SimProfile::kHostile, 1'000'001, histories() / 2); }

TEST(EngineCrash, ASeedGivesTheSameRunAgain) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const EngineHistoryReport a = run_engine_history({.seed = seed});
    const EngineHistoryReport b = run_engine_history({.seed = seed});
    EXPECT_EQ(a.trace, b.trace) << "seed " << seed;
    EXPECT_EQ(a.failure, b.failure);
  }
}

}  // namespace
}  // namespace tier::testing
