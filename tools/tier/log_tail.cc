/// tier log tail: the last records, then each new one as soon as it is durable. Opens read-only, beside a running
/// writer.
#include <algorithm>

#include <unistd.h>

#include "command.h"
#include "exit_codes.h"
#include "output.h"
#include "record_format.h"
#include "stop.h"

namespace tier::cli {
namespace {

struct TailOptions {
  std::string url;
  std::optional<std::uint64_t> from;
  std::optional<std::uint64_t> count;
  bool follow = true;
  Duration timeout = Duration::max();
  Format format = Format::kRaw;
};

constexpr Duration kLookAround = 100ms;  // between two looks at signals and at the reader

/// Waits for records and writes them until an interrupt, the timeout, the log's end or the reader's.
int follow(const TailOptions& o, Cursor& cursor, Output& output, RecordWriter& writer) {
  Clock& clock = *Runtime::system().clock;
  Deadline idle_until = clock.in(o.timeout);
  for (;;) {
    if (Stop::requested()) return kExitInterrupted;
    if (output.reader_gone()) return kExitOk;
    auto next = cursor.wait_next(std::min(clock.in(kLookAround), idle_until));
    if (next.code() == Code::kTimedOut) {
      if (clock.passed(idle_until)) return kExitOk;
      continue;
    }
    if (next.code() == Code::kClosing) return kExitOk;
    if (!next.ok()) return report(next.status(), o.url);
    writer.write(*next);
    for (;;) {  // all that has arrived goes out in one piece
      auto more = cursor.next();
      if (!more.ok()) return report(more.status(), o.url);
      if (!more->has_value() || output.failed() || Stop::requested()) break;
      writer.write(**more);
    }
    if (const Status s = output.flush(); !s.ok()) return exit_of_output(s);
    idle_until = clock.in(o.timeout);
  }
}

int run(const TailOptions& o) {
  Stop::watch();
  auto opened = open_log_to_read(o.url);
  if (!opened.ok()) return report_open_failure(opened.status(), o.url);
  Log& log = **opened;
  const LogCursors cursors = log.cursors();
  constexpr std::uint64_t kUsualCount = 10;
  const std::uint64_t kept = cursors.durable - cursors.first;
  const Sequence last_ones = cursors.first + (kept - std::min(kept, o.count.value_or(kUsualCount)));
  const Sequence from{o.from.value_or(last_ones.value)};
  auto cursor = log.scan(from);
  if (!cursor.ok()) return report(cursor.status(), o.url);

  Output output(STDOUT_FILENO);
  RecordWriter writer(output, o.format);
  while (!output.failed() && !Stop::requested()) {
    auto next = (*cursor)->next();
    if (!next.ok()) {
      if (const Status s = output.flush(); !s.ok()) return exit_of_output(s);
      return report(next.status(), o.url);
    }
    if (!next->has_value()) break;
    writer.write(**next);
  }
  if (const Status s = output.flush(); !s.ok()) return exit_of_output(s);
  if (!o.follow) return Stop::requested() ? kExitInterrupted : kExitOk;
  return follow(o, **cursor, output, writer);
}

}  // namespace

void add_log_tail(CLI::App& noun, Action& chosen) {
  auto o = std::make_shared<TailOptions>();
  CLI::App* verb =
      add_verb(noun, chosen, "tail", "Write the last records, then new ones as they become durable", o, run);
  add_log_url(*verb, o->url);
  CLI::Option* count =
      add_number(*verb, "--count", o->count, "N", "Begin so many records before the end")->default_str("10");
  add_number(*verb, "--from", o->from, "SEQUENCE", "Begin with this sequence, also one that does not exist yet")
      ->excludes(count);
  verb->add_flag("--follow,!--no-follow", o->follow,
                 "Wait for new records (the default); --no-follow ends after the last");
  add_duration(*verb, "--timeout", o->timeout, "End when no record has come for so long: 500ms, 10s, ...");
  add_choice<Format>(
      *verb, "--format", o->format,
      {{"raw", Format::kRaw}, {"json", Format::kJson}, {"hex", Format::kHex}, {"length", Format::kLength}},
      "How a record is written; see cat");
  verb->footer(
      "Ctrl-C ends it with 130; a reader that goes away, or the timeout, with 0.\n\n"
      "Examples:\n"
      "  tier log tail 'local:///var/lib/app#events'\n"
      "  tier log tail local:///tmp/services --from 0 --no-follow --format json\n"
      "  tier log tail 'local:///var/lib/app#events' --count 0 --timeout 30s | grep -m1 ERROR");
}

}  // namespace tier::cli
