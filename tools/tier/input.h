/// Input: a file, a pipe or standard input, read in large pieces; an interrupt ends a wait for more.
#pragma once

#include <cstdint>
#include <string>

#include "tier/result.h"
#include "tier/types.h"

namespace tier::cli {

class Input {
 public:
  /// `name` is a path, or "-" for standard input. A directory is kInvalid.
  static Result<Input> open(const std::string& name);
  Input(Input&& other) noexcept;
  Input& operator=(Input&&) = delete;
  ~Input();

  /// What is there now, at least a byte unless at the end (0). kCancelled when interrupted.
  Result<std::size_t> read(MutableByteSpan into);
  /// Back to the start; kUnsupported for a pipe.
  Status rewind();
  const std::string& name() const noexcept { return name_; }
  /// 0 when it is not a regular file.
  std::uint64_t size() const noexcept { return size_; }

 private:
  Input(std::string name, int fd) : name_(std::move(name)), fd_(fd) {}

  std::string name_;
  int fd_;
  std::uint64_t size_ = 0;
  bool waits_ = false;  // reading may wait for a writer
};

}  // namespace tier::cli
