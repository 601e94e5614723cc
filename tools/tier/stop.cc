#include "stop.h"

#include <atomic>
#include <csignal>
#include <ctime>
#include <thread>

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "exit_codes.h"

namespace tier::cli {
namespace {

std::atomic<bool> stop_requested{false};
int stop_fd = -1;

void interrupt_nothing(int) {}

void wait_for_signals(sigset_t signals, pthread_t main_thread) {
  int got = 0;
  while (sigwait(&signals, &got) != 0) {
  }
  // [T1] relaxed is enough: nothing is published with the flag.
  stop_requested.store(true, std::memory_order_relaxed);
  const std::uint64_t one = 1;
  if (::write(stop_fd, &one, sizeof one) < 0) return;  // cannot fail for a fresh eventfd
  for (;;) {
    // The main thread may have looked at the flag just before it entered a blocking call: knock until it is gone.
    pthread_kill(main_thread, SIGUSR1);
    const timespec pause{0, 100'000'000};
    if (sigtimedwait(&signals, nullptr, &pause) > 0) _exit(kExitInterrupted);
  }
}

}  // namespace

void Stop::watch() {
  stop_fd = eventfd(0, EFD_CLOEXEC);
  struct sigaction knock {};
  knock.sa_handler = interrupt_nothing;  // without SA_RESTART: blocking calls return EINTR
  sigaction(SIGUSR1, &knock, nullptr);

  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread(wait_for_signals, signals, pthread_self()).detach();
}

// [T1] relaxed: a late answer costs one more record.
bool Stop::requested() noexcept { return stop_requested.load(std::memory_order_relaxed); }

int Stop::fd() noexcept { return stop_fd; }

}  // namespace tier::cli
