/// The operating system's clock, entropy, futexes and threads: the one room of `base` that calls them.
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <string>
#include <system_error>
#include <thread>

#include "base/assert.h"
#include "tier/runtime.h"

namespace tier {
namespace {

std::uint64_t read_clock(clockid_t id) noexcept {
  timespec t{};
  ::clock_gettime(id, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

timespec to_timespec(std::uint64_t ns) noexcept {
  timespec t{};
  t.tv_sec = static_cast<time_t>(ns / 1'000'000'000u);
  t.tv_nsec = static_cast<long>(ns % 1'000'000'000u);
  return t;
}

class SystemClock final : public Clock {
 public:
  std::uint64_t monotonic_ns() noexcept override { return read_clock(CLOCK_MONOTONIC); }
  std::uint64_t wall_ns() noexcept override { return read_clock(CLOCK_REALTIME); }
};

class SystemRandom final : public Random {
 public:
  std::uint64_t next() noexcept override {
    std::uint64_t value = 0;
    std::size_t got = 0;
    while (got < sizeof value) {
      const ssize_t n = ::getrandom(reinterpret_cast<char*>(&value) + got, sizeof value - got, 0);
      if (n > 0) got += static_cast<std::size_t>(n);
      else TIER_ASSERT(errno == EINTR);
    }
    return value;
  }
};

class SystemParker final : public Parker {
 public:
  void park(const std::atomic<std::uint32_t>& word, std::uint32_t expected, Deadline until) noexcept override {
    if (until == Deadline::now()) return;
    timespec t{};
    timespec* timeout = nullptr;
    if (until != Deadline::never()) {
      t = to_timespec(until.ns);
      timeout = &t;
    }
    // FUTEX_WAIT_BITSET takes an absolute time of CLOCK_MONOTONIC, so a spurious return does not lengthen the wait.
    ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected, timeout, nullptr, FUTEX_BITSET_MATCH_ANY);
  }
  void unpark_one(const std::atomic<std::uint32_t>& word) noexcept override {
    ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
  void unpark_all(const std::atomic<std::uint32_t>& word) noexcept override {
    ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }
  void yield() noexcept override { ::sched_yield(); }
  void sleep(Duration d) noexcept override {
    if (d.count() <= 0) return;
    timespec t = to_timespec(read_clock(CLOCK_MONOTONIC) + static_cast<std::uint64_t>(d.count()));
    while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {
    }
  }
};

class SystemTask final : public Task {
 public:
  explicit SystemTask(std::thread thread) noexcept : thread_(std::move(thread)) {}
  ~SystemTask() override { join(); }
  void join() noexcept override {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::thread thread_;
};

class SystemExecutor final : public Executor {
 public:
  Result<std::unique_ptr<Task>> start(const char* name, std::function<void()> body) override {
    // std::thread is the one thing here that reports by exception; with exceptions off it ends the process instead.
#if defined(__cpp_exceptions)
    try {
#endif
      std::thread thread([label = std::string(name).substr(0, 15), run = std::move(body)] {
        ::pthread_setname_np(::pthread_self(), label.c_str());
        run();
      });
      return std::unique_ptr<Task>(new SystemTask(std::move(thread)));
#if defined(__cpp_exceptions)
    } catch (const std::system_error& e) {
      return fail(Code::kOutOfMemory, e.code().value(), "cannot start a background thread; raise the process limit",
                  "task '%s'", name);
    }
#endif
  }
};

}  // namespace

Runtime& Runtime::system() noexcept {
  static SystemClock clock;
  static SystemRandom random;
  static SystemParker parker;
  static SystemExecutor executor;
  static Runtime runtime{&clock, &random, &parker, &executor};
  return runtime;
}

}  // namespace tier
