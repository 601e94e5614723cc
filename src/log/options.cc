#include <algorithm>
#include <bit>

#include "log/log_core.h"

namespace tier {
namespace {

struct Range {
  const char* field;
  std::uint64_t value;
  std::uint64_t least;
  std::uint64_t most;
};

std::uint64_t nanoseconds(Duration d) noexcept { return d.count() < 0 ? 0 : static_cast<std::uint64_t>(d.count()); }

}  // namespace

const char* durability_name(Durability d) noexcept {
  switch (d) {
    case Durability::kSync: return "sync";
    case Durability::kBatch: return "batch";
    case Durability::kAsync: return "async";
  }
  return "unknown";
}

Status check_log_options(const LogOptions& o) {
  const bool small = o.allow_small_segments;
  const std::uint64_t ring_least = small ? 4096 : 64u << 10;
  const std::uint64_t segment_least = small ? 4096 : 1u << 20;
  const Range ranges[] = {
      {"ring_size", o.ring_size.value, ring_least, 64u << 20},
      {"segment_size", o.segment_size.value, segment_least, std::uint64_t{64} << 30},
      {"batch_bytes", o.batch_bytes.value, small ? std::uint64_t{1} : std::uint64_t{4096}, std::max<std::uint64_t>(o.ring_size.value / 4, 1)},
      {"batch_records", o.batch_records, 1, 1u << 20},
      {"batch_interval (ns)", nanoseconds(o.batch_interval), 100'000, 60'000'000'000},
      {"max_record", o.max_record.value, 0, o.segment_size.value / 4},
      {"queue_full_timeout (ns)", nanoseconds(o.queue_full_timeout), 0, nanoseconds(std::chrono::hours(24 * 365))},
      {"index_stride", o.index_stride, 16, 1u << 20},
      {"durability", static_cast<std::uint64_t>(o.durability), 0, 2},
      {"queue_full", static_cast<std::uint64_t>(o.queue_full), 0, 1},
      {"align", static_cast<std::uint64_t>(o.align), 0, 1},
      {"create", static_cast<std::uint64_t>(o.create), 0, 2},
  };
  for (const Range& r : ranges)
    if (r.value < r.least || r.value > r.most)
      return fail(Code::kInvalid, 0, "log option out of range", "%s = %llu, allowed %llu to %llu", r.field,
                  static_cast<unsigned long long>(r.value), static_cast<unsigned long long>(r.least),
                  static_cast<unsigned long long>(r.most));
  for (const Range& r : {ranges[0], ranges[1]})
    if (!std::has_single_bit(r.value))
      return fail(Code::kInvalid, 0, "log option must be a power of two", "%s = %llu", r.field,
                  static_cast<unsigned long long>(r.value));
  if (o.mode == FileMode::kDirect || o.mode == FileMode::kDirectWriteThrough)
    return fail(Code::kUnsupported, 0, "a log's segments cannot be opened for direct I/O; use buffered or write-through",
                "mode = %s", file_mode_name(o.mode));
  return {};
}

}  // namespace tier
