/// The strong types of the address arithmetic: Bytes (a size), Address (a byte position in an engine), Sequence (a
/// record's number in a log), and the byte spans that data moves through.
///
/// Address and Sequence are points; Bytes and plain counts are distances. point - point = distance, point + distance =
/// point; nothing else compiles. Addresses use 48 bits, so that an index entry can hold one beside a tag.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tier {

using ByteSpan = std::span<const std::byte>;
using MutableByteSpan = std::span<std::byte>;

inline ByteSpan as_bytes(std::string_view s) noexcept {
  return {reinterpret_cast<const std::byte*>(s.data()), s.size()};
}
inline std::string_view as_text(ByteSpan b) noexcept { return {reinterpret_cast<const char*>(b.data()), b.size()}; }

/// A size or distance in bytes.
struct Bytes {
  std::uint64_t value = 0;
  constexpr Bytes() noexcept = default;
  constexpr explicit Bytes(std::uint64_t v) noexcept : value(v) {}
  constexpr auto operator<=>(const Bytes&) const noexcept = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) noexcept { return Bytes{a.value + b.value}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) noexcept { return Bytes{a.value - b.value}; }
  friend constexpr Bytes operator*(Bytes a, std::uint64_t n) noexcept { return Bytes{a.value * n}; }
  friend constexpr Bytes operator/(Bytes a, std::uint64_t n) noexcept { return Bytes{a.value / n}; }
};

/// A byte position in an engine's linear address space.
struct Address {
  static constexpr int kBits = 48;
  static constexpr std::uint64_t kMax = (std::uint64_t{1} << kBits) - 1;
  std::uint64_t value = 0;
  constexpr Address() noexcept = default;
  constexpr explicit Address(std::uint64_t v) noexcept : value(v) {}
  constexpr auto operator<=>(const Address&) const noexcept = default;
  friend constexpr Address operator+(Address a, Bytes n) noexcept { return Address{a.value + n.value}; }
  friend constexpr Bytes operator-(Address a, Address b) noexcept { return Bytes{a.value - b.value}; }
};

/// A record's number in a log: dense, from 0.
struct Sequence {
  std::uint64_t value = 0;
  constexpr Sequence() noexcept = default;
  constexpr explicit Sequence(std::uint64_t v) noexcept : value(v) {}
  constexpr auto operator<=>(const Sequence&) const noexcept = default;
  friend constexpr Sequence operator+(Sequence s, std::uint64_t n) noexcept { return Sequence{s.value + n}; }
  friend constexpr std::uint64_t operator-(Sequence a, Sequence b) noexcept { return a.value - b.value; }
};

inline namespace literals {
constexpr Bytes operator""_B(unsigned long long n) noexcept { return Bytes{n}; }
constexpr Bytes operator""_KiB(unsigned long long n) noexcept { return Bytes{n << 10}; }
constexpr Bytes operator""_MiB(unsigned long long n) noexcept { return Bytes{n << 20}; }
constexpr Bytes operator""_GiB(unsigned long long n) noexcept { return Bytes{n << 30}; }
}  // namespace literals

/// `n` rounded up to a multiple of `unit`, a power of two.
constexpr std::uint64_t align_up(std::uint64_t n, std::uint64_t unit) noexcept { return (n + unit - 1) & ~(unit - 1); }
constexpr std::uint64_t align_down(std::uint64_t n, std::uint64_t unit) noexcept { return n & ~(unit - 1); }

}  // namespace tier
