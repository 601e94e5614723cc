#include "command_testing.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace tier::testing {
namespace {

const char* command_path() {
  const char* chosen = std::getenv("TIER_BIN");
  return chosen != nullptr ? chosen : TIER_COMMAND_PATH;
}

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) == 0) {
      read_end = ends[0];
      write_end = ends[1];
    }
  }
};

pid_t start(const std::vector<std::string>& arguments, const Pipe& in, const Pipe& out, const Pipe& err, int user) {
  std::vector<std::string> words = {"tier"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(in.read_end, STDIN_FILENO);
    ::dup2(out.write_end, STDOUT_FILENO);
    ::dup2(err.write_end, STDERR_FILENO);
    if (user != 0 && (::setgid(static_cast<gid_t>(user)) != 0 || ::setuid(static_cast<uid_t>(user)) != 0)) ::_exit(127);
    ::execv(command_path(), argv.data());
    ::_exit(127);
  }
  ::close(in.read_end);
  ::close(out.write_end);
  ::close(err.write_end);
  return pid;
}

int reap(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void close_if_open(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

/// Appends what there is; false at the end.
bool read_some(int fd, std::string& to) {
  std::array<char, 65536> piece;
  const ssize_t n = ::read(fd, piece.data(), piece.size());
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  to.append(piece.data(), static_cast<std::size_t>(n));
  return n > 0;
}

}  // namespace

Ran run_tier(const std::vector<std::string>& arguments, std::string_view input, int user) {
  std::signal(SIGPIPE, SIG_IGN);  // a command that does not read its input is no error of the test
  Pipe in;
  Pipe out;
  Pipe err;
  const pid_t pid = start(arguments, in, out, err, user);
  Ran ran;
  int to_child = in.write_end;
  int from_out = out.read_end;
  int from_err = err.read_end;
  ::fcntl(to_child, F_SETFL, O_NONBLOCK);
  if (input.empty()) close_if_open(to_child);
  while (from_out >= 0 || from_err >= 0) {
    std::array<pollfd, 3> p = {{{to_child, POLLOUT, 0}, {from_out, POLLIN, 0}, {from_err, POLLIN, 0}}};
    ::poll(p.data(), p.size(), -1);
    if (to_child >= 0 && p[0].revents != 0) {
      const ssize_t n = ::write(to_child, input.data(), input.size());
      if (n > 0) input.remove_prefix(static_cast<std::size_t>(n));
      if ((n < 0 && errno != EAGAIN && errno != EINTR) || input.empty()) close_if_open(to_child);
    }
    if (from_out >= 0 && p[1].revents != 0 && !read_some(from_out, ran.out)) close_if_open(from_out);
    if (from_err >= 0 && p[2].revents != 0 && !read_some(from_err, ran.err)) close_if_open(from_err);
  }
  close_if_open(to_child);
  ran.exit_code = reap(pid);
  return ran;
}

Running::Running(const std::vector<std::string>& arguments) {
  std::signal(SIGPIPE, SIG_IGN);
  Pipe in;
  Pipe out;
  Pipe err_pipe;
  pid_ = start(arguments, in, out, err_pipe, 0);
  in_ = in.write_end;
  out_ = out.read_end;
  err_ = err_pipe.read_end;
}

Running::~Running() {
  if (pid_ > 0) {
    signal(SIGKILL);
    wait();
  }
}

void Running::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(in_, text.data(), text.size());
    if (n < 0 && errno != EINTR) return;
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
  }
}

void Running::close_input() { close_if_open(in_); }
void Running::close_output() { close_if_open(out_); }

std::string Running::line() {
  for (;;) {
    if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string text = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return text;
    }
    if (!read_some(out_, buffer_)) return {};
  }
}

void Running::signal(int number) { ::kill(pid_, number); }

int Running::wait() {
  if (pid_ <= 0) return -1;
  while (read_some(err_, err)) {
  }
  const int code = reap(pid_);
  pid_ = -1;
  close_if_open(in_);
  close_if_open(out_);
  close_if_open(err_);
  return code;
}

Directory::Directory() {
  path_ = std::filesystem::temp_directory_path() / "tier-tools-XXXXXX";
  if (::mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "mkdtemp " << path_;
}

Directory::~Directory() {
  std::error_code ignored;  // nothing more can be done about a leftover
  std::filesystem::remove_all(path_, ignored);
}

std::string Directory::path(std::string_view name) const {
  return name.empty() ? path_ : path_ + "/" + std::string(name);
}

void Directory::write(std::string_view name, std::string_view text) const {
  std::ofstream(path(name), std::ios::binary) << text;
}

std::string Directory::read(std::string_view name) const {
  std::ifstream file(path(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string Directory::listing() const {
  std::vector<std::string> entries;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
    std::string text = entry.path().string();
    if (entry.is_regular_file()) text.append(" ").append(std::to_string(entry.file_size()));
    text += '\n';
    entries.push_back(text);
  }
  std::sort(entries.begin(), entries.end());
  std::string all;
  for (const std::string& entry : entries) all += entry;
  return all;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace tier::testing
