/// Seeded random histories of a log that loses its power, its process, its disk's good will, and goes on.
///
/// Shape       a LogCase says what a history does (a swarm: each seed switches some things off altogether); LogHistory runs
///             its cycles: open, check what was found, work with several fibers, end in one of many ways, crash.
///             log_model.h is the oracle. One seed, one history, to the byte.
/// Cost        some milliseconds a cycle. A crash image that is opened and checked counts as a state.
///
/// TIER_CRASH_SEED=n runs that seed alone; TIER_CRASH_HISTORIES=n so many of them (tests/crash/log_crash_test.cc).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "crash/log_model.h"
#include "testing/sim_disk.h"
#include "tier/log.h"

namespace tier::testing {

struct LogCase {
  std::uint64_t seed = 1;
  LogOptions options;
  SimDiskOptions disk;
  unsigned cycles = 5;
  unsigned images = 2;  ///< more ways to lose each power cut, opened and checked
  unsigned producers = 2;
  unsigned operations = 12;  ///< of each producer, a cycle
  unsigned record_size = 0;  ///< all of this size; 0: mixed
  bool batches = true;
  bool reservations = true;
  bool truncation = true;
  bool tail = true;  ///< a fiber that reads on
  bool faults = false;
  bool kills = true;

  static LogCase random(std::uint64_t seed);
  std::string describe() const;
};

class LogHistory {
 public:
  /// How a cycle ends.
  enum class End : std::uint8_t {
    kPowerAtCall,  ///< while a call runs
    kPower,        ///< after the work, nothing closed
    kKill,         ///< the process; the cache stays
    kClose,
    kCloseAndPower  ///< closed, then what was not synced is lost
  };
  enum class Image : std::uint8_t { kSeeded, kAllOld, kAllNew };
  struct Plan {
    std::uint64_t seed = 1;
    End end = End::kPowerAtCall;
    std::uint64_t calls = 0;  ///< kPowerAtCall: how many go well
    bool faults = false;
    Image image = Image::kSeeded;
  };

  explicit LogHistory(const LogCase& what);
  ~LogHistory();

  /// All cycles of the case. False if something was broken: failure() says what.
  bool run();
  /// One cycle, then the crash it ends with.
  bool cycle(const Plan& plan);
  /// Opens the disk as it is, with power, and compares. A power cut's other outcomes are looked at in the same way.
  bool check_image(const std::shared_ptr<SimDisk>& disk, std::uint64_t seed);

  /// Names the seed, the cycle and the case; empty if nothing was broken.
  const std::string& failure() const noexcept { return failure_; }
  /// Crash images that were opened and checked.
  std::uint64_t states() const noexcept { return states_; }
  /// Whether the last cycle's power cut came before its work was done.
  bool cut() const noexcept { return cut_; }
  std::uint64_t records() const noexcept { return records_; }
  std::uint64_t trace() const noexcept { return trace_; }
  std::uint64_t faults_hit() const noexcept { return faults_hit_; }

 private:
  class Session;
  Plan random_plan(unsigned cycle);
  bool settle(const Plan& plan);
  bool report(const std::string& what);

  const LogCase case_;
  SimRandom random_;
  std::shared_ptr<SimDisk> disk_;
  LogModel model_;
  bool exists_ = false;        // an open has succeeded: the store must be there
  bool killed_ = false;        // no power was lost since the last session: written records are there
  bool closed_clean_ = false;  // the last session closed, and nothing has touched the store since
  bool cut_ = false;
  std::uint32_t epoch_ = 0;  // of the last open
  std::uint64_t next_record_ = 1;
  std::uint64_t states_ = 0;
  std::uint64_t records_ = 0;
  std::uint64_t trace_ = 0;
  std::uint64_t faults_hit_ = 0;
  unsigned cycle_ = 0;
  std::string plan_;  // of the last cycle, in words
  std::string failure_;
};

}  // namespace tier::testing
