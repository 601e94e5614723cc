/// A random history of an engine on a disk that loses power, checked after every reopening.
///
/// Model       for each byte of the address space the values that may be read after a crash: what the last successful sync
///             covered, and everything written since; the last one is what is read without a crash.
/// Checks      after each reopening: acknowledged durable bytes are there and nothing that was never written; the tails, the
///             epoch, begin and the owner's data are those acknowledged, or those of the call that was cut short; above the
///             tail everything reads zero. While it runs: each read gives exactly the last value.
#pragma once

#include <cstdint>
#include <string>

#include "testing/sim_disk.h"

namespace tier::testing {

struct EngineHistoryOptions {
  std::uint64_t seed = 1;
  int cycles = 6;                                 ///< crash, recover, write
  SimProfile profile = SimProfile::kOrdinary;     ///< hostile: whole sectors only
  int operations = 60;                            ///< of a cycle, at most
};

struct EngineHistoryReport {
  std::string failure;  ///< empty: all held
  std::uint64_t power_cuts = 0;
  std::uint64_t cuts_while_opening = 0;
  std::uint64_t kills = 0;
  std::uint64_t clean_closes = 0;
  std::uint64_t failed_syncs = 0;
  std::uint64_t trace = 0;
};

EngineHistoryReport run_engine_history(const EngineHistoryOptions& options);

}  // namespace tier::testing
