#include "tier/crc32c.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <isa-l/crc.h>

namespace tier {
namespace {

using Extend = std::uint32_t (*)(std::uint32_t, ByteSpan) noexcept;

constexpr std::uint32_t kPolynomial = 0x82f63b78u;  // reflected Castagnoli

constexpr auto make_tables() {
  std::array<std::array<std::uint32_t, 256>, 8> t{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? (c >> 1) ^ kPolynomial : c >> 1;
    t[0][i] = c;
  }
  for (std::uint32_t i = 0; i < 256; ++i)
    for (std::size_t k = 1; k < 8; ++k) t[k][i] = (t[k - 1][i] >> 8) ^ t[0][t[k - 1][i] & 0xff];
  return t;
}
constexpr auto kTables = make_tables();

/// Eight bytes a step (slicing-by-8).
std::uint32_t extend_software(std::uint32_t crc, ByteSpan bytes) noexcept {
  crc = ~crc;
  const auto* p = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t n = bytes.size();
  for (; n >= 8; n -= 8, p += 8) {
    const std::uint32_t low = crc ^ (std::uint32_t{p[0]} | std::uint32_t{p[1]} << 8 | std::uint32_t{p[2]} << 16 |
                                     std::uint32_t{p[3]} << 24);
    crc = kTables[7][low & 0xff] ^ kTables[6][(low >> 8) & 0xff] ^ kTables[5][(low >> 16) & 0xff] ^
          kTables[4][low >> 24] ^ kTables[3][p[4]] ^ kTables[2][p[5]] ^ kTables[1][p[6]] ^ kTables[0][p[7]];
  }
  for (; n > 0; --n, ++p) crc = (crc >> 8) ^ kTables[0][(crc ^ *p) & 0xff];
  return ~crc;
}

std::uint32_t extend_isal(std::uint32_t crc, ByteSpan bytes) noexcept {
  // The library takes int lengths and leaves the inversions to its caller.
  constexpr std::size_t kMost = std::size_t{1} << 30;
  while (!bytes.empty()) {
    const ByteSpan part = bytes.first(std::min(bytes.size(), kMost));
    auto* p = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(part.data()));  // it only reads
    crc = ~crc32_iscsi(p, static_cast<int>(part.size()), ~crc);
    bytes = bytes.subspan(part.size());
  }
  return crc;
}

Extend choose() noexcept {
  const char* forced = std::getenv("TIER_CRC32C");
  if (forced != nullptr && std::string_view(forced) == "software") return extend_software;
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("sse4.2")) return extend_software;
#endif
  return extend_isal;
}

Extend chosen() noexcept {
  static const Extend extend = choose();
  return extend;
}

}  // namespace

std::uint32_t crc32c_extend(std::uint32_t crc, ByteSpan bytes) noexcept { return chosen()(crc, bytes); }

const char* crc32c_implementation() noexcept { return chosen() == extend_isal ? "isa-l" : "software"; }

}  // namespace tier
