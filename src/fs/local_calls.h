/// The system calls of `local:` behind one table, and what every use of them shares: interruptions looped, short
/// transfers continued, big ones split, failures turned into a Status that says what to do.
///
/// Tests put failing or short calls into the table; nothing else changes it.
#pragma once

#include <linux/openat2.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cerrno>
#include <string>

#include "tier/fs.h"

namespace tier {

struct LocalCalls {
  int (*openat2)(int directory, const char* path, const open_how* how);
  ssize_t (*preadv)(int fd, const iovec* parts, int count, off_t offset);
  ssize_t (*pwritev)(int fd, const iovec* parts, int count, off_t offset);
  int (*fdatasync)(int fd);
  int (*fsync)(int fd);
  int (*fallocate)(int fd, int mode, off_t offset, off_t length);
};
extern LocalCalls local_calls;

/// Calls again while a signal interrupts.
template <class Call>
auto uninterrupted(const Call& call) {
  for (;;) {
    const auto result = call();
    if (result != -1 || errno != EINTR) return result;
  }
}

/// The most that one call transfers; the kernel's own limit is just under 2 GiB.
inline constexpr std::uint64_t kTransferMost = std::uint64_t{1} << 30;
/// Offsets and sizes are off_t.
inline constexpr std::uint64_t kLocalMost = ~std::uint64_t{0} >> 1;

/// What to do about an errno: a sentence where it says enough by itself, else `otherwise`.
const char* local_advice(int system_errno, const char* otherwise) noexcept;
/// A failed system call on `place` (a full path): its code, and local_advice().
Status local_failure(int system_errno, const char* text, const std::string& place);
Status local_failure_at(int system_errno, const char* text, const std::string& place, std::uint64_t offset,
                        std::uint64_t length);

/// Reads until `into` is full or the file ends. With an `alignment` a transfer that ends off it ends the file.
/// On failure -1 and errno.
ssize_t read_whole(int fd, std::uint64_t offset, MutableByteSpan into, std::uint32_t alignment);
/// Writes all of `parts`. On failure false and errno.
bool write_whole(int fd, std::uint64_t offset, std::span<const ByteSpan> parts);

/// A descriptor that is closed.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const noexcept { return fd_; }
  bool valid() const noexcept { return fd_ >= 0; }
  int release() noexcept;

 private:
  int fd_;
};

/// openat() that resolves `path` below `directory` and follows no symbolic link. On failure an invalid one and errno.
Descriptor open_beneath(int directory, std::string_view path, int flags, unsigned permissions = 0);

}  // namespace tier
