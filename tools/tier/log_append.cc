/// tier log append: each record of the input becomes a record of the log.
///
/// Shape       input -> Splitter -> Log::append, straight from the input buffer; at the end, on an error of the input
/// and
///             on Ctrl-C alike, what was taken is made durable and the log is closed.
/// Outcomes    0: all of the input is durable. 1: an error; stderr says how much is durable. 130: interrupted,
/// likewise.
#include <algorithm>
#include <atomic>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "command.h"
#include "exit_codes.h"
#include "output.h"
#include "progress.h"
#include "splitter.h"
#include "stop.h"
#include "units.h"

namespace tier::cli {
namespace {

struct AppendOptions {
  std::string url;
  std::string input = "-";
  Split split = Split::kLines;
  Durability durability = Durability::kBatch;
  std::uint64_t segment_size = LogOptions{}.segment_size.value;
  std::uint64_t max_record = 0;
  std::optional<std::uint64_t> count;
  bool no_create = false;
  bool repeat = false;
  bool json = false;
  bool print_durable = false;
};

/// What was done, for the report.
struct Appended {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  Sequence first;
  Sequence last;
  std::uint64_t durable_records = 0;
  double seconds = 0;
  bool interrupted = false;
};

/// Prints the durable cursor, one past the last durable sequence, on stdout each time it has moved: who kills this
/// process knows that every record below the last complete line survives.
class DurablePrinter {
 public:
  explicit DurablePrinter(Log& log) : log_(log), output_(STDOUT_FILENO), printed_(log.cursors().durable) {}
  ~DurablePrinter() { end_task(); }

  Status start() {
    TIER_TRY(task_, Runtime::system().executor->start("tier-durable", [this] { loop(); }));
    return {};
  }
  /// Prints what has become durable since, then ends.
  Status stop() {
    end_task();
    print();
    return output_.flush();
  }
  bool reader_gone() const noexcept { return failed_.load(std::memory_order_relaxed); }  // late is fine

 private:
  void loop() {
    while (!stopping_.load(std::memory_order_relaxed)) {  // late by one pause at most
      print();
      Runtime::system().parker->sleep(1ms);
    }
  }
  void end_task() noexcept {
    if (task_ == nullptr) return;
    stopping_.store(true, std::memory_order_relaxed);  // join() orders the rest
    task_->join();
    task_.reset();
  }
  void print() {
    const Sequence durable = log_.cursors().durable;
    if (durable == printed_) return;
    printed_ = durable;
    output_.put(fmt::format("{}\n", durable.value));
    if (!output_.flush().ok()) failed_.store(true, std::memory_order_relaxed);  // a flag alone
  }

  Log& log_;
  Output output_;
  Sequence printed_;
  std::unique_ptr<Task> task_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> failed_{false};
};

/// Appends until the input ends, `count` is reached, an error or an interrupt.
Status append_all(const AppendOptions& o, Input& input, Log& log, const DurablePrinter* printer, Appended& done) {
  constexpr std::uint64_t kLookAround = 4096;  // records between two looks at the rest of the world
  Splitter splitter(input, o.split, log.options().max_record.value);
  Progress progress("appending", o.repeat ? 0 : input.size());
  const std::uint64_t count = o.count.value_or(~std::uint64_t{0});
  while (done.records < count) {
    auto next = splitter.next();
    if (!next.ok()) {
      done.interrupted = next.code() == Code::kCancelled;
      return done.interrupted ? Status{} : next.status();
    }
    if (!next->has_value()) {
      if (!o.repeat || done.records == 0) return {};
      TIER_CHECK(splitter.rewind());
      continue;
    }
    TIER_TRY(const Sequence sequence, log.append(**next));
    if (done.records == 0) done.first = sequence;
    done.last = sequence;
    ++done.records;
    done.bytes += (*next)->size();
    if (done.records % kLookAround == 0 || o.durability == Durability::kSync) {
      progress.update(done.records, o.repeat ? done.bytes : splitter.consumed());
      if (Stop::requested()) {
        done.interrupted = true;
        return {};
      }
      if (printer != nullptr && printer->reader_gone()) return {};
    }
  }
  return {};
}

void print_report(const AppendOptions& o, const Appended& done) {
  const bool durable = done.durable_records == done.records;
  const double records_per_second = done.seconds > 0 ? static_cast<double>(done.records) / done.seconds : 0;
  const double bytes_per_second = done.seconds > 0 ? static_cast<double>(done.bytes) / done.seconds : 0;
  std::string text = fmt::format("{}appended {}, {}", done.interrupted ? "interrupted: " : "",
                                 counted(done.records, "record"), human_bytes(static_cast<double>(done.bytes)));
  if (done.records > 0) {
    text +=
        fmt::format(", sequences {} to {}, in {} ({} records/s, {}/s); {}", done.first.value, done.last.value,
                    human_duration(done.seconds * 1e9), human_rate(records_per_second), human_bytes(bytes_per_second),
                    durable ? std::string("all durable")
                            : fmt::format("only the first {} durable", with_commas(done.durable_records)));
  }
  fmt::print(stderr, "{}\n", text);
  if (!o.json) return;
  nlohmann::ordered_json json;
  json["records"] = done.records;
  json["bytes"] = done.bytes;
  json["first"] = done.records > 0 ? nlohmann::ordered_json(done.first.value) : nlohmann::ordered_json();
  json["last"] = done.records > 0 ? nlohmann::ordered_json(done.last.value) : nlohmann::ordered_json();
  json["seconds"] = done.seconds;
  json["records_per_second"] = records_per_second;
  json["bytes_per_second"] = bytes_per_second;
  json["durability"] = durability_name(o.durability);
  json["durable"] = durable;
  json["durable_records"] = done.durable_records;
  json["interrupted"] = done.interrupted;
  fmt::print("{}\n", json.dump());
}

int run(const AppendOptions& o) {
  Stop::watch();
  auto input = Input::open(o.input);
  if (!input.ok()) return report(input.status(), o.url);
  if (o.repeat) {
    if (const Status s = input->rewind(); !s.ok()) return report(s, o.url);
  }

  LogOptions options;
  options.create = o.no_create ? Create::kNever : Create::kIfMissing;
  options.durability = o.durability;
  options.segment_size = Bytes{o.segment_size};
  options.max_record = Bytes{o.max_record};
  Clock& clock = *Runtime::system().clock;
  auto opened = Log::open(o.url, options);
  if (!opened.ok()) return o.no_create ? report_open_failure(opened.status(), o.url) : report(opened.status(), o.url);
  Log& log = **opened;

  std::unique_ptr<DurablePrinter> printer;
  if (o.print_durable) {
    printer = std::make_unique<DurablePrinter>(log);
    if (const Status s = printer->start(); !s.ok()) return report(s, o.url);
  }
  const std::uint64_t start = clock.monotonic_ns();
  Appended done;
  const Status failure = append_all(o, *input, log, printer.get(), done);
  // Whatever ended it: what was taken becomes durable before anything is said.
  const Status flushed = log.flush();
  done.seconds = static_cast<double>(clock.monotonic_ns() - start) / 1e9;
  const Sequence durable = log.cursors().durable;
  if (durable > done.first) done.durable_records = std::min(done.records, durable - done.first);
  const Status printed = printer != nullptr ? printer->stop() : Status{};
  const CloseReport closed = log.close();

  print_report(o, done);
  if (!failure.ok()) return report(failure, o.url);
  if (!flushed.ok()) return report(flushed, o.url);
  if (closed.outcome != CloseOutcome::kClean) return report(closed.status, o.url);
  if (done.interrupted) return kExitInterrupted;
  return exit_of_output(printed);
}

}  // namespace

void add_log_append(CLI::App& noun, Action& chosen) {
  auto o = std::make_shared<AppendOptions>();
  CLI::App* verb = add_verb(noun, chosen, "append", "Append each record of a file or of standard input", o, run);
  add_log_url(*verb, o->url);
  verb->add_option("--input", o->input, "What to append; - is standard input")
      ->type_name("FILE")
      ->capture_default_str();
  add_choice<Split>(*verb, "--split", o->split,
                    {{"lines", Split::kLines}, {"nul", Split::kNul}, {"length", Split::kLength}}, "What ends a record");
  add_choice<Durability>(*verb, "--durability", o->durability,
                         {{"sync", Durability::kSync}, {"batch", Durability::kBatch}, {"async", Durability::kAsync}},
                         "When records become durable; at the end all are");
  add_number(*verb, "--count", o->count, "N", "Stop after so many records");
  verb->add_flag("--repeat", o->repeat, "Start the input again whenever it ends, until --count or an interrupt");
  verb->add_flag("--no-create", o->no_create, "Fail where there is no log yet");
  add_size(*verb, "--segment-size", o->segment_size, "Of a log that is made: a power of two from 1MiB to 64GiB")
      ->default_str("256MiB");
  add_size(*verb, "--max-record", o->max_record, "The largest record; at most a quarter of a segment")
          ->default_str("1MiB");
  CLI::Option* json = verb->add_flag("--json", o->json, "Also say on stdout, as one JSON object, what was done");
  verb->add_flag("--print-durable", o->print_durable,
                 "Print on stdout how many sequences are durable, each time it grows")
      ->excludes(json);
  verb->footer(
      "Makes the log where there is none. --split lines cuts at LF and keeps all else, CR and NUL included; the\n"
      "last line counts without its LF too. nul cuts at NUL. length wants each record after its size in four\n"
      "little-endian bytes. Ctrl-C makes durable what was taken and reports it; a second one ends at once.\n\n"
      "Examples:\n"
      "  tier log append local:///tmp/services --input /etc/services\n"
      "  find / -print0 | tier log append local:///tmp/names --split nul --durability async\n"
      "  journalctl -f | tier log append 'local:///var/lib/app#journal' --durability sync");
}

}  // namespace tier::cli
