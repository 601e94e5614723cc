/// What the log's tests share: places to keep a log, records that say their own number, and images of a store.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "testing/temporary_directory.h"
#include "tier/log.h"

namespace tier::testing {

#define EXPECT_OK(expression)                                                        \
  do {                                                                               \
    const auto& expect_ok_ = (expression);                                            \
    EXPECT_TRUE(expect_ok_.ok()) << ::tier::detail::status_of(expect_ok_).message(); \
  } while (false)
#define ASSERT_OK(expression)                                                        \
  do {                                                                               \
    const auto& assert_ok_ = (expression);                                            \
    ASSERT_TRUE(assert_ok_.ok()) << ::tier::detail::status_of(assert_ok_).message(); \
  } while (false)
#define EXPECT_CODE(expected, expression)                                                         \
  do {                                                                                            \
    const auto& expect_code_ = (expression);                                                       \
    EXPECT_EQ(::tier::Code::expected, expect_code_.code())                                        \
        << ::tier::code_name(expect_code_.code()) << ": "                                         \
        << ::tier::detail::status_of(expect_code_).message();                                     \
  } while (false)

inline std::shared_ptr<FileSystem> open_fs(const std::string& url, const FileSystemOptions& options = {}) {
  auto fs = open_file_system(url, options);
  EXPECT_TRUE(fs.ok()) << url << ": " << fs.status().message();
  return fs.ok() ? *fs : nullptr;
}
inline std::shared_ptr<FileSystem> memory(std::uint64_t quota = 0) { return open_fs("mem:", {.quota = quota}); }

/// Small enough that a few records drive every boundary.
inline LogOptions small_log(Durability durability = Durability::kBatch, std::uint64_t segment = 4096) {
  LogOptions o;
  o.durability = durability;
  o.allow_small_segments = true;
  o.segment_size = Bytes{segment};
  o.ring_size = Bytes{64u << 10};
  o.batch_bytes = Bytes{4096};
  o.max_record = Bytes{segment / 4};
  return o;
}
/// The defaults with a ring that costs tests less.
inline LogOptions plain_log(Durability durability = Durability::kBatch) {
  LogOptions o;
  o.durability = durability;
  o.segment_size = Bytes{4u << 20};
  o.ring_size = Bytes{1u << 20};
  return o;
}
inline LogOptions read_only(LogOptions o = {}) {
  o.read_only = true;
  o.create = Create::kNever;
  return o;
}

inline std::unique_ptr<Log> open_log(const std::shared_ptr<FileSystem>& fs, const LogOptions& options,
                                     std::string_view path = "log") {
  auto log = Log::open(fs, path, options);
  EXPECT_TRUE(log.ok()) << log.status().message();
  return log.ok() ? *std::move(log) : nullptr;
}

/// Bytes that only this number and size have.
inline std::string record_of(std::uint64_t number, std::size_t size) {
  std::string bytes(size, '\0');
  std::uint64_t x = number * 0x9e37'79b9'7f4a'7c15u + size + 1;
  for (char& c : bytes) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    c = static_cast<char>(x >> 32);
  }
  return bytes;
}

/// Every record from `from` on that can be seen, and why it ended (success: at the end).
struct ReadBack {
  std::vector<std::pair<std::uint64_t, std::string>> records;
  Status status;
};
inline ReadBack read_all(Log& log, Sequence from = Sequence{0}, const CursorOptions& options = {}) {
  ReadBack all;
  auto cursor = log.scan(from, Sequence{~std::uint64_t{0}}, options);
  if (!cursor.ok()) {
    all.status = cursor.status();
    return all;
  }
  for (;;) {
    auto record = (*cursor)->next();
    if (!record.ok()) {
      all.status = record.status();
      return all;
    }
    if (!*record) return all;
    all.records.emplace_back((*record)->sequence.value, std::string(as_text((*record)->bytes)));
  }
}

/// Records [first, first + expected.size()) are there, no others above.
inline void expect_records(Log& log, const std::vector<std::string>& expected, std::uint64_t first = 0) {
  const ReadBack all = read_all(log, Sequence{first});
  EXPECT_TRUE(all.status.ok()) << all.status.message();
  ASSERT_EQ(all.records.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(all.records[i].first, first + i);
    ASSERT_TRUE(all.records[i].second == expected[i]) << "record " << first + i << " has other bytes";
  }
}

inline std::string mode_name(const ::testing::TestParamInfo<Durability>& tested) { return durability_name(tested.param); }

/// The bytes of every file below a directory.
using Image = std::map<std::string, std::string>;

inline Image capture(FileSystem& fs, const std::string& directory = "log") {
  Image image;
  auto entries = fs.list(directory);
  EXPECT_OK(entries);
  if (!entries.ok()) return image;
  for (const DirectoryEntry& e : *entries) {
    auto file = fs.open(directory + '/' + e.name, {});
    EXPECT_OK(file);
    if (!file.ok()) continue;
    std::string bytes((*file)->size().value_or(0), '\0');
    EXPECT_OK((*file)->read_exactly_at(0, {reinterpret_cast<std::byte*>(bytes.data()), bytes.size()}));
    image[e.name] = std::move(bytes);
  }
  return image;
}

inline void put_file(FileSystem& fs, const std::string& path, std::string_view bytes) {
  auto file = fs.open(path, {.write = true, .create = Create::kIfMissing});
  ASSERT_OK(file);
  ASSERT_OK((*file)->truncate(0));
  ASSERT_OK((*file)->write_at(0, as_bytes(bytes)));
}

/// A file system of its own that holds the image.
inline std::shared_ptr<FileSystem> restore(const Image& image, const std::string& directory = "log") {
  auto fs = memory();
  EXPECT_OK(fs->create_directory(directory));
  for (const auto& [name, bytes] : image) put_file(*fs, directory + '/' + name, bytes);
  return fs;
}

}  // namespace tier::testing
