/// Payload: what producers append. A window of 16 KiB that stays in the first cache, from which each call takes the
/// next cache line's worth onwards, so that the measured copy reads hot bytes, but not the very same ones each time.
#pragma once

#include <cstdint>
#include <vector>

#include "tier/types.h"

namespace tier::bench {

class Payload {
 public:
  Payload(std::size_t record, unsigned threads) : record_(record), bytes_(threads) {
    std::uint64_t x = 0x9e3779b97f4a7c15u;
    for (auto& buffer : bytes_) {
      buffer.resize(record + kWindow);
      for (std::byte& b : buffer) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        b = static_cast<std::byte>(x >> 56);
      }
    }
  }
  ByteSpan at(unsigned thread, std::uint64_t i) const noexcept {
    return {bytes_[thread].data() + (i * 64) % kWindow, record_};
  }
  std::size_t record() const noexcept { return record_; }

 private:
  static constexpr std::size_t kWindow = 16u << 10;
  std::size_t record_;
  std::vector<std::vector<std::byte>> bytes_;
};

}  // namespace tier::bench
