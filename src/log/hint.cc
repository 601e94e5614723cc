#include "log/hint.h"

#include <array>
#include <cstring>
#include <string>

#include "tier/crc32c.h"

namespace tier {
namespace {

constexpr std::uint32_t kMagic = 0x544e4854;  // "THNT"
constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kPageSize = 4096;

std::uint32_t checksum(const HintPage& page) noexcept {
  return crc32c({reinterpret_cast<const std::byte*>(&page) + 4, sizeof page - 4});
}

}  // namespace

std::string join_path(std::string_view directory, std::string_view name) {
  std::string path(directory);
  if (!path.empty()) path += '/';
  path += name;
  return path;
}

Result<std::unique_ptr<HintWriter>> HintWriter::open(FileSystem& fs, std::string_view directory) {
  if (!fs.capabilities().has(Capability::kMapping)) return std::unique_ptr<HintWriter>();
  auto hint = std::make_unique<HintWriter>();
  TIER_TRY(hint->file_, fs.open(join_path(directory, "HINT"), {.write = true,
                                                               .create = Create::kIfMissing,
                                                               .mode = FileMode::kMapped,
                                                               .name_sync = NameSync::kLater}));
  TIER_CHECK(hint->file_->truncate(kPageSize));
  // A store into a hole of a full disk would be a SIGBUS: the page gets its block first.
  const std::array<std::byte, kPageSize> zeros{};
  TIER_CHECK(hint->file_->write_at(0, ByteSpan(zeros)));
  TIER_TRY(hint->bytes_, hint->file_->mapping(0, kPageSize));
  return hint;
}

void HintWriter::write(const HintPage& page) noexcept {
  HintPage sealed = page;
  sealed.magic = kMagic;
  sealed.version = kVersion;
  sealed.crc = checksum(sealed);
  std::memcpy(bytes_.data(), &sealed, sizeof sealed);
}

std::optional<HintPage> read_hint(FileSystem& fs, std::string_view directory, std::uint64_t store_id,
                                  std::uint32_t epoch) {
  auto file = fs.open(join_path(directory, "HINT"), {});
  if (!file.ok()) return std::nullopt;
  for (int attempt = 0; attempt < 4; ++attempt) {
    HintPage page{};
    auto read = (*file)->read_at(0, {reinterpret_cast<std::byte*>(&page), sizeof page});
    if (!read.ok() || *read != sizeof page || page.magic != kMagic) return std::nullopt;
    if (page.crc != checksum(page)) continue;  // being written
    if (page.version != kVersion || page.store_id != store_id || page.epoch != epoch) return std::nullopt;
    return page;
  }
  return std::nullopt;
}

}  // namespace tier
