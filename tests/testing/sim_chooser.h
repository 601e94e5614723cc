/// Who decides a crash: for every sector, size and name whether its newest state, an older one or none reached the
/// medium.
///
/// Shape       SimChooser is asked in the order of the changes; the base class answers for a plain medium, the seeded
///             one adds torn growths and, on a hostile medium, garbage, unreadable sectors and stale bytes (sim_disk.h,
///             D1-D3).
/// Invariants  (C1) the same answers give the same image.
#pragma once

#include <cstdint>
#include <vector>

#include "testing/sim_random.h"

namespace tier::testing {

enum class SimProfile : std::uint8_t { kOrdinary, kHostile };

/// One undecided thing at a crash.
struct SimChoice {
  enum class Kind : std::uint8_t { kSector, kSize, kTruncate, kAllocate, kName };
  Kind kind = Kind::kSector;
  std::uint64_t order = 0;   ///< of the change
  std::uint64_t inode = 0;   ///< the file, or the directory of a name
  std::uint64_t sector = 0;  ///< kSector
};

/// Decides a crash. The base class keeps or loses; the rest is what a seeded one adds.
class SimChooser {
 public:
  enum class Fate : std::uint8_t { kWhole, kGarbage, kUnreadable };
  virtual ~SimChooser() = default;
  /// Did this state reach the medium? Asked in order; a later state of the same sector replaces an earlier one.
  virtual bool keep(const SimChoice& choice) = 0;
  /// A kept growth from `from` to `to`: the size that is seen.
  virtual std::uint64_t grown(std::uint64_t from, std::uint64_t to);
  /// What a sector in flight becomes.
  virtual Fate fate(const SimChoice& choice);
  /// Whether new space whose bytes were lost shows old bytes instead of zeros.
  virtual bool stale(const SimChoice& choice);
  /// Whether names survive as a prefix per directory (D3).
  virtual bool names_in_order() const { return true; }
  /// For garbage and the choice of stale bytes.
  virtual std::uint64_t number() { return 0; }
};

/// Everything survived.
class SimKeepAll final : public SimChooser {
 public:
  bool keep(const SimChoice&) override { return true; }
};

/// Nothing did.
class SimKeepNone final : public SimChooser {
 public:
  bool keep(const SimChoice&) override { return false; }
};

/// What came first did.
class SimKeepPrefix final : public SimChooser {
 public:
  explicit SimKeepPrefix(std::uint64_t last_order) noexcept : last_(last_order) {}
  bool keep(const SimChoice& choice) override { return choice.order <= last_; }

 private:
  const std::uint64_t last_;
};

/// Coins, with a bias for each file and each directory, so that "this file whole, that one not at all", the case that
/// catches wrong orders between files, is as frequent as a random mixture. Now and then a prefix, all or nothing.
class SimSeededCrash final : public SimChooser {
 public:
  /// The orders are those of the oldest and newest undecided change.
  SimSeededCrash(std::uint64_t seed, SimProfile profile, std::uint64_t first_order, std::uint64_t last_order);
  bool keep(const SimChoice& choice) override;
  std::uint64_t grown(std::uint64_t from, std::uint64_t to) override;
  Fate fate(const SimChoice& choice) override;
  bool stale(const SimChoice& choice) override;
  bool names_in_order() const override { return !hostile_; }
  std::uint64_t number() override { return random_.next(); }

 private:
  const std::uint64_t seed_;
  SimRandom random_;
  const bool hostile_;
  bool coins_ = false;
  std::uint64_t limit_ = 0;
  std::uint32_t garbage_ = 0;  // in 1,024
};

/// Every image of a moment, one after the other: for short histories (the number of images doubles with every choice).
class SimEveryCrash final : public SimChooser {
 public:
  /// Goes to the next image; false when all have been seen. Then crash(*this) a fresh clone of the same moment.
  bool next();
  bool keep(const SimChoice& choice) override;

 private:
  std::vector<bool> choices_;
  std::size_t asked_ = 0;
  bool begun_ = false;
};

}  // namespace tier::testing
