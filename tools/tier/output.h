/// Output: a large buffer before a file descriptor, which knows a reader that went away from a real error.
///
/// Outcomes    kClosing: the reader closed its end (a value: end quietly). kCancelled: interrupted while the reader
/// stalled.
///             kIo, kDiskFull: the write failed.
/// Cost        one memcpy a piece; one write(2) a MiB.
#pragma once

#include <cstring>
#include <memory>
#include <string_view>

#include "tier/result.h"
#include "tier/types.h"

namespace tier::cli {

class Output {
 public:
  explicit Output(int fd);

  /// Failures are kept and answered by flush(), so that a loop tests once.
  void put(ByteSpan bytes) {
    if (bytes.size() > kCapacity - size_) [[unlikely]]
      return put_large(bytes);
    if (!bytes.empty()) std::memcpy(buffer_.get() + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  void put(std::string_view text) { put(as_bytes(text)); }
  void put(char c) { put(std::string_view(&c, 1)); }
  bool failed() const noexcept { return !status_.ok(); }
  Status flush();
  /// True once nobody can read what is written any more. Asks the kernel: costs a system call.
  bool reader_gone() const noexcept;

 private:
  static constexpr std::size_t kCapacity = 1 << 20;
  void put_large(ByteSpan bytes);
  void write_out(const char* data, std::size_t size);

  int fd_;
  std::size_t size_ = 0;
  std::unique_ptr<char[]> buffer_;
  Status status_;
};

/// The exit code that a failed Output stands for; complains where it is a failure.
int exit_of_output(const Status& status);

}  // namespace tier::cli
