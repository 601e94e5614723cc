#include "child.h"

#include <cerrno>
#include <csignal>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stop.h"

extern char** environ;

namespace tier::cli {

Result<Child> Child::start(const std::vector<std::string>& arguments) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Status(code_of_errno(errno), "cannot make a pipe", errno);
  std::vector<std::string> words = {"tier"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);  // Stop::watch() blocked some here
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, "/proc/self/exe", &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    return Status(code_of_errno(error), "cannot start a second process", error);
  }
  return Child(pid, ends[0]);
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), fd_(std::exchange(other.fd_, -1)), buffer_(std::move(other.buffer_)) {}

Child::~Child() {
  if (pid_ > 0) {
    signal(SIGKILL);
    wait();
  }
  if (fd_ >= 0) ::close(fd_);
}

Result<std::string> Child::line(Deadline until) {
  constexpr int kLookMs = 50;
  for (;;) {
    if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string text = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return text;
    }
    if (Stop::requested()) return Status(Code::kCancelled, "interrupted");
    if (Runtime::system().clock->passed(until)) return Status(Code::kTimedOut, "the second process is silent");
    pollfd p{fd_, POLLIN, 0};
    if (::poll(&p, 1, kLookMs) <= 0) continue;
    char piece[4096];
    const ssize_t n = ::read(fd_, piece, sizeof piece);
    if (n > 0) buffer_.append(piece, static_cast<std::size_t>(n));
    if (n == 0) return Status(Code::kNotFound, "the second process ended its output");
    if (n < 0 && errno != EINTR) return Status(code_of_errno(errno), "cannot read from the second process", errno);
  }
}

void Child::signal(int number) noexcept {
  if (pid_ > 0) ::kill(pid_, number);
}

int Child::wait() noexcept {
  int status = 0;
  while (pid_ > 0 && ::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

}  // namespace tier::cli
