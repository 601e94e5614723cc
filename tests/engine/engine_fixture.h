/// What the engine's tests share: file systems by URL in a temporary directory, and small helpers.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "testing/temporary_directory.h"
#include "tier/engine.h"

namespace tier::testing {

inline std::shared_ptr<FileSystem> open_fs(const std::string& url, std::uint64_t quota = 0) {
  auto fs = open_file_system(url, {.create = true, .quota = quota});
  EXPECT_TRUE(fs.ok()) << url << ": " << fs.status().message();
  return fs.ok() ? *fs : nullptr;
}

inline std::unique_ptr<Engine> open_engine(const std::shared_ptr<FileSystem>& fs, const EngineOptions& options,
                                           const std::string& path = "store") {
  auto engine = Engine::open(fs, path, options);
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  return engine.ok() ? *std::move(engine) : nullptr;
}

/// Bytes that tell their address and a version.
inline std::vector<std::byte> pattern(std::uint64_t address, std::size_t n, std::uint64_t version = 0) {
  std::vector<std::byte> bytes(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t x = (address + i) * 0x9e37'79b9'7f4a'7c15u + version * 0xbf58'476d'1ce4'e5b9u;
    bytes[i] = static_cast<std::byte>((x >> 56) | 1);  // never zero
  }
  return bytes;
}

inline std::vector<std::byte> read_back(Engine& engine, Address at, std::size_t n) {
  std::vector<std::byte> bytes(n);
  const Status s = engine.read(at, bytes);
  EXPECT_TRUE(s.ok()) << s.message();
  return bytes;
}

/// What a call answered, printed with its place.
struct Outcome {
  Status status;
  bool operator==(Code code) const noexcept { return status.code() == code; }
  friend std::ostream& operator<<(std::ostream& out, const Outcome& o) { return out << o.status.message(); }
};
template <class T>
Outcome outcome_of(const T& result) {
  return {::tier::detail::status_of(result)};
}

#define EXPECT_OK(expression) EXPECT_EQ(::tier::testing::outcome_of(expression), ::tier::Code::kOk)
#define ASSERT_OK(expression) ASSERT_EQ(::tier::testing::outcome_of(expression), ::tier::Code::kOk)
#define EXPECT_CODE(expected, expression) EXPECT_EQ(::tier::testing::outcome_of(expression), ::tier::Code::expected)

}  // namespace tier::testing
