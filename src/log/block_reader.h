/// BlockReader: finds, checks and hands out the block that follows a position. Every way of reading a log goes through it:
/// recovery, cursors, single reads, verify.
///
/// Shape       a window of the engine's bytes: the bytes themselves where the engine maps them, else a buffer that is read
///             ahead. A block's payload is valid until the next call.
/// Invariants  (K1) a block is returned only if its header checks (B1, B2), names the position's end as predecessor (B3),
///                  continues its sequence, and does not lower the epoch (B4); with `verify` its payload checks too.
///             (K2) nothing at or above `limit` is looked at.
/// Threads     one.
/// Outcomes    a value: a block, or kNothing (no valid header where one may stand), or kDamaged (a valid header whose payload
///             does not check). Errors: kTruncated, kIo, kUnsupported (written by a newer version), ...
#pragma once

#include <cstdint>

#include "base/aligned_buffer.h"
#include "log/format.h"
#include "log/read_state.h"
#include "tier/engine.h"

namespace tier {

struct Block {
  log_format::BlockHeader header{};
  ByteSpan payload;
  std::uint64_t end() const noexcept { return header.address + sizeof header + header.payload_bytes; }
  /// The position behind it.
  LogPosition after() const noexcept {
    return {end(), header.first_sequence + header.count, header.epoch, header.header_crc};
  }
};

class BlockReader {
 public:
  enum class Found : std::uint8_t { kBlock, kNothing, kDamaged };
  enum class Payload : std::uint8_t { kSkip, kRead, kVerify };

  explicit BlockReader(Engine& engine) noexcept;

  /// The block after `position`, wholly below `limit`.
  Result<Found> next(const LogPosition& position, std::uint64_t limit, Payload payload, Block& out);
  /// A header that checks on its own (B1, B2) at exactly `address`; false if there is none.
  Result<bool> header_at(std::uint64_t address, std::uint64_t limit, log_format::BlockHeader& out);
  /// `size` bytes at `address`, valid until the next call. `limit` bounds the read-ahead.
  Result<ByteSpan> bytes(std::uint64_t address, std::uint64_t size, std::uint64_t limit);
  /// Forgets what was read ahead (it may have been written since).
  void forget() noexcept { window_size_ = 0; }

 private:
  static constexpr std::uint64_t kReadAhead = 1u << 20;

  Engine& engine_;
  const std::uint64_t segment_size_;
  const std::uint64_t store_id_;
  bool asked_ = false;
  bool mapped_ = false;
  View view_;
  AlignedBuffer buffer_;
  const std::byte* window_ = nullptr;
  std::uint64_t window_begin_ = 0;
  std::uint64_t window_size_ = 0;
};

}  // namespace tier
