/// What the log's programs share: the sizes of the table, and a log in a scratch store whose ring has been touched.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/measure.h"
#include "harness/places.h"
#include "tier/log.h"

namespace tier::bench {

inline constexpr std::array<std::size_t, 11> kRecordSizes = {0, 16, 64, 128, 256, 300, 512, 1024, 4096, 65536, 524288};

/// 1 and 2 producers; with 256 bytes 4 and 8 as well.
inline std::vector<unsigned> producer_counts(std::size_t record) {
  return record == 256 ? std::vector<unsigned>{1, 2, 4, 8} : std::vector<unsigned>{1, 2};
}

inline std::string log_case_name(const char* verb, const Place& place, std::size_t record, unsigned threads) {
  return case_name("log/", verb, "/", place.kind, "/", record, "/", threads, "t");
}

/// A new log, through whose ring records have gone once: no figure pays for the first touch of its memory.
inline Result<std::unique_ptr<Log>> open_warm_log(const Scratch& scratch, const LogOptions& options) {
  TIER_CHECK(scratch.status());
  TIER_TRY(std::unique_ptr<Log> log, Log::open(scratch.file_system(), scratch.path(), options));
  const std::vector<std::byte> record(16u << 10, std::byte{1});
  const std::uint64_t warm = options.ring_size.value + options.ring_size.value / 8;
  const std::uint64_t drain = options.ring_size.value / 4;
  std::uint64_t since = 0;
  for (std::uint64_t n = 0; n < warm; n += record.size()) {
    TIER_TRY(const Sequence sequence, log->append(ByteSpan(record)));
    static_cast<void>(sequence);
    since += record.size();
    if (since >= drain) {
      TIER_CHECK(log->flush());
      since = 0;
    }
  }
  TIER_CHECK(log->flush());
  return log;
}

/// What the blocks that were written between two readings held.
inline void note_blocks(const LogStatistics& before, const LogStatistics& after, Sample& s) {
  const double blocks = static_cast<double>(after.blocks - before.blocks);
  const double records = static_cast<double>(after.appends - before.appends);
  if (blocks == 0 || records == 0) return;
  const double bytes = static_cast<double>(after.block_bytes - before.block_bytes);
  s.extra["records_per_block"] = records / blocks;
  s.extra["bytes_per_block"] = bytes / blocks;
  s.extra["overhead_bytes_per_record"] =
      (bytes - static_cast<double>(after.append_bytes - before.append_bytes)) / records;
  s.extra["syncs"] = static_cast<double>(after.syncs - before.syncs);
  s.extra["queue_full_waits"] = static_cast<double>(after.queue_full_waits - before.queue_full_waits);
}

inline Status close_log(Log& log) {
  const CloseReport report = log.close();
  if (report.outcome == CloseOutcome::kClean || !report.status.ok()) return report.status;
  return Status(Code::kTimedOut, "the log did not close cleanly");
}

}  // namespace tier::bench
