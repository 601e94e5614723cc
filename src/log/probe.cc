#include "log/probe.h"

#include <algorithm>
#include <cstring>

namespace tier {
namespace {

constexpr std::uint64_t kWindow = 256u << 10;

bool all_zero(const std::byte* unit) noexcept {
  std::uint64_t words[log_format::kBlockAlign / 8];
  std::memcpy(words, unit, sizeof words);
  std::uint64_t any = 0;
  for (const std::uint64_t w : words) any |= w;
  return any == 0;
}

}  // namespace

Result<Probe> probe_header(BlockReader& reader, std::uint64_t from, std::uint64_t limit, std::uint64_t segment_size,
                           std::uint64_t zeros_most) {
  Probe probe;
  from = align_up(from, log_format::kBlockAlign);
  std::uint64_t at = from;
  while (at + log_format::kBlockAlign <= limit && at - std::max(from, probe.nonzero_end) < zeros_most) {
    const std::uint64_t end = std::min({limit, align_down(at, segment_size) + segment_size, at + kWindow});
    TIER_TRY(const ByteSpan window, reader.bytes(at, end - at, limit));
    std::uint64_t candidate = limit;
    for (std::uint64_t offset = 0; offset + log_format::kBlockAlign <= window.size(); offset += log_format::kBlockAlign) {
      const std::byte* unit = window.data() + offset;
      if (all_zero(unit)) continue;
      probe.nonzero_end = at + offset + log_format::kBlockAlign;
      if (log_format::load_u32(unit + offsetof(log_format::BlockHeader, magic)) == log_format::kBlockMagic) {
        candidate = at + offset;
        break;
      }
    }
    if (candidate == limit) {
      at = end;
      continue;
    }
    TIER_TRY(probe.found, reader.header_at(candidate, limit, probe.header));
    if (probe.found) {
      probe.address = candidate;
      return probe;
    }
    at = candidate + log_format::kBlockAlign;
  }
  return probe;
}

}  // namespace tier
