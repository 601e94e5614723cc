/// The hint page: where the writer's frontiers are now, for readers in other processes.
///
/// A file HINT of one page beside the segments, written through a mapping and never synced. A reader checks its checksum,
/// store and epoch and tries again when they do not fit; recovery ignores the page. Absent where the file system has no
/// mapping: followers then learn `durable` from block headers and marks.
///
/// Threads     HintWriter: one at a time (under the log's lead lock). read_hint: any.
/// Cost        a checksum of 60 bytes and a copy of 64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>

#include "tier/fs.h"

namespace tier {

struct HintPage {                  // off size
  std::uint32_t crc;               //   0   4  CRC32C of bytes [4, 64)
  std::uint32_t magic;             //   4   4  "THNT"
  std::uint64_t store_id;          //   8   8
  std::uint32_t epoch;             //  16   4
  std::uint32_t version;           //  20   4  1
  std::uint64_t committed;         //  24   8  sequence
  std::uint64_t durable;           //  32   8  sequence
  std::uint64_t durable_end;       //  40   8  address
  std::uint64_t reserved[2];       //  48  16  zero
};
static_assert(sizeof(HintPage) == 64 && std::has_unique_object_representations_v<HintPage>);

class HintWriter {
 public:
  /// nullptr where the file system cannot map; an error only if the file cannot be made.
  static Result<std::unique_ptr<HintWriter>> open(FileSystem& fs, std::string_view directory);
  void write(const HintPage& page) noexcept;

 private:
  std::unique_ptr<File> file_;
  MutableByteSpan bytes_;
};

/// The page of `directory`, if it is whole and of this store and epoch.
std::optional<HintPage> read_hint(FileSystem& fs, std::string_view directory, std::uint64_t store_id,
                                  std::uint32_t epoch);

/// "a/b", or "b" when the directory is the root.
std::string join_path(std::string_view directory, std::string_view name);

}  // namespace tier
