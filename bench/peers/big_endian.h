/// The key that the peers put under: 8 bytes whose order is the number's.
#pragma once

#include <cstdint>

namespace tier::bench {

struct BigEndian {
  explicit BigEndian(std::uint64_t value) noexcept {
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (56 - 8 * i));
  }
  char bytes[8];
};

}  // namespace tier::bench
