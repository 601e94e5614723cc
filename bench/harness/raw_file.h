/// RawFile: a file of the operating system with all its blocks written and synced, for limits. Made at first use,
/// shared by all limits of one size in one folder, removed at the end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace tier::bench {

class RawFile {
 public:
  /// nullptr if it cannot be made; `error` says why.
  static std::shared_ptr<RawFile> prepared(const std::string& directory, std::uint64_t size, std::string& error);
  ~RawFile();
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;

  int descriptor() const noexcept { return descriptor_; }
  std::uint64_t size() const noexcept { return size_; }

 private:
  RawFile(int descriptor, std::string path, std::uint64_t size) noexcept;
  int descriptor_;
  std::string path_;
  std::uint64_t size_;
};

}  // namespace tier::bench
