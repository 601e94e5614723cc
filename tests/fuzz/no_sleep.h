/// A Runtime of the system's whose sleeps return at once: a fuzzer must not wait for an owner that is not there.
#pragma once

#include "tier/runtime.h"

namespace tier::testing {

class NoSleepParker final : public Parker {
 public:
  void park(const std::atomic<std::uint32_t>& word, std::uint32_t expected, Deadline until) noexcept override {
    below_.park(word, expected, until);
  }
  void unpark_one(const std::atomic<std::uint32_t>& word) noexcept override { below_.unpark_one(word); }
  void unpark_all(const std::atomic<std::uint32_t>& word) noexcept override { below_.unpark_all(word); }
  void yield() noexcept override { below_.yield(); }
  void sleep(Duration) noexcept override {}

 private:
  Parker& below_ = *Runtime::system().parker;
};

inline Runtime& no_sleep_runtime() {
  static NoSleepParker parker;
  static Runtime runtime{Runtime::system().clock, Runtime::system().random, &parker, Runtime::system().executor};
  return runtime;
}

}  // namespace tier::testing
