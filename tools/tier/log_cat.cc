/// tier log cat: records to standard output. Opens read-only, also beside a running writer.
#include <algorithm>

#include <fmt/core.h>
#include <unistd.h>

#include "command.h"
#include "exit_codes.h"
#include "output.h"
#include "progress.h"
#include "record_format.h"
#include "stop.h"

namespace tier::cli {
namespace {

struct CatOptions {
  std::string url;
  std::optional<std::uint64_t> from;
  std::optional<std::uint64_t> count;
  Format format = Format::kRaw;
};

int report_read_failure(const Status& status, Log& log, const std::string& url) {
  const int code = report(status, url);
  if (status.code() == Code::kTruncated) {
    hint(fmt::format("the oldest record that is kept is {}: --from {}", log.cursors().first.value,
                     log.cursors().first.value));
  }
  return code;
}

int run(const CatOptions& o) {
  Stop::watch();
  auto opened = open_log_to_read(o.url);
  if (!opened.ok()) return report_open_failure(opened.status(), o.url);
  Log& log = **opened;
  // The end as it is now: a writer that runs beside would otherwise keep this going.
  const LogCursors cursors = log.cursors();
  const Sequence from = Sequence{o.from.value_or(cursors.first.value)};
  const Sequence to = cursors.durable;
  if (from > to) {
    return report(fail(Code::kNotFound, 0, "there is no such record yet; `tier log tail --from` waits for it",
                       "sequence %llu, the log ends before %llu", static_cast<unsigned long long>(from.value),
                       static_cast<unsigned long long>(to.value)),
                  o.url);
  }
  auto cursor = log.scan(from, from + std::min(o.count.value_or(to - from), to - from));
  if (!cursor.ok()) return report_read_failure(cursor.status(), log, o.url);

  Output output(STDOUT_FILENO);
  RecordWriter writer(output, o.format);
  Progress progress("reading", 0);
  const bool show = ::isatty(STDOUT_FILENO) == 0;  // a line in the middle of the records would only disturb
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  while (!output.failed()) {
    auto next = (*cursor)->next();
    if (!next.ok()) {
      if (const Status s = output.flush(); !s.ok()) return exit_of_output(s);
      return report_read_failure(next.status(), log, o.url);
    }
    if (!next->has_value()) break;
    writer.write(**next);
    bytes += (*next)->bytes.size();
    if (++records % 4096 == 0) {
      if (Stop::requested()) {
        const Status s = output.flush();
        return s.ok() ? static_cast<int>(kExitInterrupted) : exit_of_output(s);
      }
      if (show) progress.update(records, bytes);
    }
  }
  progress.clear();
  return exit_of_output(output.flush());
}

}  // namespace

void add_log_cat(CLI::App& noun, Action& chosen) {
  auto o = std::make_shared<CatOptions>();
  CLI::App* verb = add_verb(noun, chosen, "cat", "Write records to standard output", o, run);
  add_log_url(*verb, o->url);
  add_number(*verb, "--from", o->from, "SEQUENCE", "First sequence; the oldest that is kept otherwise");
  add_number(*verb, "--count", o->count, "N", "So many records at most");
  add_choice<Format>(
      *verb, "--format", o->format,
      {{"raw", Format::kRaw}, {"json", Format::kJson}, {"hex", Format::kHex}, {"length", Format::kLength}},
      "How a record is written");
  verb->footer(
      "raw writes each record and an LF, so that a file that was appended by lines and ends in LF comes back byte\n"
      "for byte. json writes one object a line, with \"data\", or \"base64\" where the bytes are no UTF-8. length\n"
      "writes each record after its size in four little-endian bytes; `append --split length` reads that.\n"
      "Ends at the last record that is durable now; see tail to follow a writer.\n\n"
      "Examples:\n"
      "  tier log cat local:///tmp/services --from 10 --count 3\n"
      "  tier log cat 'local:///var/lib/app#events' --format json | jq .data");
}

}  // namespace tier::cli
