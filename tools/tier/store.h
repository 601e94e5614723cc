/// The files of a store, as the verbs that look at them or remove them see them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tier/fs.h"

namespace tier::cli {

struct StoreFile {
  std::string name;
  FileInfo info;
};

/// Whether a file of this name belongs to a Tier store; everything else in its directory is somebody else's.
bool belongs_to_store(std::string_view name) noexcept;
/// The store's files, in byte order of their names.
Result<std::vector<StoreFile>> list_store(FileSystem& fs, const std::string& directory);
/// Whether some process has the store open to write.
Result<bool> writer_runs(FileSystem& fs, const std::string& directory);
/// "directory/name", or "name" in the root.
std::string join(std::string_view directory, std::string_view name);

}  // namespace tier::cli
