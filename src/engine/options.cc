#include "engine/options.h"

#include <algorithm>
#include <bit>

#include "engine/format.h"

namespace tier {
namespace {

constexpr const char* kText = "an engine option is out of range; change it";

Status out_of_range(const char* field, std::uint64_t value, const char* range) {
  return fail(Code::kInvalid, 0, kText, "%s = %llu, must be %s", field, static_cast<unsigned long long>(value), range);
}

}  // namespace

Status check_engine_options(const EngineOptions& o) {
  const std::uint64_t size = o.segment_size.value;
  const std::uint64_t least = o.allow_small_segments ? kSegmentSizeMin : kSegmentSizeMinNormal;
  if (!std::has_single_bit(size) || size < least || size > kSegmentSizeMax) {
    return out_of_range("segment_size", size,
                        o.allow_small_segments ? "a power of two from 512 to 68719476736"
                                               : "a power of two from 1048576 to 68719476736");
  }
  if (o.tail_policy != TailPolicy::kManaged && o.tail_policy != TailPolicy::kCaller)
    return out_of_range("tail_policy", static_cast<std::uint64_t>(o.tail_policy), "kManaged or kCaller");
  if (o.mode != FileMode::kBuffered && o.mode != FileMode::kMapped && o.mode != FileMode::kWriteThrough)
    return out_of_range("mode", static_cast<std::uint64_t>(o.mode), "kBuffered, kMapped or kWriteThrough");
  if (o.allocate_ahead.value < 512 || o.allocate_ahead.value > kSegmentSizeMax)
    return out_of_range("allocate_ahead", o.allocate_ahead.value, "512 to 68719476736 bytes");
  if (o.prepared_segments > 64) return out_of_range("prepared_segments", o.prepared_segments, "0 to 64");
  if (o.claim_timeout < Duration::zero()) {
    return fail(Code::kInvalid, 0, kText, "claim_timeout = %lld ns, must not be negative",
                static_cast<long long>(o.claim_timeout.count()));
  }
  if (o.create != Create::kNever && o.create != Create::kIfMissing && o.create != Create::kExclusive)
    return out_of_range("create", static_cast<std::uint64_t>(o.create), "kNever, kIfMissing or kExclusive");
  if (o.read_only && o.create != Create::kNever)
    return out_of_range("create", static_cast<std::uint64_t>(o.create), "kNever with read_only: reading creates nothing");
  const bool letters = std::all_of(o.kind.begin(), o.kind.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (o.kind.empty() || o.kind.size() > kKindMax || !letters) {
    return fail(Code::kInvalid, 0, kText, "kind = '%.*s', must be 1 to 15 printable ASCII letters",
                static_cast<int>(std::min<std::size_t>(o.kind.size(), 64)), o.kind.data());
  }
  return {};
}

}  // namespace tier
