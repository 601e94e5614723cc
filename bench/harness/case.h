/// Case: one named measurement, and what it is held against.
///
/// Shape       a program registers cases when it starts; each names its limit (the least that any code must spend on
///             the same job) and its peers (other stores that do the same job), which are cases too.
///             group = the cases of one limit, the limit, and their peers: run round-robin, repetition by repetition,
///             so that a drift of the machine meets all sides of a ratio alike.
/// Invariants  (B1) a repetition does everything that is not measured (open, warm, drain, remove) outside its timed
///                  part.
///             (B2) a ratio is the median over repetitions of case / limit of the same round; above 1 is slower.
///             (B3) a name is registered once; a limit or peer that several cases name is measured in each one's group.
/// Names       room/verb/file-system/size/threads; limits limit/...; peers peer/...
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness/gaps.h"

namespace tier::bench {

/// What one repetition measured.
struct Sample {
  double ns = 0;          ///< wall time of the timed parts
  std::uint64_t ops = 0;  ///< in that time, by all threads together: ns_per_op = ns / ops
  std::uint64_t bytes = 0;
  std::uint64_t allocations = 0;
  std::uint64_t allocation_ops = 0;     ///< operations during which allocations were counted; 0: not counted
  Gaps latency;                         ///< of single calls, the stamp's cost included
  double stamp_cost_ticks = 0;          ///< to be taken off every percentile
  std::map<std::string, double> extra;  ///< more columns: blocks, syncs, ...
  std::string failure;                  ///< why there is no figure; empty: there is one

  double ns_per_op() const noexcept { return ops == 0 ? 0 : ns / static_cast<double>(ops); }
};

struct Case {
  std::string name;
  std::function<void(Sample&)> repetition;
  std::string limit;                         ///< "" if none makes sense
  std::map<std::string, std::string> peers;  ///< peer's name -> case
  std::string note;                          ///< how to read it, kept in the document
};

/// How much to do; --quick keeps every case and does less in each.
struct Effort {
  bool quick = false;
  std::uint64_t pick(std::uint64_t full, std::uint64_t quick_one) const noexcept { return quick ? quick_one : full; }
  double pick(double full, double quick_one) const noexcept { return quick ? quick_one : full; }
};

class Registry {
 public:
  explicit Registry(Effort effort) : effort_(effort) {}
  Effort effort() const noexcept { return effort_; }
  /// Adds a case. A name that is there already (a limit that several need) is left as it is.
  void add(std::string name, std::function<void(Sample&)> repetition, std::string limit = {},
           std::map<std::string, std::string> peers = {}, std::string note = {}) {
    if (!names_.emplace(name, cases_.size()).second) return;
    cases_.push_back({std::move(name), std::move(repetition), std::move(limit), std::move(peers), std::move(note)});
  }
  const std::vector<Case>& cases() const noexcept { return cases_; }
  const Case* find(const std::string& name) const {
    const auto it = names_.find(name);
    return it == names_.end() ? nullptr : &cases_[it->second];
  }

 private:
  Effort effort_;
  std::vector<Case> cases_;
  std::map<std::string, std::size_t> names_;
};

/// Each program defines it: adds its cases and the limits and peers that they name.
void register_cases(Registry& registry);
/// A program that runs itself as a child process (to be killed) gets the child's arguments here; the default knows
/// none.
int child_main(int argc, char** argv);

/// A case's name from its parts: text as it is, numbers in digits.
template <class... Parts>
std::string case_name(const Parts&... parts) {
  std::string name;
  const auto add = [&name](const auto& part) {
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(part)>>) {
      name += std::to_string(part);
    } else {
      name += part;
    }
  };
  (add(parts), ...);
  return name;
}

}  // namespace tier::bench
