/// A file or directory named on the command line: a URL with its #path, or a plain path of this machine.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tier/fs.h"

namespace tier::cli {

struct Place {
  std::shared_ptr<FileSystem> fs;
  std::string path;  ///< below the root of fs, "" for the root
};

/// Whether `text` begins with a scheme; what has a colon without being a URL is written ./a:b.
bool is_url(std::string_view text) noexcept;
/// A plain path as the URL of its directory and the name in it; symbolic links are followed here, once.
Result<std::string> url_of_plain_path(const std::string& path);
/// Opens the file system of a URL or plain path; nothing is made.
Result<Place> open_place(const std::string& url_or_path);

}  // namespace tier::cli
