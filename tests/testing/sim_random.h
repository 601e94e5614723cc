/// SimRandom: the simulator's seeded numbers, and the mixing that its trace hash and its derived seeds share.
/// Same seed, same numbers, on every machine. Not for anything secret.
#pragma once

#include <cstdint>

#include "tier/runtime.h"

namespace tier::testing {

/// A well-spread 64-bit value for every 64-bit value (an invertible mixer: shifts and odd multiplications).
constexpr std::uint64_t sim_mix(std::uint64_t x) noexcept {
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
  x = (x ^ (x >> 29)) * 0x9fb21c651e98df25u;
  return x ^ (x >> 32);
}
constexpr std::uint64_t sim_mix(std::uint64_t a, std::uint64_t b) noexcept {
  return sim_mix(a * 0x9e3779b97f4a7c15u + sim_mix(b + 0x632be59bd9b4e019u));
}

class SimRandom final : public Random {
 public:
  explicit SimRandom(std::uint64_t seed) noexcept : seed_(sim_mix(seed, 0x7469657273696dULL)) {}
  std::uint64_t next() noexcept override { return sim_mix(seed_, ++count_); }
  /// 0 to bound-1; 0 for bound 0. The bias of a remainder does not matter here.
  std::uint64_t below(std::uint64_t bound) noexcept { return bound == 0 ? 0 : next() % bound; }
  /// True with probability of `per_1024` in 1,024.
  bool chance(std::uint32_t per_1024) noexcept { return (next() & 1023u) < per_1024; }

 private:
  std::uint64_t seed_;
  std::uint64_t count_ = 0;
};

}  // namespace tier::testing
