/// SimFiber: a function with a stack of its own, on the caller's thread.
///
/// Shape       resume() runs the body on its own stack until it suspends or ends; suspend() goes back to the resumer.
/// Invariants  (B1) only the thread that made a fiber resumes it, never from inside a fiber.
/// Cost        a switch: a dozen instructions on x86-64, two system calls elsewhere (ucontext).
/// Sanitizers  AddressSanitizer and ThreadSanitizer are told of every switch.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace tier::testing {

class SimFiber {
 public:
  /// Of every stack, below which lies a page that faults.
  static constexpr std::size_t kStackSize = std::size_t{256} << 10;

  explicit SimFiber(std::function<void()> body);
  /// Of a fiber that has not ended: gives up its stack, unwinds nothing on it.
  ~SimFiber();
  SimFiber(const SimFiber&) = delete;
  SimFiber& operator=(const SimFiber&) = delete;

  /// From the thread's own stack.
  void resume();
  /// From inside the body, which must be the one that runs.
  void suspend();
  bool done() const noexcept { return done_; }

 private:
  struct Context;
  static void enter() noexcept;
  void leave(bool for_ever);

  std::function<void()> body_;
  std::unique_ptr<Context> context_;
  std::byte* stack_;
  bool done_ = false;
};

}  // namespace tier::testing
