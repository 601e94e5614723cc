/// ToyWal: the smallest store that can be right, to show that the simulator tells right from wrong.
///
/// Shape       directory "wal": segments "0", "1", ... of frames {crc, length, salt, sequence, payload}, `per_segment`
///             records each, and "mark", replaced by rename, which names a sequence that was durable when it was
///             written.
/// Invariants  what append() acknowledged comes back after any crash; what comes back is a prefix of what was
///             submitted.
/// Bugs        ToyBug switches one fault on; each must be found by toy_violation() within a few hundred seeds.
#pragma once

#include <optional>
#include <string>

#include "testing/sim_fs.h"

namespace tier::testing {

enum class ToyBug {
  kNone,
  kNoSync,
  kAckBeforeSync,
  kNoDirectorySync,
  kRenameWithoutSync,
  kSyncAgainAfterFailure,
  kWritesSwapped,
  kTailNotErased,
};

struct ToyHistory {
  ToyBug bug = ToyBug::kNone;
  SimProfile profile = SimProfile::kOrdinary;
  bool async = false;  ///< writes and syncs through start() and poll()
  FileMode mode = FileMode::kBuffered;
  int cycles = 3;  ///< of append, crash, recover
  /// The call that the first power cut hits; the seed chooses where there is none.
  std::optional<std::uint64_t> first_cut = {};
};

/// Plays one seeded history; what was wrong with it, or nothing. `trace` gets a hash of all that happened.
std::optional<std::string> toy_violation(std::uint64_t seed, const ToyHistory& history, std::uint64_t* trace = nullptr);

}  // namespace tier::testing
