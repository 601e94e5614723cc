/// tier log info: what a log holds, what its last opening would find, and what it costs on disk. Opens read-only.
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "command.h"
#include "exit_codes.h"
#include "store.h"
#include "units.h"

namespace tier::cli {
namespace {

struct InfoOptions {
  std::string url;
  bool payload = false;
  bool json = false;
};

struct Facts {
  LogCursors cursors;
  LogRecovery recovery;
  Bytes segment_size;
  std::uint64_t store_id = 0;
  std::vector<StoreFile> files;
  bool writer_runs = false;
  bool payload_known = false;
  std::uint64_t payload_bytes = 0;
  std::uint64_t blocks = 0;

  std::uint64_t records() const { return cursors.durable - cursors.first; }
  std::uint64_t size_on_disk() const {
    std::uint64_t n = 0;
    for (const StoreFile& f : files) n += f.info.allocated;
    return n;
  }
};

Status count_payload(Log& log, Facts& facts) {
  const auto ignore = [](void*, const LogDamage&) {};
  TIER_TRY(const LogVerification counted_all, log.verify(ignore, nullptr));
  if (counted_all.damages > 0) {
    return {Code::kCorruption, "the log is damaged, so its payload cannot be counted; see tier log verify"};
  }
  facts.payload_bytes = counted_all.bytes;
  facts.blocks = counted_all.blocks;
  facts.payload_known = true;
  return {};
}

Result<Facts> gather(const InfoOptions& o) {
  TIER_TRY(std::unique_ptr<Log> log, open_log_to_read(o.url));
  Engine& engine = log->engine();
  Facts facts;
  facts.cursors = log->cursors();
  facts.recovery = log->recovery();
  facts.segment_size = engine.segment_size();
  facts.store_id = engine.store_id();
  TIER_TRY(facts.files, list_store(engine.file_system(), engine.path()));
  TIER_TRY(facts.writer_runs, writer_runs(engine.file_system(), engine.path()));
  if (o.payload) TIER_CHECK(count_payload(*log, facts));
  return facts;
}

void print_text(const InfoOptions& o, const Facts& f) {
  const auto line = [](const char* name, const std::string& value) { fmt::print("{:<12} {}\n", name, value); };
  line("log", o.url);
  line("store id", fmt::format("{:016x}", f.store_id));
  line("writer", f.writer_runs ? "running" : "none");
  line("records", f.records() == 0 ? "0"
                                   : fmt::format("{}, sequences {} to {}", with_commas(f.records()),
                                                 f.cursors.first.value, f.cursors.durable.value - 1));
  line("cursors", fmt::format("first {}, durable {}, committed {}", f.cursors.first.value, f.cursors.durable.value,
                              f.cursors.committed.value));
  line("payload", f.payload_known
                      ? fmt::format("{} ({} bytes) in {}", human_bytes(static_cast<double>(f.payload_bytes)),
                                    with_commas(f.payload_bytes), counted(f.blocks, "block"))
                      : "not counted; --payload reads the log to count it");
  line("segments",
       fmt::format("{} of {}", f.recovery.segments, human_bytes(static_cast<double>(f.segment_size.value))));
  line("last close", f.writer_runs      ? "a writer is running"
                     : f.recovery.clean ? "clean"
                                        : "not clean: the next writer recovers");
  line("found by", fmt::format("reading {} in {}", human_bytes(static_cast<double>(f.recovery.scanned_bytes)),
                               human_duration(static_cast<double>(f.recovery.nanoseconds))));
  if (f.recovery.cut_bytes > 0) {
    line("torn tail",
         fmt::format("{} in {}, never acknowledged", human_bytes(static_cast<double>(f.recovery.cut_bytes)),
                     counted(f.recovery.cut_records, "record")));
  }
  line("epoch", std::to_string(f.recovery.epoch));
  line("on disk",
       fmt::format("{} in {}", human_bytes(static_cast<double>(f.size_on_disk())), counted(f.files.size(), "file")));
  for (const StoreFile& file : f.files) {
    fmt::print("  {:>10} of {:>10}  {}\n", human_bytes(static_cast<double>(file.info.allocated)),
               human_bytes(static_cast<double>(file.info.size)), file.name);
  }
}

void print_json(const InfoOptions& o, const Facts& f) {
  nlohmann::ordered_json json;
  json["url"] = o.url;
  json["store_id"] = fmt::format("{:016x}", f.store_id);
  json["writer_running"] = f.writer_runs;
  json["records"] = f.records();
  json["cursors"] = {
      {"first", f.cursors.first.value}, {"durable", f.cursors.durable.value}, {"committed", f.cursors.committed.value}};
  json["payload_bytes"] = f.payload_known ? nlohmann::ordered_json(f.payload_bytes) : nlohmann::ordered_json();
  json["blocks"] = f.payload_known ? nlohmann::ordered_json(f.blocks) : nlohmann::ordered_json();
  json["bytes_on_disk"] = f.size_on_disk();
  json["segments"] = f.recovery.segments;
  json["segment_size"] = f.segment_size.value;
  json["epoch"] = f.recovery.epoch;
  json["recovery"] = {{"clean", f.recovery.clean},
                      {"scanned_bytes", f.recovery.scanned_bytes},
                      {"cut_bytes", f.recovery.cut_bytes},
                      {"cut_records", f.recovery.cut_records},
                      {"nanoseconds", f.recovery.nanoseconds}};
  json["files"] = nlohmann::ordered_json::array();
  for (const StoreFile& file : f.files) {
    json["files"].push_back({{"name", file.name}, {"size", file.info.size}, {"allocated", file.info.allocated}});
  }
  fmt::print("{}\n", json.dump(2));
}

int run(const InfoOptions& o) {
  const auto facts = gather(o);
  if (!facts.ok()) return report_open_failure(facts.status(), o.url);
  o.json ? print_json(o, *facts) : print_text(o, *facts);
  return kExitOk;
}

}  // namespace

void add_log_info(CLI::App& noun, Action& chosen) {
  auto o = std::make_shared<InfoOptions>();
  CLI::App* verb = add_verb(noun, chosen, "info", "Say what a log holds and what it costs on disk", o, run);
  add_log_url(*verb, o->url);
  verb->add_flag("--payload", o->payload, "Read the whole log to count the bytes of its records");
  verb->add_flag("--json", o->json, "As one JSON object");
  verb->footer(
      "Changes nothing, also beside a running writer.\n\n"
      "Examples:\n"
      "  tier log info local:///tmp/services\n"
      "  tier log info local:///tmp/services --json | jq .cursors.durable");
}

}  // namespace tier::cli
