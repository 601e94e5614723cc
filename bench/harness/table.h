/// Table: what all repetitions measured, as the JSON that docs and comparisons are made from.
///
/// Shape       one entry a case: medians over repetitions; ratios from rounds (harness/case.h, B2); null where not
///             measured.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/case.h"

namespace tier::bench {

class Table {
 public:
  explicit Table(const Registry& registry) : registry_(registry) {}

  /// A round of a group begins: its members' figures of the round before are forgotten for ratios.
  void begin_round(const std::vector<const Case*>& members);
  /// Takes a repetition; gives the reason if it has no figure.
  std::string add(const Case& c, const Sample& sample);
  /// The round is over: notes the ratios of the cases that are judged.
  void end_round(const std::vector<const Case*>& judged);

  std::string json(bool quick) const;

 private:
  struct Entry {
    std::vector<double> ns_per_op, bytes_per_s, p50, p99, p999, allocs;
    std::vector<double> limit_ratio;
    std::map<std::string, std::vector<double>> peer_ratio;
    std::map<std::string, std::vector<double>> extra;
    std::uint64_t stamped_calls = 0;
    std::string failure;
  };
  const Registry& registry_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, double> round_;  // ns_per_op of this round
};

}  // namespace tier::bench
