/// tier log verify: reads everything, checks every checksum and link, and lists each damaged place. Opens read-only.
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "command.h"
#include "exit_codes.h"
#include "units.h"

namespace tier::cli {
namespace {

struct VerifyOptions {
  std::string url;
  bool json = false;
};

/// What verify() reports goes here as it comes; text is printed at once, JSON at the end.
struct Findings {
  bool json = false;
  std::vector<LogDamage> damages;

  static void add(void* context, const LogDamage& damage) {
    auto& self = *static_cast<Findings*>(context);
    if (self.json) {
      self.damages.push_back(damage);
      return;
    }
    fmt::print("damage: file '{}' at offset {}, {} bytes: {}; ", damage.file, damage.offset, damage.length,
               damage.what);
    if (damage.to > damage.from) {
      fmt::print("sequences {} to {} are missing\n", damage.from.value, damage.to.value - 1);
    } else {
      fmt::print("no sequence is known to be missing\n");
    }
  }
};

void print_json(const Findings& found, const LogVerification& v, double seconds) {
  nlohmann::ordered_json json;
  json["ok"] = v.damages == 0;
  json["records"] = v.records;
  json["bytes"] = v.bytes;
  json["blocks"] = v.blocks;
  json["from"] = v.from.value;
  json["to"] = v.to.value;
  json["seconds"] = seconds;
  json["damages"] = nlohmann::ordered_json::array();
  for (const LogDamage& d : found.damages) {
    json["damages"].push_back({{"file", d.file},
                               {"offset", d.offset},
                               {"length", d.length},
                               {"from", d.from.value},
                               {"to", d.to.value},
                               {"what", d.what}});
  }
  fmt::print("{}\n", json.dump(2));
}

int run(const VerifyOptions& o) {
  auto opened = open_log_to_read(o.url);
  if (!opened.ok()) return report_open_failure(opened.status(), o.url);
  Clock& clock = *Runtime::system().clock;
  const std::uint64_t start = clock.monotonic_ns();
  Findings found{o.json, {}};
  const auto verified = (*opened)->verify(Findings::add, &found);
  if (!verified.ok()) return report(verified.status(), o.url);
  const double seconds = static_cast<double>(clock.monotonic_ns() - start) / 1e9;
  if (o.json) {
    print_json(found, *verified, seconds);
  } else {
    fmt::print("{}: {} in {}, {}, sequences [{}, {}), in {}\n",
               verified->damages == 0 ? "no damage" : counted(verified->damages, "damaged place"),
               counted(verified->records, "record"), counted(verified->blocks, "block"),
               human_bytes(static_cast<double>(verified->bytes)), verified->from.value, verified->to.value,
               human_duration(seconds * 1e9));
  }
  return verified->damages == 0 ? kExitOk : kExitFailed;
}

}  // namespace

void add_log_verify(CLI::App& noun, Action& chosen) {
  auto o = std::make_shared<VerifyOptions>();
  CLI::App* verb = add_verb(noun, chosen, "verify", "Read and check the whole log; list each damaged place", o, run);
  add_log_url(*verb, o->url);
  verb->add_flag("--json", o->json, "As one JSON object");
  verb->footer(
      "Ends with 1 when something is damaged. Changes nothing, also beside a running writer.\n\n"
      "Example:\n"
      "  tier log verify local:///tmp/services && echo all well");
}

}  // namespace tier::cli
