/// log/replay: a scan from the first record to the last, checksums verified, the files warm in the page cache. Each
/// repetition opens the log anew, so that nothing is verified already.
#include <optional>
#include <string>

#include "harness/limits.h"
#include "harness/payload.h"
#include "log/log_cases.h"

namespace tier::bench {
namespace {

constexpr std::size_t kRecord = 128;

/// The log that all repetitions read, written by the first.
struct Written {
  std::unique_ptr<Scratch> scratch;
  std::uint64_t records = 0;
};

Status write(const Place& place, std::uint64_t records, Written& written) {
  auto scratch = std::make_unique<Scratch>(place);
  TIER_CHECK(scratch->status());
  LogOptions options;
  options.durability = Durability::kAsync;
  TIER_TRY(const std::unique_ptr<Log> log, Log::open(scratch->file_system(), scratch->path(), options));
  const Payload payload(kRecord, 1);
  for (std::uint64_t i = 0; i < records; ++i) {
    TIER_TRY(const Sequence sequence, log->append(payload.at(0, i)));
    static_cast<void>(sequence);
  }
  TIER_CHECK(close_log(*log));
  written.scratch = std::move(scratch);
  written.records = records;
  return {};
}

Status read(const Written& written, Sample& s) {
  LogOptions options;
  options.read_only = true;
  options.create = Create::kNever;
  TIER_TRY(const std::unique_ptr<Log> log, Log::open(written.scratch->file_system(), written.scratch->path(), options));
  std::uint64_t records = 0;
  std::uint64_t sum = 0;
  const std::uint64_t allocated = allocations();
  const std::uint64_t start = StampClock::monotonic_ns();
  TIER_TRY(const std::unique_ptr<Cursor> cursor, log->scan(Sequence{0}));
  for (;;) {
    TIER_TRY(const std::optional<Record> record, cursor->next());
    if (!record) break;
    sum += record->bytes.size() + static_cast<std::uint64_t>(record->bytes[0]);
    ++records;
  }
  s.ns = static_cast<double>(StampClock::monotonic_ns() - start);
  s.allocations = allocations() - allocated;
  s.ops = records;
  s.allocation_ops = records;
  s.bytes = records * kRecord;
  if (records != written.records || sum < records * kRecord) return Status(Code::kCorruption, "the scan lost records");
  return {};
}

}  // namespace

void register_cases(Registry& registry) {
  const std::uint64_t records = registry.effort().pick(std::uint64_t{4} << 20, std::uint64_t{2} << 20);
  for (const Place& place : places({"local"})) {
    auto written = std::make_shared<Written>();
    auto repetition = [=](Sample& s) {
      Status status = written->scratch == nullptr ? write(place, records, *written) : Status();
      if (status.ok()) status = read(*written, s);
      if (!status.ok()) s.failure = status.message();
    };
    registry.add(log_case_name("replay", place, kRecord, 1), repetition,
                 limit_replay(registry, place, kRecord, records), {},
                 "warm page cache, every block's checksum verified, read-only open outside the timed part");
  }
}

}  // namespace tier::bench
