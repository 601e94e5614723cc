/// log/reopen: Log::open after the writer was killed (SIGKILL) in the middle of appending 128-byte records.
///
/// A child process appends until its durable mark has passed the size of the case, says so, and goes on until it is
/// killed. The parent then opens the log, measured, and gives it up without a clean close. Every repetition lets a new
/// child append a little more and kills it, so each measures a recovery from a torn tail; two sizes show whether the
/// size matters.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "harness/limits.h"
#include "harness/payload.h"
#include "log/log_cases.h"

extern char** environ;

namespace tier::bench {
namespace {

constexpr std::size_t kRecord = 128;
constexpr std::uint64_t kMoreRecords = 64u << 10;

/// Runs this program as a child that writes, and kills it once it has said that it is far enough.
Status write_and_kill(const std::string& url, std::uint64_t records) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(Code::kIo, errno, "cannot make a pipe", "reopen");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::string program = "/proc/self/exe";
  std::string flag = "--child";
  std::string where = url;
  std::string count = std::to_string(records);
  char* arguments[] = {program.data(), flag.data(), where.data(), count.data(), nullptr};
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (failed != 0) {
    ::close(ends[0]);
    return fail(Code::kIo, failed, "cannot start the writing child", "reopen");
  }
  char said = 0;
  ssize_t n = 0;
  do {
    n = ::read(ends[0], &said, 1);
  } while (n < 0 && errno == EINTR);
  ::kill(child, SIGKILL);
  int outcome = 0;
  ::waitpid(child, &outcome, 0);
  ::close(ends[0]);
  if (n != 1 || said != 'R')
    return fail(Code::kIo, 0, "the writing child failed before it was killed", "store %s", url.c_str());
  return {};
}

Status run(const Place& place, std::uint64_t bytes, std::unique_ptr<Scratch>& scratch, Sample& s) {
  if (scratch == nullptr) {
    scratch = std::make_unique<Scratch>(place);
    TIER_CHECK(scratch->status());
  }
  TIER_CHECK(write_and_kill(scratch->url(), bytes / kRecord));
  LogOptions options;
  options.create = Create::kNever;
  const std::uint64_t start = StampClock::monotonic_ns();
  TIER_TRY(const std::unique_ptr<Log> log, Log::open(scratch->file_system(), scratch->path(), options));
  s.ns = static_cast<double>(StampClock::monotonic_ns() - start);
  s.ops = 1;
  const LogRecovery& found = log->recovery();
  s.extra["recovered_records"] = static_cast<double>(found.to - found.from);
  s.extra["scanned_bytes"] = static_cast<double>(found.scanned_bytes);
  s.extra["cut_bytes"] = static_cast<double>(found.cut_bytes);
  s.extra["segments"] = static_cast<double>(found.segments);
  if ((found.to - found.from) * kRecord < bytes) return Status(Code::kCorruption, "durable records are missing");
  return {};
}

}  // namespace

/// --child URL RECORDS: appends until RECORDS are durable, at least kMoreRecords of them by this process; then says R
/// and appends until it is killed.
int child_main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::uint64_t wanted = std::strtoull(argv[3], nullptr, 10);
  const auto log = Log::open(argv[2]);
  if (!log.ok()) {
    std::fprintf(stderr, "%s\n", log.status().message().c_str());
    return 1;
  }
  const std::uint64_t enough = std::max(wanted, (*log)->cursors().claimed.value + kMoreRecords);
  const Payload payload(kRecord, 1);
  bool said = false;
  for (std::uint64_t i = 0;; ++i) {
    const auto sequence = (*log)->append(payload.at(0, i));
    if (!sequence.ok()) {
      std::fprintf(stderr, "%s\n", sequence.status().message().c_str());
      return 1;
    }
    if (!said && i % 1024 == 0 && (*log)->cursors().durable.value >= enough) {
      said = ::write(STDOUT_FILENO, "R", 1) == 1;
      if (!said) return 1;
    }
  }
}

void register_cases(Registry& registry) {
  for (const Place& place : places({"local"}, true)) {
    const std::string limit = limit_durable_write(registry, place, 4096);
    struct Size {
      const char* label;
      std::uint64_t bytes;
    };
    for (const Size& size : {Size{"64MiB", 64u << 20}, Size{"1GiB", 1u << 30}}) {
      auto scratch = std::make_shared<std::unique_ptr<Scratch>>();
      auto repetition = [place, scratch, bytes = size.bytes](Sample& s) {
        if (const Status status = run(place, bytes, *scratch, s); !status.ok()) s.failure = status.message();
      };
      registry.add(
          case_name("log/reopen/", place.kind, "/", size.label, "/1t"), repetition, limit, {},
          "after SIGKILL of a writer that was appending; the limit is one durable page, of which a recovery needs "
          "a few");
    }
  }
}

}  // namespace tier::bench
