/// Runs the built `tier` command as a user would: arguments, standard input, exit code, both outputs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace tier::testing {

struct Ran {
  int exit_code = -1;  ///< 128 + signal when killed
  std::string out;
  std::string err;
};

/// Runs to the end. `user`: another user id to run as, when root.
Ran run_tier(const std::vector<std::string>& arguments, std::string_view input = {}, int user = 0);

/// A command that runs beside the test. Killed and reaped with the object.
class Running {
 public:
  explicit Running(const std::vector<std::string>& arguments);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void write(std::string_view text);  ///< to its standard input
  void close_input();
  void close_output();
  /// The next whole line of its standard output, "" at the end.
  std::string line();
  void signal(int number);
  /// Its exit code, 128 + signal when killed. `err` becomes complete.
  int wait();

  std::string err;

 private:
  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  int err_ = -1;
  std::string buffer_;
};

/// A temporary directory of a test's own, and URLs in it.
class Directory {
 public:
  Directory();
  ~Directory();
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  std::string path(std::string_view name = {}) const;
  std::string url(std::string_view store = "log") const { return "local://" + path_ + "#" + std::string(store); }
  void write(std::string_view name, std::string_view text) const;
  std::string read(std::string_view name) const;
  /// Names and sizes of everything below, for "changes nothing".
  std::string listing() const;

 private:
  std::string path_;
};

bool contains(std::string_view text, std::string_view part);

}  // namespace tier::testing
