/// The main() of every benchmark program: picks cases, runs them round-robin with their limits and peers, writes the
/// table.
///
///   PROGRAM [--list] [--filter TEXT] [--json FILE] [--quick] [--repetitions N] [--seconds S] [--benchmark_...]
///
/// Google Benchmark keeps the cases, runs each repetition and reports it. Three things it does not do are done here: it
/// interleaves repetitions only at random over all cases (a ratio needs case, limit and peers next to each other, again
/// and again), it has no percentiles of single calls, and its table has no column for a limit. So each repetition is
/// one iteration with manual time, and rounds of a group are calls of RunSpecifiedBenchmarks, one a member.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/case.h"
#include "harness/places.h"
#include "harness/table.h"

namespace tier::bench {

// The default; a program that has children defines its own.
[[gnu::weak]] int child_main(int, char** argv) {
  std::fprintf(stderr, "%s runs no child process\n", argv[0]);
  return 2;
}

namespace {

struct Arguments {
  bool list = false;
  bool quick = false;
  std::string filter;
  std::string json;
  unsigned repetitions = 0;  // 0: by effort
  double seconds = 0;        // 0: as long as it takes
};

bool take_value(int argc, char** argv, int& i, std::string_view flag, std::string& into) {
  if (flag != argv[i]) return false;
  if (i + 1 >= argc) {
    std::fprintf(stderr, "%s needs a value\n", argv[i]);
    std::exit(2);
  }
  into = argv[++i];
  return true;
}

/// Takes our own arguments out of argv; what is left is for Google Benchmark.
Arguments parse(int& argc, char** argv) {
  Arguments arguments;
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    std::string value;
    if (std::strcmp(argv[i], "--list") == 0) {
      arguments.list = true;
    } else if (std::strcmp(argv[i], "--quick") == 0) {
      arguments.quick = true;
    } else if (take_value(argc, argv, i, "--repetitions", value)) {
      arguments.repetitions = static_cast<unsigned>(std::strtoul(value.c_str(), nullptr, 10));
    } else if (take_value(argc, argv, i, "--seconds", value)) {
      arguments.seconds = std::strtod(value.c_str(), nullptr);
    } else if (!take_value(argc, argv, i, "--filter", arguments.filter) &&
               !take_value(argc, argv, i, "--json", arguments.json)) {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
  return arguments;
}

struct Group {
  std::vector<const Case*> members;
  std::vector<const Case*> judged;  ///< those that are not there as a limit or peer only
};

bool is_yardstick(const Case& c) { return c.name.starts_with("limit/") || c.name.starts_with("peer/"); }

std::vector<Group> make_groups(const Registry& registry, const std::string& filter) {
  std::vector<Group> groups;
  std::map<std::string, std::size_t> by_key;
  std::set<std::string> placed;
  const auto join = [&](Group& group, const Case* member) {
    if (member == nullptr || std::find(group.members.begin(), group.members.end(), member) != group.members.end())
      return;
    group.members.push_back(member);
    placed.insert(member->name);
  };
  for (const Case& c : registry.cases()) {
    if (is_yardstick(c) || c.name.find(filter) == std::string::npos) continue;
    const std::string key = c.limit.empty() ? c.name : c.limit;
    const auto [it, fresh] = by_key.try_emplace(key, groups.size());
    if (fresh) groups.emplace_back();
    Group& group = groups[it->second];
    join(group, registry.find(c.limit));
    join(group, &c);
    for (const auto& [peer, name] : c.peers) join(group, registry.find(name));
    group.judged.push_back(&c);
  }
  // A limit or peer that is asked for by name runs alone, unless it runs anyway.
  for (const Case& c : registry.cases()) {
    if (filter.empty() || !is_yardstick(c) || c.name.find(filter) == std::string::npos || placed.contains(c.name))
      continue;
    groups.push_back({.members = {&c}, .judged = {}});
  }
  return groups;
}

class Progress : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.error_occurred) {
        std::fprintf(stderr, "  %-48s %s\n", run.run_name.function_name.c_str(), run.error_message.c_str());
      } else {
        std::fprintf(stderr, "  %-48s %14.1f ns\n", run.run_name.function_name.c_str(), run.GetAdjustedRealTime());
      }
    }
  }
};

std::string exactly(const std::string& name) {
  std::string pattern = "^";
  for (const char c : name) {
    if (std::strchr("+.*?()[]{}|^$\\", c) != nullptr) pattern += '\\';
    pattern += c;
  }
  return pattern + "/iterations:1/manual_time$";
}

void run_groups(const std::vector<Group>& groups, const Arguments& arguments, Table& table) {
  Progress progress;
  const unsigned wanted = arguments.repetitions != 0 ? arguments.repetitions : (arguments.quick ? 3 : 7);
  std::size_t members_left = 0;
  for (const Group& group : groups) members_left += group.members.size();
  const double start = seconds_now();

  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Group& group = groups[g];
    const double group_start = seconds_now();
    const double left = arguments.seconds == 0 ? 1e9 : arguments.seconds - (group_start - start);
    const double share = left * static_cast<double>(group.members.size()) / static_cast<double>(members_left);
    members_left -= group.members.size();
    std::fprintf(stderr, "[%zu/%zu]\n", g + 1, groups.size());
    for (unsigned round = 0; round < wanted; ++round) {
      table.begin_round(group.members);
      // Every member is first once: whoever follows a writer of gigabytes must not always be the same one.
      for (std::size_t i = 0; i < group.members.size(); ++i) {
        const Case& c = *group.members[(i + round) % group.members.size()];
        benchmark::RunSpecifiedBenchmarks(&progress, exactly(c.name));
      }
      table.end_round(group.judged);
      const double spent = seconds_now() - group_start;
      const bool enough = spent + spent / (round + 1) > share;
      if (enough && (round >= 1 || left < 0)) break;  // two rounds at least, but one when time is up
    }
  }
}

int run(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--child") == 0) return child_main(argc, argv);
  const Arguments arguments = parse(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;

  // A store of the largest run, the file of its limit, and some air.
  need_space(std::uint64_t{arguments.quick ? 1u : 5u} << 30);
  Registry registry(Effort{arguments.quick});
  register_cases(registry);
  const std::vector<Group> groups = make_groups(registry, arguments.filter);
  if (arguments.list) {
    for (const Case& c : registry.cases()) std::printf("%s\n", c.name.c_str());
    return 0;
  }

  Table table(registry);
  for (const Case& c : registry.cases()) {
    const auto repetition = [&c, &table](benchmark::State& state) {
      for (auto _ : state) {
        Sample sample;
        c.repetition(sample);
        const std::string failure = table.add(c, sample);
        if (failure.empty()) {
          state.SetIterationTime(sample.ns_per_op() * 1e-9);
        } else {
          state.SkipWithError(failure.c_str());
        }
      }
    };
    benchmark::RegisterBenchmark(c.name.c_str(), repetition)->Iterations(1)->UseManualTime();
  }
  run_groups(groups, arguments, table);

  const std::string text = table.json(arguments.quick);
  if (arguments.json.empty()) {
    std::printf("%s\n", text.c_str());
    return 0;
  }
  std::ofstream out(arguments.json);
  out << text << '\n';
  out.close();
  if (!out) {
    std::fprintf(stderr, "cannot write %s\n", arguments.json.c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace tier::bench

int main(int argc, char** argv) { return tier::bench::run(argc, argv); }
