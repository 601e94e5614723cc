/// A directory under TMPDIR or /tmp that goes with its owner.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace tier::testing {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tier-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data()) != nullptr ? pattern : std::string();
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const noexcept { return path_; }
  std::string url() const { return "local://" + path_; }

 private:
  std::string path_;
};

}  // namespace tier::testing
