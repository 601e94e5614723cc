/// The strong types: what compiles, what does not, and the alignment helpers.
#include "tier/types.h"

#include <gtest/gtest.h>

#include <concepts>
#include <string_view>

namespace tier {
namespace {

template <class A, class B>
concept Adds = requires(A a, B b) { a + b; };
template <class A, class B>
concept Subtracts = requires(A a, B b) { a - b; };

static_assert(Adds<Address, Bytes> && Adds<Bytes, Bytes> && Adds<Sequence, std::uint64_t>);
static_assert(!Adds<Address, Address> && !Adds<Address, std::uint64_t> && !Adds<Sequence, Sequence>);
static_assert(!Adds<Address, Sequence> && !Adds<Sequence, Bytes> && !Adds<Bytes, std::uint64_t>);
static_assert(Subtracts<Address, Address> && Subtracts<Sequence, Sequence> && !Subtracts<Address, Sequence>);
static_assert(!std::convertible_to<std::uint64_t, Bytes> && !std::convertible_to<std::uint64_t, Address> &&
              !std::convertible_to<std::uint64_t, Sequence>);
static_assert(!std::convertible_to<Bytes, std::uint64_t>);

TEST(Types, PointsAndDistances) {
  EXPECT_EQ(Address{100} + 28_B, Address{128});
  EXPECT_EQ(Address{128} - Address{100}, 28_B);
  EXPECT_EQ(Sequence{5} + 3, Sequence{8});
  EXPECT_EQ(Sequence{8} - Sequence{5}, 3u);
  EXPECT_EQ(1_KiB * 1024, 1_MiB);
  EXPECT_EQ(1_GiB / 1024, 1_MiB);
  EXPECT_EQ(1_MiB - 1_KiB + 1_KiB, 1_MiB);
  EXPECT_LT(Address{1}, Address{2});
  EXPECT_EQ(Address{}, Address{0});
  EXPECT_EQ(Address::kMax, (std::uint64_t{1} << 48) - 1);
}

TEST(Types, Alignment) {
  for (const std::uint64_t unit : {1u, 8u, 512u, 4096u}) {
    for (std::uint64_t n = 0; n < 3 * unit; ++n) {
      EXPECT_EQ(align_up(n, unit), (n + unit - 1) / unit * unit);
      EXPECT_EQ(align_down(n, unit), n / unit * unit);
    }
  }
}

TEST(Types, TextAndBytesAreTheSameMemory) {
  const std::string_view text("a\0b", 3);
  const ByteSpan bytes = as_bytes(text);
  ASSERT_EQ(bytes.size(), 3u);
  EXPECT_EQ(bytes[2], std::byte{'b'});
  EXPECT_EQ(as_text(bytes).data(), text.data());
  EXPECT_EQ(as_text(bytes), text);
}

}  // namespace
}  // namespace tier
