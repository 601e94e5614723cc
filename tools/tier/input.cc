#include "input.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stop.h"

namespace tier::cli {

Result<Input> Input::open(const std::string& name) {
  const bool standard = name == "-";
  const int fd = standard ? STDIN_FILENO : ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return fail(code_of_errno(errno), errno, "cannot open the input; check its path and permissions", "file '%s'",
                name.c_str());
  }
  Input input(standard ? "standard input" : name, fd);
  struct stat s {};
  if (::fstat(fd, &s) != 0) {
    return fail(code_of_errno(errno), errno, "cannot look at the input", "file '%s'", input.name_.c_str());
  }
  if (S_ISDIR(s.st_mode)) {
    return fail(Code::kInvalid, 0, "the input is a directory; name a file in it", "file '%s'", input.name_.c_str());
  }
  if (S_ISREG(s.st_mode)) {
    input.size_ = static_cast<std::uint64_t>(s.st_size);
    // Only a hint: how well it is followed changes the speed alone.
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  } else {
    input.waits_ = true;
  }
  return input;
}

Input::Input(Input&& other) noexcept
    : name_(std::move(other.name_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_), waits_(other.waits_) {}

Input::~Input() {
  if (fd_ > STDIN_FILENO) ::close(fd_);
}

Result<std::size_t> Input::read(MutableByteSpan into) {
  for (;;) {
    if (Stop::requested()) return Status(Code::kCancelled, "interrupted");
    if (waits_) {
      pollfd p[2] = {{fd_, POLLIN, 0}, {Stop::fd(), POLLIN, 0}};
      if (::poll(p, 2, -1) < 0 && errno != EINTR) {
        return fail(code_of_errno(errno), errno, "cannot wait for the input", "%s", name_.c_str());
      }
      if (p[0].revents == 0) continue;
    }
    const ssize_t n = ::read(fd_, into.data(), into.size());
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno != EINTR && errno != EAGAIN) {
      return fail(code_of_errno(errno), errno, "cannot read the input", "%s", name_.c_str());
    }
  }
}

Status Input::rewind() {
  if (::lseek(fd_, 0, SEEK_SET) == 0) return {};
  return fail(Code::kUnsupported, errno, "the input cannot be read twice; --repeat needs a file", "%s", name_.c_str());
}

}  // namespace tier::cli
