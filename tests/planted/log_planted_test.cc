/// The harness is no better than what it finds: each planted bug must be caught (reliability goal G17).
///
/// Every bug runs in a child process, since it may also end in an assertion or a deadlock (which count as caught). Histories
/// are the same seeds as in the crash tests, so a bug that is caught here is caught there.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/assert.h"
#include "crash/engine_history.h"
#include "crash/log_history.h"

namespace tier::testing {
namespace {

constexpr std::uint64_t kStatesMost = 60'000;
constexpr std::uint64_t kStatesOfMasked = 3'000;

struct Planted {
  const char* name;
  /// Why no history can show it: a second defence stands behind it. Such a one must stay invisible; if it is caught one day,
  /// the defence has gone or the harness has grown, and its line moves up.
  const char* masked = nullptr;
};
void PrintTo(const Planted& p, std::ostream* out) { *out << p.name; }

// The name, what it breaks (trap numbers are those of docs/reliability.md).
constexpr Planted kBugs[] = {
    {"log_acknowledge_before_sync"},  // 14
    {"log_acknowledge_written"},      // 14: a block written while the sync ran
    {"log_skip_sync"},                // 14
    {"log_ignore_sync_error"},        // 1
    {"log_trust_the_cache"},          // 1, 16: recovered from the cache, clean since a failed sync, never written again
    {"log_release_before_write"},     // 24: bytes change while they are written
    {"log_batch_split"},              // L3
    {"log_mark_runs_ahead"},          // 13: a torn tail looks like damage
    {"log_mark_what_is_written"},     // 13
    {"log_ignore_payload_checksum"},  // 17, 19
    {"log_reclaim_before_manifest"},  // 6, 15
    {"log_ignore_durable_mark",
     "only damage at rest makes it speak, and these histories have none; tests/log/open_test.cc has"},
    {"log_ignore_predecessor", "the sequence (K1) and the erased tail also tell that a block is missing"},
    {"log_ignore_epoch", "the sequence and the erased tail also tell a block that was cut"},
    {"engine_durable_before_sync"},           // 14
    {"engine_sync_again_after_failure"},      // 1
    {"engine_sync_misses_older_segment"},     // 3
    {"engine_skip_header_sync"},              // 5
    {"engine_skip_dir_sync"},                 // 4
    {"engine_reclaim_head_before_manifest"},  // 6, 15
    {"engine_keep_cut_tail"},                 // 11
    {"engine_manifest_same_slot"},            // 15
    {"engine_epoch_not_bumped"},              // 10, 11
};

/// Runs histories until one fails; what it said, or nothing.
std::string hunt(std::string_view name, std::uint64_t most, std::uint64_t& states) {
  const bool engine = name.starts_with("engine_");
  for (std::uint64_t seed = 1; states < most; ++seed) {
    if (engine) {
      const EngineHistoryReport r = run_engine_history({.seed = seed});
      states += r.power_cuts + r.kills;
      if (!r.failure.empty()) return r.failure;
    }
    LogHistory history(LogCase::random(seed));
    const bool held = history.run();
    states += history.states();
    if (!held) return history.failure();
  }
  return {};
}

class PlantedBug : public ::testing::TestWithParam<Planted> {};

TEST_P(PlantedBug, IsCaughtByTheHistories) {
  const Planted bug = GetParam();
  int answer[2];
  ASSERT_EQ(::pipe(answer), 0);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::close(answer[0]);
    ::dup2(answer[1], 2);  // an assertion's last words
    planted_bug = bug.name;
    std::uint64_t states = 0;
    const std::string found = hunt(bug.name, bug.masked != nullptr ? kStatesOfMasked : kStatesMost, states);
    const std::string text = "after " + std::to_string(states) + " states: " + found;
    const ssize_t written = ::write(answer[1], text.data(), text.size());
    ::_exit(written < 0 ? 2 : found.empty() ? 1 : 0);
  }
  ::close(answer[1]);
  std::string said;
  char buffer[1024];
  for (ssize_t n; (n = ::read(answer[0], buffer, sizeof buffer)) > 0;) said.append(buffer, static_cast<std::size_t>(n));
  ::close(answer[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  const bool caught =
      (WIFEXITED(status) && WEXITSTATUS(status) == 0) || (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
  ASSERT_TRUE(caught || (WIFEXITED(status) && WEXITSTATUS(status) == 1)) << "status " << status << ": " << said;
  std::printf("%s %s\n", bug.name, said.substr(0, 600).c_str());
  if (bug.masked != nullptr) {
    EXPECT_FALSE(caught) << "it was held to be invisible: " << bug.masked;
  } else {
    EXPECT_TRUE(caught);
  }
}

TEST(PlantedBugs, NoneIsSwitchedOnByDefault) {
  EXPECT_EQ(planted_bug, "");
  std::uint64_t states = 0;
  EXPECT_EQ(hunt("", 500, states), "");
}

INSTANTIATE_TEST_SUITE_P(All, PlantedBug, ::testing::ValuesIn(kBugs),
                         [](const auto& bug) { return std::string(bug.param.name); });

}  // namespace
}  // namespace tier::testing
