#include "fs/local_calls.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/assert.h"
#include "fs/path.h"

namespace tier {
namespace {

int system_openat2(int directory, const char* path, const open_how* how) {
  return static_cast<int>(::syscall(SYS_openat2, directory, path, how, sizeof *how));
}
ssize_t system_preadv(int fd, const iovec* parts, int count, off_t offset) {
  return ::preadv(fd, parts, count, offset);
}
ssize_t system_pwritev(int fd, const iovec* parts, int count, off_t offset) {
  return ::pwritev(fd, parts, count, offset);
}
int system_fdatasync(int fd) { return ::fdatasync(fd); }
int system_fsync(int fd) { return ::fsync(fd); }
int system_fallocate(int fd, int mode, off_t offset, off_t length) { return ::fallocate(fd, mode, offset, length); }

/// The walk of openat2(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS) for kernels and sandboxes without it: one component at a
/// time, each a directory and no link. check_path() has refused '..', so nothing leads up.
int open_by_steps(int directory, std::string_view path, int flags, unsigned permissions) {
  Descriptor at;
  int here = directory;
  while (true) {
    const std::size_t slash = path.find('/');
    const std::string name(path.substr(0, slash));
    if (slash == std::string_view::npos)
      return uninterrupted([&] { return ::openat(here, name.c_str(), flags | O_NOFOLLOW, permissions); });
    Descriptor next(
        uninterrupted([&] { return ::openat(here, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }));
    if (!next.valid()) return -1;
    at = std::move(next);
    here = at.get();
    path.remove_prefix(slash + 1);
  }
}

/// Closing tells of no write that was acknowledged: only a sync acknowledges. A descriptor that is not ours any more is
/// a broken invariant, for writes may have gone to another file.
void close_checked(int fd) noexcept {
  const int saved = errno;
  if (::close(fd) != 0) TIER_ASSERT(errno != EBADF);
  errno = saved;
}

}  // namespace

LocalCalls local_calls{system_openat2, system_preadv, system_pwritev, system_fdatasync, system_fsync, system_fallocate};

const char* local_advice(int system_errno, const char* otherwise) noexcept {
  if (system_errno == ELOOP || system_errno == EXDEV)
    return "a symbolic link or an escape from the root; only plain files below the root are opened";
  if (system_errno == ENOTDIR) return "a component of the path is a file, not a directory; check the path";
  if (system_errno == EISDIR) return "the path is a directory; name a file in it";
  if (system_errno == ENOTEMPTY) return "the directory is not empty; remove what is in it first";
  if (system_errno == EMFILE || system_errno == ENFILE)
    return "no file descriptor is left; raise the limit (ulimit -n) or close files";
  if (system_errno == EROFS) return "the file system is mounted read-only; mount it for writing";
  switch (code_of_errno(system_errno)) {
    case Code::kNotFound: return "no such file or directory; check the path";
    case Code::kExists: return "the name is taken; choose another or open it";
    case Code::kAccess: return "permission denied; check owner and mode of the file and its directories";
    case Code::kDiskFull: return "no space or quota left; free some space";
    case Code::kUnsupported: return "this file system cannot do it; use another one or do without";
    default: return otherwise;
  }
}

Status local_failure(int system_errno, const char* text, const std::string& place) {
  return fail(code_of_errno(system_errno), system_errno, local_advice(system_errno, text), "'%s'",
              shown(place).c_str());
}

Status local_failure_at(int system_errno, const char* text, const std::string& place, std::uint64_t offset,
                        std::uint64_t length) {
  return fail(code_of_errno(system_errno), system_errno, local_advice(system_errno, text),
              "file '%s' at %llu, %llu bytes", shown(place).c_str(), static_cast<unsigned long long>(offset),
              static_cast<unsigned long long>(length));
}

ssize_t read_whole(int fd, std::uint64_t offset, MutableByteSpan into, std::uint32_t alignment) {
  std::size_t done = 0;
  while (done < into.size()) {
    const std::size_t wanted = std::min<std::size_t>(into.size() - done, kTransferMost);
    const iovec part{into.data() + done, wanted};
    const ssize_t n =
        uninterrupted([&] { return local_calls.preadv(fd, &part, 1, static_cast<off_t>(offset + done)); });
    if (n < 0) return -1;
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
    if (static_cast<std::size_t>(n) % alignment != 0) break;  // direct: only the end of the file cuts a block
  }
  return static_cast<ssize_t>(done);
}

bool write_whole(int fd, std::uint64_t offset, std::span<const ByteSpan> parts) {
  constexpr int kBatch = 256;  // below IOV_MAX; what does not fit goes with the next call
  std::array<iovec, kBatch> vector;
  std::size_t part = 0;    // the first part that is not all written,
  std::size_t within = 0;  // and how much of it is
  for (;;) {
    int count = 0;
    std::uint64_t bytes = 0;
    for (std::size_t p = part, skip = within; p < parts.size() && count < kBatch && bytes < kTransferMost; ++p) {
      const std::size_t n = std::min<std::size_t>(parts[p].size() - skip, kTransferMost - bytes);
      if (n != 0) {
        void* base = const_cast<std::byte*>(parts[p].data() + skip);  // the call only reads it
        vector[static_cast<std::size_t>(count++)] = {base, n};
        bytes += n;
      }
      skip = 0;
    }
    if (bytes == 0) return true;
    const ssize_t n =
        uninterrupted([&] { return local_calls.pwritev(fd, vector.data(), count, static_cast<off_t>(offset)); });
    if (n < 0) return false;
    if (n == 0) {  // a device that takes nothing and says nothing
      errno = EIO;
      return false;
    }
    offset += static_cast<std::uint64_t>(n);
    for (std::size_t left = static_cast<std::size_t>(n); part < parts.size();) {
      const std::size_t here = parts[part].size() - within;
      if (left < here) {
        within += left;
        break;
      }
      left -= here;
      ++part;
      within = 0;
    }
  }
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close_checked(fd_);
    fd_ = other.release();
  }
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) close_checked(fd_);
}

int Descriptor::release() noexcept {
  const int fd = fd_;
  fd_ = -1;
  return fd;
}

Descriptor open_beneath(int directory, std::string_view path, int flags, unsigned permissions) {
  flags |= O_CLOEXEC;
  if (path.empty()) {  // the root itself
    return Descriptor(uninterrupted([&] { return ::openat(directory, ".", flags, permissions); }));
  }
  const std::string name(path);
  open_how how{};
  how.flags = static_cast<unsigned>(flags | O_NOFOLLOW);
  how.mode = permissions;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  for (;;) {
    const int fd = local_calls.openat2(directory, name.c_str(), &how);
    if (fd >= 0) return Descriptor(fd);
    if (errno == EINTR || errno == EAGAIN) continue;  // EAGAIN: something was renamed during the walk
    if (errno != ENOSYS && errno != EPERM) return Descriptor();
    break;  // EPERM too: some sandboxes refuse unknown calls with it; the walk finds out whether it is real
  }
  return Descriptor(open_by_steps(directory, path, flags, permissions));
}

}  // namespace tier
