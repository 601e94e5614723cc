/// Child: this same program run again with other arguments, its standard output read line by line.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "tier/result.h"
#include "tier/runtime.h"

namespace tier::cli {

class Child {
 public:
  static Result<Child> start(const std::vector<std::string>& arguments);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  /// Kills it if it still runs.
  ~Child();

  /// The next whole line without its LF. kTimedOut, kCancelled (Ctrl-C), kNotFound at the end of its output.
  Result<std::string> line(Deadline until);
  void signal(int number) noexcept;
  /// Waits for its end: the wait status of waitpid().
  int wait() noexcept;

 private:
  Child(pid_t pid, int fd) : pid_(pid), fd_(fd) {}

  pid_t pid_;  // -1: nothing to wait for
  int fd_;
  std::string buffer_;
};

}  // namespace tier::cli
