/// What the tests of this floor share: temporary folders, patterned bytes, and the file systems that the contract suite
/// runs against.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/aligned_buffer.h"
#include "tier/fs.h"

namespace tier::testing {

/// A folder that goes with its owner.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const char* where = nullptr) {
    const char* base = where != nullptr ? where : std::getenv("TMPDIR");
    std::string name = std::string(base != nullptr ? base : "/tmp") + "/tier-fs-XXXXXX";
    path_ = ::mkdtemp(name.data()) != nullptr ? name : std::string();
    EXPECT_FALSE(path_.empty()) << "cannot make a temporary folder";
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string url() const { return "local://" + path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// Aligned for direct I/O, and every byte known: byte i of pattern(n, seed) depends on i and seed.
inline AlignedBuffer pattern(std::size_t size, std::uint64_t seed = 0) {
  AlignedBuffer b = *AlignedBuffer::allocate(size);
  std::uint64_t x = seed * 0x9e3779b97f4a7c15u + 1;
  for (std::byte& out : b.span()) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    out = static_cast<std::byte>(x >> 56);
  }
  return b;
}
inline AlignedBuffer zeros(std::size_t size) {
  AlignedBuffer b = *AlignedBuffer::allocate(size);
  std::fill(b.span().begin(), b.span().end(), std::byte{0});
  return b;
}
inline bool same(ByteSpan a, ByteSpan b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

inline AlignedBuffer read(File& file, std::uint64_t offset, std::size_t size) {
  AlignedBuffer b = zeros(size);
  const Result<std::size_t> n = file.read_at(offset, b.span());
  EXPECT_TRUE(n.ok()) << n.status().message();
  EXPECT_EQ(n.value_or(std::size_t{0}), size);
  return b;
}

inline std::unique_ptr<File> open_or_fail(FileSystem& fs, std::string_view path, const OpenOptions& options) {
  Result<std::unique_ptr<File>> file = fs.open(path, options);
  EXPECT_TRUE(file.ok()) << file.status().message();
  return file.ok() ? *std::move(file) : nullptr;
}

inline std::shared_ptr<FileSystem> open_fs_or_fail(const std::string& url, const FileSystemOptions& options = {}) {
  Result<std::shared_ptr<FileSystem>> fs = open_file_system(url, options);
  EXPECT_TRUE(fs.ok()) << fs.status().message();
  return fs.ok() ? *std::move(fs) : nullptr;
}

inline constexpr OpenOptions kCreate{.write = true, .create = Create::kIfMissing};

/// An operation that says when it has ended.
struct TestOp : IoOp {
  TestOp() {
    done = [](IoOp& op) { static_cast<TestOp&>(op).finished.store(true); };
  }
  std::atomic<bool> finished{false};
};

}  // namespace tier::testing

#define ASSERT_OK(expression)                               \
  do {                                                      \
    const auto ok_ = ::tier::detail::status_of(expression); \
    ASSERT_TRUE(ok_.ok()) << ok_.message();                 \
  } while (false)
#define EXPECT_OK(expression)                               \
  do {                                                      \
    const auto ok_ = ::tier::detail::status_of(expression); \
    EXPECT_TRUE(ok_.ok()) << ok_.message();                 \
  } while (false)
#define EXPECT_CODE(expected, expression)                                                          \
  do {                                                                                             \
    const auto code_ = ::tier::detail::status_of(expression);                                      \
    EXPECT_STREQ(::tier::code_name(expected), ::tier::code_name(code_.code())) << code_.message(); \
  } while (false)
