/// tier fs stat: what is known of one file or directory.
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "command.h"
#include "exit_codes.h"
#include "place.h"
#include "units.h"

namespace tier::cli {
namespace {

struct StatOptions {
  std::string url;
  bool json = false;
};

int run(const StatOptions& o) {
  auto place = open_place(o.url);
  if (!place.ok()) return report(place.status(), o.url);
  auto info = place->fs->stat(place->path);
  if (!info.ok()) return report(info.status(), o.url);
  Result<bool> locked = false;
  if (!info->directory && place->fs->capabilities().has(Capability::kLocking)) locked = place->fs->locked(place->path);
  if (!locked.ok()) return report(locked.status(), o.url);
  if (o.json) {
    const nlohmann::ordered_json json = {
        {"directory", info->directory}, {"size", info->size}, {"allocated", info->allocated}, {"locked", *locked}};
    fmt::print("{}\n", json.dump());
    return kExitOk;
  }
  fmt::print("kind       {}\n", info->directory ? "directory" : "file");
  fmt::print("size       {} ({} bytes)\n", human_bytes(static_cast<double>(info->size)), with_commas(info->size));
  fmt::print("allocated  {} ({} bytes)\n", human_bytes(static_cast<double>(info->allocated)),
             with_commas(info->allocated));
  fmt::print("owner      {}\n", *locked ? "a process holds its lock" : "none");
  return kExitOk;
}

}  // namespace

void add_fs_stat(CLI::App& noun, Action& chosen) {
  auto o = std::make_shared<StatOptions>();
  CLI::App* verb = add_verb(noun, chosen, "stat", "Say what is known of a file or directory", o, run);
  verb->add_option("URL", o->url, "The file: URL#path, or a plain path")->required()->type_name("");
  verb->add_flag("--json", o->json, "As one JSON object");
  verb->footer(
      "Example:\n"
      "  tier fs stat 'local:///var/lib/app#events/LOCK'");
}

}  // namespace tier::cli
