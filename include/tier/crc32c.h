/// CRC32C (Castagnoli), the checksum of every structure on disk.
///
/// crc32c(bytes) starts from a non-zero seed and is masked, so that zeros do not check as zeros and a checksum over bytes
/// that hold a checksum is not constant. ISA-L where the CPU has SSE4.2, a table otherwise; chosen at the first call,
/// TIER_CRC32C=software forces the table. Same result everywhere.
#pragma once

#include <cstdint>

#include "tier/types.h"

namespace tier {

/// The plain (iSCSI) CRC of `bytes`, continuing from `crc` (0 to begin): crc(a then b) = extend(extend(0, a), b).
std::uint32_t crc32c_extend(std::uint32_t crc, ByteSpan bytes) noexcept;

/// Finished value for the disk: masked, so that it differs from the plain CRC of the same bytes.
constexpr std::uint32_t crc32c_mask(std::uint32_t crc) noexcept { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }
/// What structures store: the masked CRC of `bytes`. Zero bytes give non-zero.
inline std::uint32_t crc32c(ByteSpan bytes) noexcept { return crc32c_mask(crc32c_extend(0, bytes)); }

/// "isa-l" or "software".
const char* crc32c_implementation() noexcept;

}  // namespace tier
