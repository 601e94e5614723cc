/// The bytes of a log on disk: blocks of records, and the log's part of the manifest. Little-endian. docs/formats.md repeats
/// the tables and argues each crash point.
///
/// A block is a header of 96 bytes and its records back to back, each a 4-byte word (bit 31: void; else its length) and its
/// bytes. Blocks start at multiples of 64; one block never crosses a segment. The block after one that ended at E starts at
/// the next multiple of 64, or of 4,096 (a page with a write in flight is left alone), or at the next segment.
///
/// Invariants  (B1) header_crc covers the rest of the header, payload_crc the records: a header is believed before its
///                  payload is read, so that damage in a payload does not hide what follows.
///             (B2) store, address and epoch are under the checksum: a block of another store, place or life is not a block here.
///             (B3) predecessor is where the block before ended: nothing can be missing between two blocks that name each other.
///             (B4) epochs never decrease along the log.
///             (B5) durable_mark: all records below it were durable when the block was written.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tier/crc32c.h"
#include "tier/types.h"

namespace tier::log_format {

static_assert(std::endian::native == std::endian::little, "the format is little-endian and read in place");

inline constexpr std::uint32_t kBlockMagic = 0x4b4c4254;  // "TBLK"
inline constexpr std::uint16_t kVersion = 1;
inline constexpr std::uint32_t kBlockAlign = 64;
inline constexpr std::uint32_t kPage = 4096;

enum class BlockKind : std::uint8_t { kRecords = 1 };

struct BlockHeader {              // off size
  std::uint32_t header_crc;       //   0   4  CRC32C of bytes [4, 96)
  std::uint32_t magic;            //   4   4  "TBLK"
  std::uint16_t version;          //   8   2  1
  BlockKind kind;                 //  10   1  1: records
  std::uint8_t codec;             //  11   1  0: as they are
  std::uint32_t epoch;            //  12   4  of the writer's open
  std::uint64_t store_id;         //  16   8  of the manifest
  std::uint64_t address;          //  24   8  of this header
  std::uint64_t first_sequence;   //  32   8
  std::uint64_t durable_mark;     //  40   8  sequences below were durable when this was written
  std::uint64_t predecessor;      //  48   8  end of the block before; 0 for the first of all
  std::uint32_t predecessor_crc;  //  56   4  its header_crc; 0 when there is none or it is not known
  std::uint32_t count;            //  60   4  records, at least 1
  std::uint32_t payload_bytes;    //  64   4  after the header
  std::uint32_t payload_crc;      //  68   4  CRC32C of the payload
  std::uint64_t wall_ns;          //  72   8  clock when written
  std::uint64_t reserved[2];      //  80  16  zero
};
static_assert(sizeof(BlockHeader) == 96 && offsetof(BlockHeader, store_id) == 16 && offsetof(BlockHeader, count) == 60 &&
              offsetof(BlockHeader, wall_ns) == 72);
static_assert(std::has_unique_object_representations_v<BlockHeader>);

/// What is wrong with 96 bytes as a header on their own; nullptr if nothing is. Place and chain are checked by the reader.
inline const char* check_header(const BlockHeader& h) noexcept {
  if (h.magic != kBlockMagic) return "no block magic";
  if (h.header_crc != crc32c({reinterpret_cast<const std::byte*>(&h) + 4, sizeof h - 4})) return "block header checksum";
  if (h.kind != BlockKind::kRecords || h.codec != 0 || h.reserved[0] != 0 || h.reserved[1] != 0 || h.count == 0 ||
      h.payload_bytes < std::uint64_t{h.count} * 4)
    return "block header fields";
  return nullptr;
}

inline void seal_header(BlockHeader& h) noexcept {
  h.header_crc = crc32c({reinterpret_cast<const std::byte*>(&h) + 4, sizeof h - 4});
}

inline constexpr std::uint32_t kFramePrefix = 4;
inline constexpr std::uint32_t kVoidBit = 0x8000'0000u;

inline std::uint32_t load_u32(const std::byte* p) noexcept {
  std::uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store_u32(std::byte* p, std::uint32_t v) noexcept { std::memcpy(p, &v, sizeof v); }

/// The log's owner data in the engine's manifest: where the kept records begin.
struct LogManifest {             // off size
  std::uint32_t crc;             //   0   4  CRC32C of bytes [4, 32)
  std::uint32_t version;         //   4   4  1
  std::uint64_t first_sequence;  //   8   8  oldest record kept
  std::uint64_t first_position;  //  16   8  end of the block before it
  std::uint64_t reserved;        //  24   8  zero
};
static_assert(sizeof(LogManifest) == 32 && std::has_unique_object_representations_v<LogManifest>);

}  // namespace tier::log_format
