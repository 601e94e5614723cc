/// Looking for block headers where none is expected: behind damage, and above a torn tail.
#pragma once

#include <cstdint>

#include "log/block_reader.h"

namespace tier {

struct Probe {
  bool found = false;
  std::uint64_t address = 0;               ///< of the header
  log_format::BlockHeader header{};
  std::uint64_t nonzero_end = 0;           ///< end of the last 64-byte unit passed that is not all zeros, 0 if none
};

/// The first header at or above `from`, below `limit`, that checks on its own (B1, B2). Gives up after `zeros_most` bytes of
/// nothing but zeros.
Result<Probe> probe_header(BlockReader& reader, std::uint64_t from, std::uint64_t limit, std::uint64_t segment_size,
                           std::uint64_t zeros_most = ~std::uint64_t{0});

}  // namespace tier
