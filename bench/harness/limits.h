/// Limits: the least that any code must spend on the job of a case, measured in the same run.
///
/// Each function adds a limit case (once) and gives its name, to be set as Case::limit.
#pragma once

#include <cstddef>
#include <string>

#include "harness/case.h"
#include "harness/places.h"

namespace tier::bench {

/// limit/memcpy/N: a hot record into a 256 MiB area, end to end, again and again.
std::string limit_memcpy(Registry& registry, std::size_t size);
/// limit/memcpy-from/N: out of a 256 MiB area into a hot buffer.
std::string limit_memcpy_from(Registry& registry, std::size_t size);
/// limit/fetch_add[/Tt] (size 0) and limit/fetch_add+memcpy/N[/Tt]: claim a range of a shared 256 MiB area with one
/// atomic add, copy the record there. What producers of a log must do at least.
std::string limit_claim_and_copy(Registry& registry, std::size_t size, unsigned threads);
/// limit/copy+crc+pwrite/KIND/N, in memory limit/copy+crc+memcpy/N: one thread copies length and record into a 256 KiB
/// page, checksums each full page and writes it; `total` bytes, then one fdatasync.
std::string limit_pages(Registry& registry, const Place& place, std::size_t size, std::uint64_t records);
/// limit/pwrite/N and limit/pread/N (with /KIND where that is not `local`): in a file of 64 MiB that has its blocks.
std::string limit_pwrite(Registry& registry, const Place& place, std::size_t size);
std::string limit_pread(Registry& registry, const Place& place, std::size_t size);
/// limit/pwrite+fdatasync/N: one after the other through a file that has its blocks (written, not only preallocated).
std::string limit_durable_write(Registry& registry, const Place& place, std::size_t size);
/// limit/read+crc+walk: pread of 256 KiB pages in the page cache, their CRC32C, and a walk over length-prefixed
/// records.
std::string limit_replay(Registry& registry, const Place& place, std::size_t record, std::uint64_t records);

}  // namespace tier::bench
