/// Ctrl-C and SIGTERM as a flag, so that a verb can drain, make durable and report before it ends.
///
/// Shape       both signals are blocked in every thread; one thread waits for them, raises the flag, makes fd()
/// readable and
///             interrupts the main thread's system calls until the process ends. A second signal ends it at once.
/// Threads     watch(): the main thread, before any other thread is started. The rest: any.
#pragma once

#include <cstdint>

namespace tier::cli {

class Stop {
 public:
  /// From now on the signals only raise the flag. Verbs that never look at it do not call this and just die.
  static void watch();
  static bool requested() noexcept;
  /// Becomes readable with the flag, for poll(); -1 before watch().
  static int fd() noexcept;
};

}  // namespace tier::cli
