/// LogModel: what a log has promised, and whether a log keeps it.
///
/// Shape       one entry a sequence, filled when an append returns it; attempts that ended in an error wait in limbo, for
///             they may have been taken under a sequence that nobody knows.
/// Invariants  (Q1) acknowledged durable <= what is found: an acknowledgement is a lower bound for ever.
///             (Q2) what is found is, sequence by sequence, what was submitted under it, or a whole attempt in limbo, each
///                  used once; so nothing is invented, half a batch is never there, nothing that was cut comes back.
///             (Q3) the first sequence lies between the truncations that were acknowledged and those that were asked for.
/// Threads     one (fibers of one SimRuntime).
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tier::testing {

class LogModel {
 public:
  /// The records of one append or batch, from before the call until its outcome is known.
  struct Attempt {
    std::vector<std::string> records;
  };
  using Ticket = std::list<Attempt>::iterator;

  // The history tells.
  Ticket submit(std::vector<std::string> records) { return limbo_.insert(limbo_.end(), Attempt{std::move(records)}); }
  /// The log took it, from sequence `first` on.
  void taken(Ticket ticket, std::uint64_t first);
  /// The log refused it and says so: it must never be found.
  void refused(Ticket ticket) { limbo_.erase(ticket); }
  /// A reservation that was given up: spent, and read as void.
  void abandoned(std::uint64_t sequence);
  /// Everything below `end` is durable, says the log.
  void durable(std::uint64_t end);
  /// Everything below `end` is written, says the log: it survives a kill.
  void written(std::uint64_t end) { written_ = end > written_ ? end : written_; }
  void truncation_asked(std::uint64_t first) { first_asked_ = first > first_asked_ ? first : first_asked_; }
  void first(std::uint64_t first);
  /// A reader saw it.
  void saw(std::uint64_t sequence, std::string_view bytes);

  std::uint64_t durable() const noexcept { return durable_; }
  std::uint64_t first() const noexcept { return first_; }
  /// One past the last sequence that an append returned.
  std::uint64_t returned() const noexcept { return entries_.size(); }

  // The log as it is found.
  struct Found {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::vector<std::optional<std::string>> records;  ///< of [from, to); none: void
  };
  /// Q1 to Q3; `killed`: the cache survived, so what was written is there, too.
  bool check(const Found& found, bool killed);
  /// From here on this is what the log is, and all of it is durable.
  void adopt(const Found& found);

  /// What was broken first; empty if nothing.
  const std::string& failure() const noexcept { return failure_; }
  [[gnu::format(printf, 2, 3)]] bool fail(const char* format, ...);

 private:
  struct Entry {
    enum class Kind : std::uint8_t { kUnknown, kRecord, kVoid };
    Kind kind = Kind::kUnknown;
    std::uint32_t batch_at = 0;  ///< place in its batch
    std::uint32_t batch_of = 1;
    std::string bytes;
  };
  Entry& entry(std::uint64_t sequence);
  bool explain_limbo(const Found& found, std::uint64_t sequence, std::vector<Ticket>& unused) const;

  std::vector<Entry> entries_;  // by sequence
  std::list<Attempt> limbo_;
  std::map<std::uint64_t, std::string> seen_;  // by readers, before the append returned
  std::uint64_t durable_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t first_ = 0;
  std::uint64_t first_asked_ = 0;
  std::string failure_;
};

}  // namespace tier::testing
