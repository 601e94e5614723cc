// What the examples share: a directory of their own, and the end of main().
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "tier/status.h"

namespace example {

// argv[1], or a new directory that goes again at the end.
class Directory {
 public:
  Directory(int argc, char** argv) : kept_(argc > 1) {
    path_ = kept_ ? std::filesystem::absolute(argv[1]).lexically_normal()
                  : std::filesystem::temp_directory_path() / "tier-example-XXXXXX";
    std::string name = path_;
    if (!kept_ && ::mkdtemp(name.data()) == nullptr) std::perror("mkdtemp");
    path_ = name;
    if (kept_) std::filesystem::create_directories(path_);
  }
  ~Directory() {
    std::error_code ignored;  // a leftover in the temporary directory harms nobody
    if (!kept_) std::filesystem::remove_all(path_, ignored);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  // The URL of a store in it: "local:///tmp/tier-example-x1y2z3#wal".
  std::string url(const std::string& store) const { return "local://" + path_.string() + "#" + store; }

 private:
  std::filesystem::path path_;
  bool kept_;
};

inline int exit_code(const tier::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "failed: %s\n", status.message().c_str());
  return 1;
}

}  // namespace example
