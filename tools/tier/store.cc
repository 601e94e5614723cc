#include "store.h"

#include <algorithm>

namespace tier::cli {

bool belongs_to_store(std::string_view name) noexcept {
  static constexpr std::string_view kNew = ".new";
  static constexpr std::string_view kSegment = ".seg";
  static constexpr std::size_t kDigits = 12;
  if (name == "LOCK" || name == "HINT") return true;
  if (name.ends_with(kNew)) name.remove_suffix(kNew.size());
  if (name == "MANIFEST") return true;
  if (name.size() != kDigits + kSegment.size() || !name.ends_with(kSegment)) return false;
  return std::all_of(name.begin(), name.begin() + kDigits, [](char c) { return c >= '0' && c <= '9'; });
}

Result<std::vector<StoreFile>> list_store(FileSystem& fs, const std::string& directory) {
  TIER_TRY(const auto entries, fs.list(directory));
  std::vector<StoreFile> files;
  for (const DirectoryEntry& entry : entries) {
    if (entry.directory || !belongs_to_store(entry.name)) continue;
    const auto info = fs.stat(join(directory, entry.name));
    if (info.code() == Code::kNotFound) continue;  // a running writer removed it since
    if (!info.ok()) return info.status();
    files.push_back({entry.name, *info});
  }
  return files;
}

Result<bool> writer_runs(FileSystem& fs, const std::string& directory) {
  if (!fs.capabilities().has(Capability::kLocking)) return false;
  const auto locked = fs.locked(join(directory, "LOCK"));
  if (locked.code() == Code::kNotFound) return false;
  return locked;
}

std::string join(std::string_view directory, std::string_view name) {
  std::string path(directory);
  if (!path.empty()) path += '/';
  path += name;
  return path;
}

}  // namespace tier::cli
