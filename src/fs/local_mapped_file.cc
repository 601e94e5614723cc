#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "fs/local_file.h"

namespace tier {
namespace {

constexpr std::uint64_t kWindowLeast = 1 << 20;
constexpr std::uint64_t kPopulateUnit = 4096;

}  // namespace

LocalMappedFile::LocalMappedFile(Opened opened)
    : LocalFile(std::move(opened)), window_mutex_(*home().runtime.parker), known_mutex_(*home().runtime.parker) {}

LocalMappedFile::~LocalMappedFile() {
  // In a child of fork an owner's window is not there (L2), and its place may hold something else.
  if (window_ != nullptr && !inherited()) ::munmap(window_, window_size_);
}

bool LocalMappedFile::map_window() {
  const Result<std::uint64_t> size = refresh_size();
  return size.ok() && reach(std::max<std::uint64_t>(*size, 1));
}

/// The window may reach past the end of the file; only what lies below the size is touched.
bool LocalMappedFile::reach(std::uint64_t end) {
  ExclusiveLock lock(window_mutex_);
  if (end <= window_size_) return true;
  const std::uint64_t size = std::bit_ceil(std::max(end, kWindowLeast));
  void* p = map(0, size);
  if (p == MAP_FAILED) return false;
  if (window_ != nullptr) ::munmap(window_, window_size_);
  window_ = static_cast<std::byte*>(p);
  window_size_ = size;
  return true;
}

Result<std::size_t> LocalMappedFile::read_at(std::uint64_t offset, MutableByteSpan into) {
  TIER_CHECK(check_range(offset, into.size()));
  SharedLock still(inode().resize);
  std::uint64_t size = inode().size.load(std::memory_order_relaxed);  // relaxed: below the real size whatever it is
  if (offset > size || into.size() > size - offset) {
    TIER_TRY(size, refresh_size());
  }
  if (offset >= size || into.empty()) return std::size_t{0};
  const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), size - offset));
  for (;;) {
    {
      SharedLock lock(window_mutex_);
      if (offset + n <= window_size_) {
        if (!backed(offset, offset + n)) return LocalFile::read_at(offset, into);
        std::memcpy(into.data(), window_ + offset, n);
        return n;
      }
    }
    if (!reach(offset + n)) return LocalFile::read_at(offset, into);  // no address space: the system call still can
  }
}

Status LocalMappedFile::write_at(std::uint64_t offset, std::span<const ByteSpan> parts) {
  std::uint64_t total = 0;
  TIER_CHECK(check_write(offset, parts, total));
  SharedLock still(inode().resize);
  std::uint64_t size = inode().size.load(std::memory_order_relaxed);  // relaxed: as in read_at
  if (offset > size || total > size - offset) {
    TIER_TRY(size, refresh_size());
  }
  if (total == 0) return {};
  if (offset < size && total <= size - offset && reach(offset + total)) {
    SharedLock lock(window_mutex_);
    if (populate(offset, offset + total)) {
      std::byte* to = window_ + offset;
      for (const ByteSpan part : parts) {
        if (part.empty()) continue;
        std::memcpy(to, part.data(), part.size());
        to += part.size();
      }
      return {};
    }
  }
  return LocalFile::write_at(offset, parts);
}

/// W1. What is remembered grows as the writes go along. Under window_mutex_ and inode().resize, both shared.
bool LocalMappedFile::populate(std::uint64_t offset, std::uint64_t end) {
  const std::uint64_t holes = inode().holes.load(std::memory_order_relaxed);  // changes under the exclusive lock only
  MutexLock lock(known_mutex_);
  if (populated_.has(offset, end, holes)) return true;
  const std::uint64_t first = align_down(offset, kPopulateUnit);
  const std::uint64_t last = align_up(end, kPopulateUnit);
  while (::madvise(window_ + first, last - first, MADV_POPULATE_WRITE) != 0) {
    if (errno != EINTR) return false;
  }
  if (populated_.holes == holes && first <= populated_.end && last >= populated_.begin) {
    populated_.begin = std::min(populated_.begin, first);
    populated_.end = std::max(populated_.end, last);
  } else {
    populated_ = {first, last, holes};
  }
  return true;
}

/// W2. Under the same locks. The descriptor's position, which the question moves, is used by nothing else.
bool LocalMappedFile::backed(std::uint64_t offset, std::uint64_t end) {
  const std::uint64_t holes = inode().holes.load(std::memory_order_relaxed);  // as in populate()
  MutexLock lock(known_mutex_);
  if (populated_.has(offset, end, holes) || data_.has(offset, end, holes)) return true;
  const auto at = static_cast<off_t>(offset);
  if (::lseek(descriptor(), at, SEEK_DATA) != at) return false;
  const off_t hole = ::lseek(descriptor(), at, SEEK_HOLE);
  if (hole < 0) return false;
  data_ = {offset, static_cast<std::uint64_t>(hole), holes};
  return data_.has(offset, end, holes);
}

}  // namespace tier
