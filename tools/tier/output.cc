#include "output.h"

#include <cerrno>

#include <poll.h>
#include <unistd.h>

#include "exit_codes.h"
#include "stop.h"

namespace tier::cli {

Output::Output(int fd) : fd_(fd), buffer_(new char[kCapacity]) {}

void Output::put_large(ByteSpan bytes) {
  if (!flush().ok()) return;
  if (bytes.size() >= kCapacity) {
    write_out(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  } else {
    put(bytes);
  }
}

Status Output::flush() {
  if (size_ > 0) write_out(buffer_.get(), size_);
  size_ = 0;
  return status_;
}

void Output::write_out(const char* data, std::size_t size) {
  while (size > 0 && status_.ok()) {
    const ssize_t n = ::write(fd_, data, size);
    if (n >= 0) {
      data += n;
      size -= static_cast<std::size_t>(n);
    } else if (errno == EINTR) {
      if (Stop::requested()) status_ = Status(Code::kCancelled, "interrupted while writing the output");
    } else if (errno == EAGAIN) {  // somebody made the terminal or pipe non-blocking
      pollfd p{fd_, POLLOUT, 0};
      ::poll(&p, 1, 1000);
    } else if (errno == EPIPE) {
      status_ = Status(Code::kClosing, "the reader of the output went away", errno);
    } else {
      status_ = Status(code_of_errno(errno), "cannot write the output; check where it goes", errno);
    }
  }
}

bool Output::reader_gone() const noexcept {
  pollfd p{fd_, 0, 0};
  return ::poll(&p, 1, 0) > 0 && (p.revents & POLLERR) != 0;
}

int exit_of_output(const Status& status) {
  if (status.ok() || status.code() == Code::kClosing) return kExitOk;
  if (status.code() == Code::kCancelled) return kExitInterrupted;
  complain(status.message());
  return kExitFailed;
}

}  // namespace tier::cli
