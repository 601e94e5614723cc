/// A Parker that passes on to the system's and says how many waits have begun, so that a test can wait until a thread is
/// about to sleep instead of guessing how long that takes.
#pragma once

#include <atomic>
#include <cstdint>

#include "tier/runtime.h"

namespace tier::testing {

class CountingParker final : public Parker {
 public:
  void park(const std::atomic<std::uint32_t>& word, std::uint32_t expected, Deadline until) noexcept override {
    parks_.fetch_add(1, std::memory_order_relaxed);  // relaxed: only counted
    system_.park(word, expected, until);
  }
  void unpark_one(const std::atomic<std::uint32_t>& word) noexcept override { system_.unpark_one(word); }
  void unpark_all(const std::atomic<std::uint32_t>& word) noexcept override { system_.unpark_all(word); }
  void yield() noexcept override { system_.yield(); }
  void sleep(Duration d) noexcept override { system_.sleep(d); }

  std::uint64_t parks() const noexcept { return parks_.load(std::memory_order_relaxed); }  // relaxed: only counted
  void wait_for_parks(std::uint64_t count) noexcept {
    while (parks() < count) system_.yield();
  }

 private:
  Parker& system_ = *Runtime::system().parker;
  std::atomic<std::uint64_t> parks_{0};
};

}  // namespace tier::testing
