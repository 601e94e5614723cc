#include "base/aligned_buffer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <utility>

namespace tier {
namespace {

TEST(AlignedBuffer, IsAlignedAndOfTheSizeAskedFor) {
  for (const std::size_t alignment : {16u, 64u, 512u, 4096u}) {
    for (const std::size_t size : {0u, 1u, 511u, 4096u, 10'000u}) {
      Result<AlignedBuffer> buffer = AlignedBuffer::allocate(size, alignment);
      ASSERT_TRUE(buffer.ok());
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % alignment, 0u);
      EXPECT_EQ(buffer->size(), size);
      EXPECT_EQ(buffer->span().size(), size);
      for (std::byte& b : buffer->span()) b = std::byte{1};
    }
  }
}

TEST(AlignedBuffer, MovesItsBytes) {
  Result<AlignedBuffer> made = AlignedBuffer::allocate(100);
  ASSERT_TRUE(made.ok());
  made->data()[99] = std::byte{7};
  const std::byte* at = made->data();
  AlignedBuffer moved = *std::move(made);
  EXPECT_EQ(moved.data(), at);
  EXPECT_EQ(std::as_const(moved).span()[99], std::byte{7});
  EXPECT_EQ(AlignedBuffer().size(), 0u);
  EXPECT_EQ(AlignedBuffer().data(), nullptr);
}

TEST(AlignedBuffer, AnImpossibleSizeIsOutOfMemory) {
  for (const std::size_t size : {std::numeric_limits<std::size_t>::max() / 2, std::numeric_limits<std::size_t>::max(),
                                 std::numeric_limits<std::size_t>::max() - 4095}) {
    const Result<AlignedBuffer> buffer = AlignedBuffer::allocate(size);
    ASSERT_FALSE(buffer.ok()) << size;
    EXPECT_EQ(buffer.code(), Code::kOutOfMemory);
    EXPECT_EQ(buffer.status().place(), std::to_string(size) + " bytes");
  }
}

}  // namespace
}  // namespace tier
