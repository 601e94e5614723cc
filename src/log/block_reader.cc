#include "log/block_reader.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"

namespace tier {

using log_format::BlockHeader;

BlockReader::BlockReader(Engine& engine) noexcept
    : engine_(engine), segment_size_(engine.segment_size().value), store_id_(engine.store_id()) {}

Result<ByteSpan> BlockReader::bytes(std::uint64_t address, std::uint64_t size, std::uint64_t limit) {
  if (address < window_begin_ || address + size > window_begin_ + window_size_) {
    const std::uint64_t segment_end = align_down(address, segment_size_) + segment_size_;
    const std::uint64_t most = std::min(limit, segment_end) - address;  // the caller asks below both
    window_size_ = 0;
    if (!asked_) {  // whether views are free, once there is a byte to ask for
      TIER_TRY(const View probe, engine_.view(Address{address}, Bytes{1}));
      mapped_ = probe.zero_copy();
      asked_ = true;
    }
    if (mapped_) {
      TIER_TRY(view_, engine_.view(Address{address}, Bytes{most}));
      window_ = view_.bytes().data();
      window_size_ = most;
    } else {
      const std::uint64_t wanted = std::max(size, std::min(most, kReadAhead));
      if (buffer_.size() < wanted) {
        TIER_TRY(buffer_, AlignedBuffer::allocate(std::max(wanted, kReadAhead)));
      }
      TIER_CHECK(engine_.read(Address{address}, buffer_.span().first(wanted)));
      window_ = buffer_.data();
      window_size_ = wanted;
    }
    window_begin_ = address;
  }
  return ByteSpan{window_ + (address - window_begin_), size};
}

Result<bool> BlockReader::header_at(std::uint64_t address, std::uint64_t limit, BlockHeader& out) {
  const std::uint64_t segment_end = align_down(address, segment_size_) + segment_size_;
  if (address + sizeof out > std::min(limit, segment_end)) return false;  // K2
  TIER_TRY(const ByteSpan raw, bytes(address, sizeof out, limit));
  std::memcpy(&out, raw.data(), sizeof out);
  if (out.magic == log_format::kBlockMagic && out.version > log_format::kVersion && out.store_id == store_id_ &&
      out.header_crc == crc32c(raw.subspan(4)))
    return fail(Code::kUnsupported, 0, "this log was written by a newer version; upgrade to read it",
                "%s, block version %u, this build reads up to %u", engine_.locate(Address{address}).c_str(), out.version,
                log_format::kVersion);
  return log_format::check_header(out) == nullptr && out.store_id == store_id_ && out.address == address &&
         out.payload_bytes <= segment_end - address - sizeof out;  // B1, B2
}

Result<BlockReader::Found> BlockReader::next(const LogPosition& position, std::uint64_t limit, Payload payload,
                                             Block& out) {
  const std::uint64_t packed = align_up(position.end, log_format::kBlockAlign);
  const std::uint64_t paged = align_up(position.end, log_format::kPage);
  const std::uint64_t rolled = align_up(position.end, segment_size_);
  const std::uint64_t candidates[] = {packed, paged, rolled};
  Status unreadable;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::uint64_t at = candidates[i];
    if (i > 0 && at == candidates[i - 1]) continue;
    const auto found = header_at(at, limit, out.header);
    if (!found.ok()) {  // a block that can be read at another candidate shows that none is missing
      if (unreadable.ok()) unreadable = found.status();
      continue;
    }
    if (!*found) continue;
    const BlockHeader& h = out.header;
    if ((h.predecessor != position.end && !TIER_BUG("log_ignore_predecessor")) ||
        h.first_sequence != position.sequence || (h.epoch < position.epoch && !TIER_BUG("log_ignore_epoch")) ||
        (position.crc != 0 && h.predecessor_crc != 0 && h.predecessor_crc != position.crc))
      continue;                                                // K1
    if (h.payload_bytes > limit - at - sizeof h) continue;     // K2: not whole below the limit
    if (payload == Payload::kSkip) return Found::kBlock;
    TIER_TRY(out.payload, bytes(at + sizeof h, h.payload_bytes, limit));
    if (TIER_BUG("log_ignore_payload_checksum")) return Found::kBlock;
    if (payload == Payload::kVerify && crc32c(out.payload) != h.payload_crc) return Found::kDamaged;
    return Found::kBlock;
  }
  if (!unreadable.ok()) return unreadable;
  return Found::kNothing;
}

}  // namespace tier
