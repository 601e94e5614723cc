/// tier log create: an empty log.
#include <fmt/core.h>

#include "command.h"
#include "exit_codes.h"
#include "units.h"

namespace tier::cli {
namespace {

struct CreateOptions {
  std::string url;
  std::uint64_t segment_size = LogOptions{}.segment_size.value;
  bool if_missing = false;
};

int run(const CreateOptions& o) {
  LogOptions options;
  options.create = o.if_missing ? Create::kIfMissing : Create::kExclusive;
  options.segment_size = Bytes{o.segment_size};
  auto log = Log::open(o.url, options);
  if (!log.ok()) return report(log.status(), o.url);
  const bool created = (*log)->recovery().created;
  if (const CloseReport closed = (*log)->close(); closed.outcome != CloseOutcome::kClean) {
    return report(closed.status, o.url);
  }
  fmt::print(stderr, "{} {}\n", created ? "created" : "already there:", o.url);
  return kExitOk;
}

}  // namespace

void add_log_create(CLI::App& noun, Action& chosen) {
  auto o = std::make_shared<CreateOptions>();
  CLI::App* verb = add_verb(noun, chosen, "create", "Make an empty log; fails if there is one", o, run);
  add_log_url(*verb, o->url);
  add_size(*verb, "--segment-size", o->segment_size, "Size of a segment file, a power of two from 1MiB to 64GiB")
      ->default_str("256MiB");
  verb->add_flag("--if-missing", o->if_missing, "Leave a log that is already there as it is");
  verb->footer(
      "The log's directory is the last part of the URL and is made; its parent must exist.\n\n"
      "Example:\n"
      "  tier log create 'local:///var/lib/app#events' --segment-size 64MiB");
}

}  // namespace tier::cli
