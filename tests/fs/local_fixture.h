/// For the tests of `local:`: calls that fail or come back short, and child processes.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <functional>

#include "fs/fs_fixture.h"
#include "fs/local_calls.h"

namespace tier::testing {

/// Puts the real calls back at the end of a test.
class RealCalls {
 public:
  RealCalls() : saved_(local_calls) {}
  ~RealCalls() { local_calls = saved_; }

 private:
  LocalCalls saved_;
};

/// Runs `body` in a child of fork and says whether it answered true. What it prints goes to standard error.
inline bool in_child(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body() ? 0 : 1);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// In a child: says what was expected when it did not happen.
template <class R>
bool expect_code(Code expected, const R& result, const char* what) {
  const Status s = detail::status_of(result);
  if (s.code() == expected) return true;
  std::fprintf(stderr, "child: %s: expected %s, got %s\n", what, code_name(expected), s.message().c_str());
  return false;
}
inline bool expect(bool condition, const char* what) {
  if (!condition) std::fprintf(stderr, "child: %s\n", what);
  return condition;
}

/// A child that runs until it is killed, after it has said that it is ready.
class LivingChild {
 public:
  explicit LivingChild(const std::function<bool()>& body) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ready[0]);
      const char answer = body() ? 'y' : 'n';
      if (::write(ready[1], &answer, 1) != 1) ::_exit(2);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char answer = 'n';
    EXPECT_EQ(::read(ready[0], &answer, 1), 1);
    ::close(ready[0]);
    EXPECT_EQ(answer, 'y');
  }
  ~LivingChild() { kill(); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

inline constexpr OpenOptions kOwn{.write = true, .create = Create::kIfMissing, .lock = true};

}  // namespace tier::testing
