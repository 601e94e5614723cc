/// CRC32C against the published vectors and a bit-by-bit reference; the whole suite runs again in a child process with the
/// software path forced, so that both paths answer the same questions.
#include "tier/crc32c.h"

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace tier {
namespace {

std::uint32_t reference(std::uint32_t crc, ByteSpan bytes) {
  crc = ~crc;
  for (const std::byte b : bytes) {
    crc ^= static_cast<std::uint32_t>(b);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1u) != 0 ? (crc >> 1) ^ 0x82f63b78u : crc >> 1;
  }
  return ~crc;
}

bool software_forced() {
  const char* forced = std::getenv("TIER_CRC32C");
  return forced != nullptr && std::string(forced) == "software";
}

std::vector<std::byte> random_bytes(std::size_t size, std::mt19937_64& random) {
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

TEST(Crc32c, AgreesWithThePublishedVectors) {
  EXPECT_EQ(crc32c_extend(0, as_bytes("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c_extend(0, as_bytes("a")), 0xc1d04330u);
  // RFC 3720, appendix B.4.
  std::array<std::byte, 32> bytes{};
  EXPECT_EQ(crc32c_extend(0, bytes), 0x8a9136aau);
  bytes.fill(std::byte{0xff});
  EXPECT_EQ(crc32c_extend(0, bytes), 0x62a8ab43u);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  EXPECT_EQ(crc32c_extend(0, bytes), 0x46dd794eu);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(31 - i);
  EXPECT_EQ(crc32c_extend(0, bytes), 0x113fdb5cu);
}

TEST(Crc32c, AgreesWithTheReferenceAtEveryShortLengthAndAlignment) {
  std::mt19937_64 random(1);
  const std::vector<std::byte> bytes = random_bytes(400, random);
  for (std::size_t offset = 0; offset < 16; ++offset) {
    for (std::size_t size = 0; size <= 300; ++size) {
      const ByteSpan part = ByteSpan(bytes).subspan(offset, size);
      ASSERT_EQ(crc32c_extend(0, part), reference(0, part)) << "offset " << offset << " size " << size;
    }
  }
}

TEST(Crc32c, AgreesWithTheReferenceOnRandomBuffers) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 60; ++round) {
    const std::vector<std::byte> bytes = random_bytes(64 + random() % 20'000, random);
    const ByteSpan part = ByteSpan(bytes).subspan(random() % 64);
    const std::uint32_t start = static_cast<std::uint32_t>(random());
    ASSERT_EQ(crc32c_extend(start, part), reference(start, part)) << "round " << round;
  }
}

TEST(Crc32c, ContinuesWhereItStopped) {
  std::mt19937_64 random(2);
  const std::vector<std::byte> bytes = random_bytes(1000, random);
  const ByteSpan all(bytes);
  const std::uint32_t whole = crc32c_extend(0, all);
  for (std::size_t cut = 0; cut <= bytes.size(); cut += 7)
    ASSERT_EQ(crc32c_extend(crc32c_extend(0, all.first(cut)), all.subspan(cut)), whole) << cut;
}

TEST(Crc32c, NothingAndZerosDoNotCheckAsZero) {
  EXPECT_NE(crc32c({}), 0u);
  const std::array<std::byte, 4096> zeros{};
  for (std::size_t size = 0; size <= zeros.size(); ++size) ASSERT_NE(crc32c(ByteSpan(zeros).first(size)), 0u) << size;
}

TEST(Crc32c, AChecksumOverBytesThatHoldTheirChecksumIsNotConstant) {
  const auto nested = [](std::string_view text) {
    std::vector<std::byte> bytes(text.size() + sizeof(std::uint32_t));
    std::memcpy(bytes.data(), text.data(), text.size());
    const std::uint32_t inner = crc32c(as_bytes(text));
    std::memcpy(bytes.data() + text.size(), &inner, sizeof inner);
    return crc32c(bytes);
  };
  EXPECT_NE(nested("one"), nested("two"));
}

TEST(Crc32c, TakesMoreThanAGigabyteAtOnce) {
  if (software_forced()) GTEST_SKIP() << "the hardware path alone cuts its input";
  constexpr std::size_t kSize = (std::size_t{1} << 30) + 123;
  void* p = ::mmap(nullptr, kSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(p, MAP_FAILED);
  const ByteSpan bytes(static_cast<const std::byte*>(p), kSize);
  const std::uint32_t halves = crc32c_extend(crc32c_extend(0, bytes.first(kSize / 2)), bytes.subspan(kSize / 2));
  EXPECT_EQ(crc32c_extend(0, bytes), halves);
  ::munmap(p, kSize);
}

TEST(Crc32c, TheSoftwarePathCanBeForced) {
  if (software_forced()) {
    EXPECT_STREQ(crc32c_implementation(), "software");
    return;
  }
  std::string program = "/proc/self/exe";
  std::string filter = "--gtest_filter=Crc32c.*";
  std::array<char*, 3> arguments{program.data(), filter.data(), nullptr};
  std::string forced = "TIER_CRC32C=software";
  std::vector<char*> environment;
  for (char** e = environ; *e != nullptr; ++e)
    if (std::string_view(*e).substr(0, 6) != "GTEST_") environment.push_back(*e);
  environment.push_back(forced.data());
  environment.push_back(nullptr);
  pid_t child = 0;
  ASSERT_EQ(::posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments.data(), environment.data()), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace tier
