/// The bytes of an engine on disk: manifest slots, segment headers, mark slots. Little-endian; `docs/formats.md` repeats
/// the tables.
///
/// Shape       MANIFEST: slot 0 at 0, slot 1 at 4,096. Segment file: header page, mark slot pages A and B, a reserved page,
///             then the data from byte 16,384 on; the file is 16,384 + segment size long from its creation.
/// Invariants  (D1) every structure ends with the masked CRC32C of all its bytes before, reserved ones included, in every
///                  version of the format: so damage is told from a newer version.
///             (D2) reserved bytes are zero and checked.
///             (D3) a manifest of generation g lies in slot g mod 2: a misplaced slot is damage.
///             (D4) a mark slot holds its mark twice, 2,048 bytes apart: one bad sector loses no mark.
/// Outcomes    kCorruption: not what was written. kUnsupported: whole, but of a newer version.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "tier/engine.h"
#include "tier/result.h"
#include "tier/types.h"

namespace tier {

static_assert(std::endian::native == std::endian::little, "the structures are written as they lie in memory");

inline constexpr std::uint32_t kEngineVersion = 1;
inline constexpr std::uint64_t kManifestMagic = 0x7473'656e'614d'7254u;  // "TrManest"
inline constexpr std::uint64_t kSegmentMagic = 0x746e'656d'6753'7254u;   // "TrSgment"
inline constexpr std::uint64_t kMarkMagic = 0x316b'7261'4d67'7254u;      // "TrgMark1"

inline constexpr std::uint64_t kHeaderPage = 4096;
inline constexpr std::uint64_t kSegmentDataOffset = 4 * kHeaderPage;
inline constexpr std::uint64_t kManifestBytes = 2 * kHeaderPage;
inline constexpr std::uint64_t kMarkCopyStride = 2048;
inline constexpr std::size_t kOwnerDataMax = 1024;
inline constexpr std::size_t kKindMax = 15;
inline constexpr std::uint64_t kSegmentSizeMin = 512;
inline constexpr std::uint64_t kSegmentSizeMinNormal = 1u << 20;
inline constexpr std::uint64_t kSegmentSizeMax = 64ull << 30;
/// Segment numbers stay below this, whatever their size.
inline constexpr std::uint64_t kSegmentsMax = 1u << 28;

struct ManifestSlot {                       // off  size
  std::uint64_t magic;                      //   0     8
  std::uint32_t version;                    //   8     4
  std::uint32_t flags;                      //  12     4  bit 0: closed cleanly
  std::uint64_t store_id;                   //  16     8  random, not 0
  std::uint64_t generation;                 //  24     8  from 1
  std::array<char, 16> kind;                //  32    16  letters, then zeros
  std::uint64_t segment_size;               //  48     8
  std::uint64_t begin;                      //  56     8
  std::uint64_t cut;                        //  64     8  tail of the last reclaim_tail
  std::uint32_t epoch;                      //  72     4  of the tail from `cut` on
  std::uint32_t clean_epoch;                //  76     4
  std::uint64_t clean_address;              //  80     8
  std::uint64_t clean_value;                //  88     8
  std::uint32_t reserved0;                  //  96     4
  std::uint32_t owner_bytes;                // 100     4
  std::array<std::byte, kOwnerDataMax> owner;  // 104  1024
  std::array<std::byte, 2964> reserved;     // 1128 2964
  std::uint32_t crc32c;                     // 4092    4  of bytes [0, 4092)
};
static_assert(sizeof(ManifestSlot) == kHeaderPage && offsetof(ManifestSlot, kind) == 32 &&
              offsetof(ManifestSlot, epoch) == 72 && offsetof(ManifestSlot, owner) == 104 &&
              offsetof(ManifestSlot, crc32c) == 4092);
static_assert(std::has_unique_object_representations_v<ManifestSlot>);

struct SegmentHeader {                      // off  size
  std::uint64_t magic;                      //   0     8
  std::uint32_t version;                    //   8     4
  std::uint32_t epoch;                      //  12     4  of the tail when it was created
  std::uint64_t store_id;                   //  16     8
  std::uint64_t segment;                    //  24     8
  std::uint64_t segment_size;               //  32     8
  std::uint64_t salt;                       //  40     8  random, new with each creation
  std::array<std::byte, 4044> reserved;     //  48  4044
  std::uint32_t crc32c;                     // 4092    4  of bytes [0, 4092)
};
static_assert(sizeof(SegmentHeader) == kHeaderPage && offsetof(SegmentHeader, salt) == 40 &&
              offsetof(SegmentHeader, crc32c) == 4092);
static_assert(std::has_unique_object_representations_v<SegmentHeader>);

struct MarkSector {                         // off  size
  std::uint64_t magic;                      //   0     8
  std::uint64_t store_id;                   //   8     8
  std::uint64_t segment;                    //  16     8
  std::uint64_t generation;                 //  24     8  from 1, rising in its segment
  std::uint64_t address;                    //  32     8
  std::uint64_t value;                      //  40     8
  std::uint32_t epoch;                      //  48     4
  std::array<std::byte, 456> reserved;      //  52   456
  std::uint32_t crc32c;                     // 508     4  of bytes [0, 508)
};
static_assert(sizeof(MarkSector) == 512 && offsetof(MarkSector, epoch) == 48 && offsetof(MarkSector, crc32c) == 508);
static_assert(std::has_unique_object_representations_v<MarkSector>);

using HeaderPage = std::array<std::byte, kHeaderPage>;

/// A manifest slot, decoded.
struct Manifest {
  std::uint64_t store_id = 0;
  std::uint64_t generation = 0;
  std::array<char, 16> kind{};
  std::uint64_t segment_size = 0;
  std::uint64_t begin = 0;
  std::uint64_t cut = 0;
  std::uint32_t epoch = 0;
  bool clean = false;
  Mark clean_mark;
  std::uint32_t owner_bytes = 0;
  std::array<std::byte, kOwnerDataMax> owner{};

  std::string_view kind_text() const noexcept { return kind.data(); }
};

HeaderPage encode_manifest(const Manifest& manifest) noexcept;
/// One slot; `slot` is its place, 0 or 1.
Result<Manifest> decode_manifest(ByteSpan page, unsigned slot);

HeaderPage encode_segment_header(std::uint64_t store_id, std::uint64_t segment, std::uint64_t segment_size,
                                 std::uint32_t epoch, std::uint64_t salt) noexcept;
/// What a header says; the caller compares it with what it expects.
struct SegmentIdentity {
  std::uint64_t store_id = 0;
  std::uint64_t segment = 0;
  std::uint64_t segment_size = 0;
  std::uint64_t salt = 0;
  std::uint32_t epoch = 0;
};
Result<SegmentIdentity> decode_segment_header(ByteSpan page);

/// A mark with its generation; generation 0: there is none.
struct StoredMark {
  Mark mark;
  std::uint64_t generation = 0;
};
HeaderPage encode_mark(std::uint64_t store_id, std::uint64_t segment, const StoredMark& mark) noexcept;
/// The newest whole copy in a slot page, or generation 0: a slot never written, torn or damaged holds no mark.
StoredMark decode_mark(ByteSpan page, std::uint64_t store_id, std::uint64_t segment) noexcept;

/// "000000000003.seg"
std::string segment_name(std::uint64_t segment);

}  // namespace tier
