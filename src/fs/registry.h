/// The schemes this process knows: the built-in ones and those added by register_file_system().
#pragma once

#include <string_view>

#include "tier/fs.h"

namespace tier {

using OpenFileSystem = Result<std::shared_ptr<FileSystem>> (*)(const Url&, const FileSystemOptions&);

/// How to open `scheme`, nullptr when nobody knows it.
OpenFileSystem find_scheme(std::string_view scheme);

Result<std::shared_ptr<FileSystem>> open_mem_file_system(const Url& url, const FileSystemOptions& options);
Result<std::shared_ptr<FileSystem>> open_local_file_system(const Url& url, const FileSystemOptions& options);

}  // namespace tier
