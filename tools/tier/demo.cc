#include "demo.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>

#include <fmt/core.h>
#include <sys/wait.h>

#include "child.h"
#include "command.h"
#include "exit_codes.h"
#include "input.h"
#include "place.h"
#include "progress.h"
#include "splitter.h"
#include "stop.h"
#include "store.h"
#include "units.h"

namespace tier::cli {
namespace {

constexpr const char* kInputName = "tier-demo-input";
constexpr const char* kLogName = "log";
constexpr std::uint64_t kInputMost = 256u << 20;  // larger files are taken up to here

Clock& clock() { return *Runtime::system().clock; }

void heading(const std::string& text) {
  fmt::print("\n== {}\n", text);
  std::fflush(stdout);  // a process of our own may write next
}

std::string in_quotes(std::string_view record) {
  constexpr std::size_t kMost = 72;
  std::string text;
  for (const char c : record.substr(0, kMost)) text += static_cast<unsigned char>(c) < 0x20 ? '.' : c;
  return fmt::format("\"{}{}\"", text, record.size() > kMost ? "..." : "");
}

double per_second(std::uint64_t n, std::uint64_t ns) {
  return ns == 0 ? 0 : static_cast<double>(n) / (static_cast<double>(ns) / 1e9);
}

/// Writes a whole file under a directory of this machine.
Status write_file(const std::string& path, std::string_view text) {
  TIER_TRY(const Place place, open_place(path));
  OpenOptions make;
  make.write = true;
  make.create = Create::kIfMissing;
  TIER_TRY(auto file, place.fs->open(place.path, make));
  TIER_CHECK(file->truncate(0));
  TIER_CHECK(file->write_at(0, as_bytes(text)));
  return file->sync(SyncKind::kAll);
}

}  // namespace

Status Demo::run() {
  using Step = Status (Demo::*)();
  constexpr std::array<Step, 9> kSteps = {&Demo::prepare,          &Demo::append_input, &Demo::measure_durable_latency,
                                          &Demo::kill_a_writer,    &Demo::reopen,       &Demo::prove_records,
                                          &Demo::read_by_sequence, &Demo::tail,         &Demo::finish};
  for (const Step step : kSteps) {
    TIER_CHECK((this->*step)());
    if (Stop::requested()) return Status(Code::kCancelled, "interrupted");
  }
  print_table();
  return {};
}

/// Sequences to lines, as demo.h says.
std::string_view Demo::expected(std::uint64_t sequence) const noexcept {
  const std::uint64_t n = lines_.size();
  if (sequence >= second_writer_from_) return lines_[(sequence - second_writer_from_) % n];
  return lines_[sequence % n];
}

Status Demo::open(Durability durability) {
  LogOptions options;
  options.durability = durability;
  TIER_TRY(log_, Log::open(url_, options));
  return {};
}

Status Demo::prepare() {
  TIER_TRY(Input input, Input::open(options_.input));
  std::size_t size = 0;
  while (size < kInputMost) {
    constexpr std::size_t kPiece = 1 << 20;
    text_.resize(size + kPiece);
    TIER_TRY(const std::size_t n, input.read({reinterpret_cast<std::byte*>(text_.data()) + size, kPiece}));
    size += n;
    if (n == 0) break;
  }
  text_.resize(size);
  if (size >= kInputMost) text_.resize(text_.rfind('\n') + 1);  // whole lines only
  for (std::size_t at = 0; at < text_.size();) {
    const std::size_t end = std::min(text_.find('\n', at), text_.size());
    lines_.push_back(std::string_view(text_).substr(at, end - at));
    at = end + 1;
  }
  if (lines_.empty()) {
    return fail(Code::kInvalid, 0, "the input has no lines; name another file", "file '%s'", options_.input.c_str());
  }

  TIER_TRY(const Place outer, open_place(options_.directory));
  if (!outer.path.empty()) {
    const Status made = outer.fs->create_directory(outer.path);
    if (!made.ok() && made.code() != Code::kExists) return made;
  }
  input_path_ = options_.directory + "/" + kInputName;
  TIER_TRY(const std::string directory_url, url_of_plain_path(options_.directory + "/" + kLogName));
  url_ = directory_url;
  // A store of an earlier run goes; LOCK and manifest are checked by the verb that removes it.
  const auto store = open_place(options_.directory + "/" + kLogName);
  if (!store.ok()) return store.status();
  if (store->fs->stat(join(store->path, "MANIFEST")).ok()) {
    heading("An earlier run's log is removed: tier log rm");
    TIER_TRY(Child rm, Child::start({"log", "rm", url_, "--yes"}));
    if (const int status = rm.wait(); !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      return fail(Code::kBusy, 0, "the earlier run's log could not be removed; see above", "%s", url_.c_str());
    }
  }
  return write_file(input_path_, text_);
}

Status Demo::append_input() {
  heading(fmt::format("Append every line of {} as a record ({}, {})", options_.input, counted(lines_.size(), "line"),
                      human_bytes(static_cast<double>(text_.size()))));
  TIER_CHECK(open(Durability::kBatch));
  Progress progress("appending", text_.size());
  const std::uint64_t start = clock().monotonic_ns();
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    TIER_CHECK(log_->append(lines_[i]));
    bytes += lines_[i].size() + 1;
    if (i % 4096 == 0) {
      progress.update(i, bytes);
      if (Stop::requested()) return Status(Code::kCancelled, "interrupted");
    }
  }
  const std::uint64_t taken_ns = clock().monotonic_ns() - start;
  TIER_CHECK(log_->flush());
  append_ns_ = clock().monotonic_ns() - start;
  progress.clear();
  fmt::print("taken in {}, all durable after {}: {} records/s, {}/s\n", human_duration(static_cast<double>(taken_ns)),
             human_duration(static_cast<double>(append_ns_)), human_rate(per_second(lines_.size(), append_ns_)),
             human_bytes(per_second(text_.size(), append_ns_)));
  return {};
}

Status Demo::measure_durable_latency() {
  constexpr std::size_t kMost = 2000;
  constexpr Duration kLongEnough = 2s;
  heading("One record at a time, each durable before the next");
  const Deadline until = clock().in(kLongEnough);
  const std::size_t most = std::min(lines_.size(), kMost);
  for (std::size_t i = 0; i < most && !clock().passed(until); ++i) {
    const std::uint64_t start = clock().monotonic_ns();
    TIER_CHECK(log_->append_durable(as_bytes(lines_[i])));
    durable_ns_.record(clock().monotonic_ns() - start);
  }
  const CloseReport closed = log_->close();
  second_writer_from_ = log_->cursors().durable.value;
  log_.reset();
  TIER_CHECK(closed.status);
  fmt::print("{}: p50 {}, p99 {}\n", counted(durable_ns_.count(), "append"),
             human_duration(static_cast<double>(durable_ns_.percentile(0.5))),
             human_duration(static_cast<double>(durable_ns_.percentile(0.99))));
  return {};
}

Status Demo::kill_a_writer() {
  constexpr std::uint64_t kEnoughBytes = 192u << 20;
  constexpr Duration kLongEnough = 3s;
  heading("A second writer repeats the input until it is killed (SIGKILL)");
  TIER_TRY(Child writer, Child::start({"log", "append", url_, "--input", input_path_, "--repeat", "--print-durable"}));
  const double line_bytes = static_cast<double>(text_.size()) / static_cast<double>(lines_.size());
  Deadline until = clock().in(30s);  // for its first durable record
  std::uint64_t start = 0;
  std::uint64_t first = 0;
  std::uint64_t next_line_ns = 0;
  acknowledged_ = second_writer_from_;
  bool killed = false;
  for (;;) {
    auto line = writer.line(until);
    if (line.code() == Code::kTimedOut && !killed && acknowledged_ > second_writer_from_) {
      writer.signal(SIGKILL);
      killed = true;
      until = Deadline::never();
      continue;
    }
    if (line.code() == Code::kNotFound && killed) break;  // what it had printed before it died is read
    if (!line.ok()) return line.status();
    acknowledged_ = std::strtoull(line->c_str(), nullptr, 10);
    const std::uint64_t now = clock().monotonic_ns();
    if (start == 0) {
      start = now;
      first = acknowledged_;
      until = clock().in(kLongEnough);
    }
    if (killed) continue;
    writer_records_ = acknowledged_ - first;
    writer_ns_ = now - start;
    if (now >= next_line_ns) {
      fmt::print("durable up to sequence {}\n", with_commas(acknowledged_));
      std::fflush(stdout);
      next_line_ns = now + 250'000'000;
    }
    if (static_cast<double>(acknowledged_ - second_writer_from_) * line_bytes > static_cast<double>(kEnoughBytes)) {
      until = Deadline::now();
    }
  }
  const int status = writer.wait();
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
    return fail(Code::kIo, 0, "the second writer ended before it was killed", "wait status %d", status);
  }
  fmt::print("killed in the middle; it had told us that every record below sequence {} is durable\n",
             with_commas(acknowledged_));
  return {};
}

Status Demo::reopen() {
  heading("Open it again: recovery");
  const std::uint64_t start = clock().monotonic_ns();
  TIER_CHECK(open(Durability::kBatch));
  open_ns_ = clock().monotonic_ns() - start;
  recovery_ = log_->recovery();
  fmt::print("found {} in {}, reading {}; epoch {}\n", counted(recovery_.to - recovery_.from, "record"),
             human_duration(static_cast<double>(open_ns_)), human_bytes(static_cast<double>(recovery_.scanned_bytes)),
             recovery_.epoch);
  if (recovery_.cut_bytes > 0) {
    fmt::print("cut a torn tail of {} ({}), never acknowledged\n",
               human_bytes(static_cast<double>(recovery_.cut_bytes)), counted(recovery_.cut_records, "record"));
  } else {
    fmt::print("no torn tail\n");
  }
  if (recovery_.clean) return Status(Code::kCorruption, "the log says it was closed, but its writer was killed");
  if (recovery_.to.value < acknowledged_) {
    return fail(Code::kCorruption, 0, "acknowledged records are gone", "log ends before %llu, acknowledged below %llu",
                static_cast<unsigned long long>(recovery_.to.value), static_cast<unsigned long long>(acknowledged_));
  }
  fmt::print("{} of them were appended but not yet acknowledged when the writer died\n",
             with_commas(recovery_.to.value - acknowledged_));
  return {};
}

Status Demo::prove_records() {
  heading("Read everything back and compare");
  const Sequence from = recovery_.from;
  const Sequence to = recovery_.to;
  {
    TIER_TRY(auto cursor, log_->scan(from, to));
    const std::uint64_t start = clock().monotonic_ns();
    for (;;) {
      TIER_TRY(const auto record, cursor->next());
      if (!record.has_value()) break;
      ++replay_records_;
      replay_bytes_ += record->bytes.size();
    }
    replay_ns_ = clock().monotonic_ns() - start;
  }
  TIER_TRY(auto cursor, log_->scan(from, to));
  std::uint64_t sequence = from.value;
  for (;; ++sequence) {
    TIER_TRY(const auto record, cursor->next());
    if (!record.has_value()) break;
    if (record->sequence.value != sequence || as_text(record->bytes) != expected(sequence)) {
      return fail(Code::kCorruption, 0, "a record is not what was appended", "sequence %llu",
                  static_cast<unsigned long long>(sequence));
    }
    if (sequence % 65536 == 0 && Stop::requested()) return Status(Code::kCancelled, "interrupted");
  }
  if (from.value != 0 || sequence != to.value || replay_records_ != to - from) {
    return fail(Code::kCorruption, 0, "records are missing", "read [%llu, %llu), the log has [0, %llu)",
                static_cast<unsigned long long>(from.value), static_cast<unsigned long long>(sequence),
                static_cast<unsigned long long>(to.value));
  }
  const Tails tails = log_->engine().tails();
  log_bytes_ = (tails.committed - tails.begin).value;
  fmt::print("{} acknowledged records are there, byte for byte, and the {} behind them are whole and in order\n",
             with_commas(acknowledged_), with_commas(to.value - acknowledged_));
  fmt::print("replayed with checksums in {}: {} records/s, {}/s\n", human_duration(static_cast<double>(replay_ns_)),
             human_rate(per_second(replay_records_, replay_ns_)), human_bytes(per_second(replay_bytes_, replay_ns_)));
  return {};
}

Status Demo::read_by_sequence() {
  constexpr int kReads = 20000;
  constexpr int kShown = 3;
  heading("Read by sequence");
  std::string record;
  for (int i = 0; i < kReads; ++i) {
    const Sequence sequence{Runtime::system().random->next() % recovery_.to.value};
    const std::uint64_t start = clock().monotonic_ns();
    TIER_CHECK(log_->read(sequence, record));
    read_ns_.record(clock().monotonic_ns() - start);
    if (record != expected(sequence.value)) {
      return fail(Code::kCorruption, 0, "a record is not what was appended", "sequence %llu",
                  static_cast<unsigned long long>(sequence.value));
    }
    if (i < kShown) fmt::print("{:>10}  {}\n", sequence.value, in_quotes(record));
  }
  fmt::print("{} random reads: p50 {}, p99 {}\n", with_commas(kReads),
             human_duration(static_cast<double>(read_ns_.percentile(0.5))),
             human_duration(static_cast<double>(read_ns_.percentile(0.99))));
  return {};
}

Status Demo::tail() {
  heading("Follow it from another process while this one appends: tier log tail");
  const std::uint64_t last = log_->cursors().durable.value - 1;
  TIER_TRY(Child reader, Child::start({"log", "tail", url_, "--from", std::to_string(last)}));
  // Its first line is the last record that is there: now it runs and waits.
  TIER_TRY(const std::string old, reader.line(clock().in(30s)));
  if (old != expected(last)) return fail(Code::kCorruption, 0, "the follower read something else", "'%s'", old.c_str());
  constexpr std::array<std::string_view, 3> kNews = {"a first new record", "a second one", "and a third"};
  for (const std::string_view news : kNews) {
    TIER_CHECK(log_->append_durable(as_bytes(news)));
    const std::uint64_t start = clock().monotonic_ns();
    TIER_TRY(const std::string line, reader.line(clock().in(30s)));
    if (line != news) return fail(Code::kCorruption, 0, "the follower read something else", "'%s'", line.c_str());
    fmt::print("the other process read {} {} after it was durable\n", in_quotes(line),
               human_duration(static_cast<double>(clock().monotonic_ns() - start)));
  }
  reader.signal(SIGTERM);
  reader.wait();
  return {};
}

Status Demo::finish() { return log_->close().status; }

void Demo::print_table() const {
  heading("What was measured");
  const auto row = [](const char* name, const std::string& value) { fmt::print("  {:<24} {}\n", name, value); };
  const double replay_bytes = static_cast<double>(replay_bytes_);
  row("records", with_commas(replay_records_));
  row("bytes", fmt::format("{} of payload, {} in the log ({:.1f} bytes a record more)", human_bytes(replay_bytes),
                           human_bytes(static_cast<double>(log_bytes_)),
                           (static_cast<double>(log_bytes_) - replay_bytes) / static_cast<double>(replay_records_)));
  row("append rate, the input",
      fmt::format("{} records/s, {}/s, durable at the end", human_rate(per_second(lines_.size(), append_ns_)),
                  human_bytes(per_second(text_.size(), append_ns_))));
  row("append rate, sustained", fmt::format("{} durable records/s by the writer that was killed",
                                            human_rate(per_second(writer_records_, writer_ns_))));
  row("durable latency", fmt::format("p50 {}, p99 {}", human_duration(static_cast<double>(durable_ns_.percentile(0.5))),
                                     human_duration(static_cast<double>(durable_ns_.percentile(0.99)))));
  row("recovery", fmt::format("{} after SIGKILL", human_duration(static_cast<double>(open_ns_))));
  row("replay rate", fmt::format("{} records/s, {}/s", human_rate(per_second(replay_records_, replay_ns_)),
                                 human_bytes(per_second(replay_bytes_, replay_ns_))));
  row("read by sequence", fmt::format("p50 {}", human_duration(static_cast<double>(read_ns_.percentile(0.5)))));
  if (const auto store = open_place(options_.directory + "/" + kLogName); store.ok()) {
    if (const auto files = list_store(*store->fs, store->path); files.ok()) {
      for (const StoreFile& file : *files) {
        row("on disk", fmt::format("{:>9}  {}", human_bytes(static_cast<double>(file.info.allocated)), file.name));
      }
    }
  }
  fmt::print("\nThe log:       {}\n", url_);
  std::error_code unknown;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  fmt::print("Look at it:    {} log info '{}'\n", unknown ? "tier" : program, url_);
  fmt::print("Remove it:     rm -r '{0}/{1}' '{0}/{2}'\n", options_.directory, kLogName, kInputName);
  fmt::print("The next run here makes a new log in its place.\n");
}

namespace {

int run_demo(const DemoOptions& o) {
  Stop::watch();
  DemoOptions absolute = o;
  const auto directory = std::filesystem::absolute(o.directory).lexically_normal();
  absolute.directory = directory.has_filename() ? directory : directory.parent_path();
  Demo demo(absolute);
  const Status status = demo.run();
  if (status.ok()) return kExitOk;
  if (status.code() == Code::kCancelled) {
    complain("interrupted");
    return kExitInterrupted;
  }
  return report(status, o.directory);
}

}  // namespace

void add_demo(CLI::App& app, Action& chosen) {
  auto o = std::make_shared<DemoOptions>();
  CLI::App* verb =
      add_verb(app, chosen, "demo", "Append, kill, recover, prove and measure on a file of this machine", o, run_demo);
  verb->add_option("--input", o->input, "A text file; its lines become records")->required()->type_name("FILE");
  verb->add_option("--directory", o->directory, "Where the log is made; its parent must exist")
      ->required()
      ->type_name("DIR");
  verb->footer(
      "Writes some 250 MiB at most. scripts/quickstart builds everything and runs this.\n\n"
      "Example:\n"
      "  tier demo --input /var/lib/dpkg/status --directory /tmp/tier-demo");
}

}  // namespace tier::cli
