#include "harness/raw_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "harness/places.h"

namespace tier::bench {

RawFile::RawFile(int descriptor, std::string path, std::uint64_t size) noexcept
    : descriptor_(descriptor), path_(std::move(path)), size_(size) {}

RawFile::~RawFile() {
  ::close(descriptor_);
  ::unlink(path_.c_str());
}

std::shared_ptr<RawFile> RawFile::prepared(const std::string& directory, std::uint64_t size, std::string& error) {
  static std::map<std::pair<std::string, std::uint64_t>, std::shared_ptr<RawFile>> files;
  std::shared_ptr<RawFile>& file = files[{directory, size}];
  if (file != nullptr) return file;

  const std::string path = fresh_path(Place{"", "", directory});
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    error = "cannot create " + path + ": " + std::strerror(errno);
    return nullptr;
  }
  std::shared_ptr<RawFile> made(new RawFile(descriptor, path, size));
  // Preallocated in one piece where the file system can, then written: a block that was never written costs a metadata
  // commit at its first sync.
  static_cast<void>(::posix_fallocate(descriptor, 0, static_cast<off_t>(size)));
  const std::vector<char> zeros(1u << 20);
  for (std::uint64_t at = 0; at < size;) {
    const std::size_t n = std::min<std::uint64_t>(zeros.size(), size - at);
    const ssize_t wrote = ::pwrite(descriptor, zeros.data(), n, static_cast<off_t>(at));
    if (wrote <= 0) {
      error = "cannot write " + path + ": " + std::strerror(errno);
      return nullptr;
    }
    at += static_cast<std::uint64_t>(wrote);
  }
  if (::fsync(descriptor) != 0) {
    error = "cannot sync " + path + ": " + std::strerror(errno);
    return nullptr;
  }
  file = made;
  return file;
}

}  // namespace tier::bench
