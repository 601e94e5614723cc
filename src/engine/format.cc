#include "engine/format.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tier/crc32c.h"

namespace tier {
namespace {

constexpr std::uint32_t kCleanFlag = 1u << 0;

template <class T>
T load(ByteSpan bytes) noexcept {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// D1: the CRC of all bytes before the last four.
template <class T>
std::uint32_t crc_of(const T& value) noexcept {
  return crc32c(std::as_bytes(std::span(&value, 1)).first(sizeof(T) - sizeof(std::uint32_t)));
}

template <class T>
HeaderPage page_of(T& value) noexcept {
  static_assert(sizeof(T) == kHeaderPage);
  value.crc32c = crc_of(value);
  HeaderPage page;
  std::memcpy(page.data(), &value, sizeof value);
  return page;
}

bool all_zero(ByteSpan bytes) noexcept {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

bool valid_segment_size(std::uint64_t n) noexcept {
  return std::has_single_bit(n) && n >= kSegmentSizeMin && n <= kSegmentSizeMax;
}

bool valid_kind(const std::array<char, 16>& kind) noexcept {
  const auto end = std::find(kind.begin(), kind.end(), '\0');
  return end != kind.begin() && end != kind.end() &&
         std::all_of(kind.begin(), end, [](char c) { return c > ' ' && c < 0x7f; }) &&
         std::all_of(end, kind.end(), [](char c) { return c == '\0'; });
}

}  // namespace

HeaderPage encode_manifest(const Manifest& m) noexcept {
  ManifestSlot s{};
  s.magic = kManifestMagic;
  s.version = kEngineVersion;
  s.flags = m.clean ? kCleanFlag : 0;
  s.store_id = m.store_id;
  s.generation = m.generation;
  s.kind = m.kind;
  s.segment_size = m.segment_size;
  s.begin = m.begin;
  s.cut = m.cut;
  s.epoch = m.epoch;
  if (m.clean) {
    s.clean_epoch = m.clean_mark.epoch;
    s.clean_address = m.clean_mark.address.value;
    s.clean_value = m.clean_mark.value;
  }
  s.owner_bytes = m.owner_bytes;
  std::copy_n(m.owner.begin(), m.owner_bytes, s.owner.begin());
  return page_of(s);
}

Result<Manifest> decode_manifest(ByteSpan page, unsigned slot) {
  if (page.size() < sizeof(ManifestSlot)) return Status(Code::kCorruption, "a manifest slot is cut short");
  const auto s = load<ManifestSlot>(page);
  if (s.magic != kManifestMagic) return Status(Code::kCorruption, "not a manifest slot: wrong magic");
  if (s.crc32c != crc_of(s)) return Status(Code::kCorruption, "a manifest slot is damaged: wrong checksum");
  if (s.version != kEngineVersion) {
    return fail(Code::kUnsupported, 0, "the store was written by a newer version; open it with that one",
                "format version %u, this program knows up to %u", s.version, kEngineVersion);
  }
  Manifest m;
  m.store_id = s.store_id;
  m.generation = s.generation;
  m.kind = s.kind;
  m.segment_size = s.segment_size;
  m.begin = s.begin;
  m.cut = s.cut;
  m.epoch = s.epoch;
  m.clean = (s.flags & kCleanFlag) != 0;
  m.clean_mark = {Address{s.clean_address}, s.clean_value, s.clean_epoch};
  m.owner_bytes = s.owner_bytes;
  m.owner = s.owner;
  const bool sound =
      m.store_id != 0 && m.generation != 0 && (m.generation & 1) == slot /* D3 */ && valid_kind(m.kind) &&
      valid_segment_size(m.segment_size) && m.begin < Address::kMax && m.cut < Address::kMax &&
      m.clean_mark.address.value < Address::kMax && m.clean_mark.epoch <= m.epoch && m.owner_bytes <= kOwnerDataMax &&
      (s.flags & ~kCleanFlag) == 0 && s.reserved0 == 0 && all_zero(s.reserved) &&
      all_zero(std::span(s.owner).subspan(std::min<std::size_t>(m.owner_bytes, kOwnerDataMax))) &&
      (m.clean || (s.clean_address == 0 && s.clean_value == 0 && s.clean_epoch == 0)) &&
      std::max({m.begin, m.cut, m.clean_mark.address.value}) / m.segment_size < kSegmentsMax;
  if (!sound) return Status(Code::kCorruption, "a manifest slot has fields out of range");
  return m;
}

HeaderPage encode_segment_header(std::uint64_t store_id, std::uint64_t segment, std::uint64_t segment_size,
                                 std::uint32_t epoch, std::uint64_t salt) noexcept {
  SegmentHeader h{};
  h.magic = kSegmentMagic;
  h.version = kEngineVersion;
  h.epoch = epoch;
  h.store_id = store_id;
  h.segment = segment;
  h.segment_size = segment_size;
  h.salt = salt;
  return page_of(h);
}

Result<SegmentIdentity> decode_segment_header(ByteSpan page) {
  if (page.size() < sizeof(SegmentHeader)) return Status(Code::kCorruption, "a segment header is cut short");
  const auto h = load<SegmentHeader>(page);
  if (h.magic != kSegmentMagic) return Status(Code::kCorruption, "not a segment: wrong magic");
  if (h.crc32c != crc_of(h)) return Status(Code::kCorruption, "a segment header is damaged: wrong checksum");
  if (h.version != kEngineVersion) {
    return fail(Code::kUnsupported, 0, "the segment was written by a newer version; open it with that one",
                "format version %u, this program knows up to %u", h.version, kEngineVersion);
  }
  if (!all_zero(h.reserved) || h.store_id == 0 || h.segment >= kSegmentsMax || !valid_segment_size(h.segment_size))
    return Status(Code::kCorruption, "a segment header has fields out of range");
  return SegmentIdentity{h.store_id, h.segment, h.segment_size, h.salt, h.epoch};
}

HeaderPage encode_mark(std::uint64_t store_id, std::uint64_t segment, const StoredMark& mark) noexcept {
  MarkSector m{};
  m.magic = kMarkMagic;
  m.store_id = store_id;
  m.segment = segment;
  m.generation = mark.generation;
  m.address = mark.mark.address.value;
  m.value = mark.mark.value;
  m.epoch = mark.mark.epoch;
  m.crc32c = crc_of(m);
  HeaderPage page{};
  std::memcpy(page.data(), &m, sizeof m);
  std::memcpy(page.data() + kMarkCopyStride, &m, sizeof m);  // D4
  return page;
}

StoredMark decode_mark(ByteSpan page, std::uint64_t store_id, std::uint64_t segment) noexcept {
  StoredMark newest;
  for (std::uint64_t at = 0; at + sizeof(MarkSector) <= page.size() && at <= kMarkCopyStride; at += kMarkCopyStride) {
    const auto m = load<MarkSector>(page.subspan(at));
    if (m.magic != kMarkMagic || m.crc32c != crc_of(m) || m.store_id != store_id || m.segment != segment ||
        m.address >= Address::kMax || !all_zero(m.reserved))
      continue;
    if (m.generation > newest.generation) newest = {{Address{m.address}, m.value, m.epoch}, m.generation};
  }
  return newest;
}

std::string segment_name(std::uint64_t segment) {
  char name[32];
  std::snprintf(name, sizeof name, "%012llx.seg", static_cast<unsigned long long>(segment));
  return name;
}

}  // namespace tier
