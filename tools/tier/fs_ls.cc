/// tier fs ls: the names in a directory.
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "command.h"
#include "exit_codes.h"
#include "output.h"
#include "place.h"
#include "record_format.h"
#include "store.h"
#include "units.h"

namespace tier::cli {
namespace {

struct LsOptions {
  std::string url;
  bool details = false;
  bool json = false;
};

int run(const LsOptions& o) {
  auto place = open_place(o.url);
  if (!place.ok()) return report(place.status(), o.url);
  auto entries = place->fs->list(place->path);
  if (!entries.ok()) return report(entries.status(), o.url);
  Output output(STDOUT_FILENO);
  for (const DirectoryEntry& entry : *entries) {
    FileInfo info;
    if (o.details || o.json) {
      auto looked = place->fs->stat(join(place->path, entry.name));
      if (looked.code() == Code::kNotFound) continue;  // removed since it was listed
      if (!looked.ok()) return report(looked.status(), o.url);
      info = *looked;
    }
    if (o.json) {
      std::string line = "{\"name\":";
      append_json_string(line, is_utf8(entry.name) ? entry.name : "?");
      line +=
          fmt::format(",\"directory\":{},\"size\":{},\"allocated\":{}}}\n", entry.directory, info.size, info.allocated);
      output.put(line);
    } else if (o.details) {
      output.put(
          fmt::format("{:>12} {:>12}  {}{}\n", info.size, info.allocated, entry.name, entry.directory ? "/" : ""));
    } else {
      output.put(fmt::format("{}{}\n", entry.name, entry.directory ? "/" : ""));
    }
  }
  return exit_of_output(output.flush());
}

}  // namespace

void add_fs_ls(CLI::App& noun, Action& chosen) {
  auto o = std::make_shared<LsOptions>();
  CLI::App* verb = add_verb(noun, chosen, "ls", "List a directory, one name a line", o, run);
  verb->add_option("URL", o->url, "A directory: local:///directory, URL#path, or a plain path")
      ->required()
      ->type_name("");
  verb->add_flag("--long", o->details, "Size and allocated bytes before each name");
  verb->add_flag("--json", o->json, "One JSON object a line");
  verb->footer(
      "Directories end in a slash; names come in byte order.\n\n"
      "Example:\n"
      "  tier fs ls 'local:///var/lib/app#events' --long");
}

}  // namespace tier::cli
