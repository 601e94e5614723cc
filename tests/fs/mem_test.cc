/// What is particular to `mem:`: quota, sharing by name, sparse cost, and mappings that stay where they are.
#include <sys/resource.h>

#include <cstring>
#include <thread>

#include "fs/fs_fixture.h"

namespace tier::testing {
namespace {

constexpr std::uint64_t kPage = 4096;

TEST(MemQuota, CountsPagesThatAreWritten) {
  const auto fs = open_fs_or_fail("mem:", {.quota = 8 * kPage});
  const auto file = open_or_fail(*fs, "f", kCreate);
  ASSERT_OK(file->write_at(kPage - 1, pattern(2).span()));  // two pages
  EXPECT_EQ(file->info()->allocated, 2 * kPage);
  EXPECT_EQ(fs->space()->capacity, 8 * kPage);
  EXPECT_EQ(fs->space()->available, 6 * kPage);
  ASSERT_OK(file->write_at(0, pattern(2 * kPage).span()));  // the same two
  EXPECT_EQ(fs->space()->available, 6 * kPage);
  ASSERT_OK(file->allocate(100 * kPage, 6 * kPage));
  EXPECT_EQ(fs->space()->available, 0u);
  EXPECT_EQ(*file->size(), 106 * kPage);
}

TEST(MemQuota, RefusesWhatDoesNotFitAndChangesNothing) {
  const auto fs = open_fs_or_fail("mem:", {.quota = 4 * kPage});
  const auto file = open_or_fail(*fs, "f", kCreate);
  ASSERT_OK(file->write_at(0, pattern(3 * kPage, 1).span()));
  const Status full = file->write_at(2 * kPage, pattern(3 * kPage, 2).span());
  EXPECT_CODE(Code::kDiskFull, full);
  EXPECT_NE(full.message().find("quota"), std::string::npos) << full.message();
  EXPECT_EQ(*file->size(), 3 * kPage);
  EXPECT_TRUE(same(read(*file, 0, 3 * kPage).span(), pattern(3 * kPage, 1).span()));
  EXPECT_CODE(Code::kDiskFull, file->allocate(0, 5 * kPage));
  EXPECT_EQ(*file->size(), 3 * kPage);
  EXPECT_OK(file->write_at(3 * kPage, pattern(kPage).span()));  // the last page is still there
}

TEST(MemQuota, HealsWhenSpaceComesBack) {
  const auto fs = open_fs_or_fail("mem:", {.quota = 4 * kPage});
  auto file = open_or_fail(*fs, "f", kCreate);
  const auto full = [&] { return fs->space()->available == 0; };
  const auto fill = [&] { return file->write_at(0, pattern(4 * kPage).span()); };
  ASSERT_OK(fill());
  EXPECT_TRUE(full());
  ASSERT_OK(file->punch(kPage, 2 * kPage));
  EXPECT_EQ(fs->space()->available, 2 * kPage);
  ASSERT_OK(fill());
  ASSERT_OK(file->truncate(1));
  EXPECT_EQ(fs->space()->available, 3 * kPage);
  ASSERT_OK(fill());
  ASSERT_OK(fs->remove("f"));
  EXPECT_TRUE(full());  // the open file has them still
  file.reset();
  EXPECT_EQ(fs->space()->available, 4 * kPage);
}

TEST(MemQuota, PunchingTheLastPartialPageGivesItBack) {
  const auto fs = open_fs_or_fail("mem:", {.quota = 4 * kPage});
  const auto file = open_or_fail(*fs, "f", kCreate);
  ASSERT_OK(file->write_at(0, pattern(kPage + 10).span()));
  ASSERT_OK(file->punch(0, kPage + 10));
  EXPECT_EQ(fs->space()->available, 4 * kPage);
  EXPECT_EQ(*file->size(), kPage + 10);
}

TEST(MemQuota, IsExactUnderManyWriters) {
  const auto fs = open_fs_or_fail("mem:", {.quota = 100 * kPage});
  std::vector<std::unique_ptr<File>> files;
  for (int i = 0; i < 4; ++i) files.push_back(open_or_fail(*fs, "f" + std::to_string(i), kCreate));
  std::atomic<std::uint64_t> written{0};
  std::vector<std::thread> threads;
  for (auto& file : files)
    threads.emplace_back([&file, &written] {
      const AlignedBuffer page = pattern(kPage);
      for (std::uint64_t i = 0; i < 50; ++i)
        if (file->write_at(i * kPage, page.span()).ok()) ++written;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(written.load(), 100u);
  EXPECT_EQ(fs->space()->available, 0u);
  std::uint64_t allocated = 0;
  for (auto& file : files) allocated += file->info()->allocated;
  EXPECT_EQ(allocated, 100 * kPage);
}

TEST(MemName, IsSharedWhileSomebodyHoldsIt) {
  auto one = open_fs_or_fail("mem:shared-name", {.quota = 16 * kPage});
  ASSERT_OK(open_or_fail(*one, "f", kCreate)->write_at(0, pattern(kPage, 1).span()));
  const auto two = open_fs_or_fail("mem:shared-name");
  EXPECT_TRUE(same(read(*open_or_fail(*two, "f", {}), 0, kPage).span(), pattern(kPage, 1).span()));
  EXPECT_EQ(two->space()->capacity, 16 * kPage);
  EXPECT_OK(open_file_system("mem:shared-name", {.quota = 16 * kPage}));
  EXPECT_CODE(Code::kInvalid, open_file_system("mem:shared-name", {.quota = 1}));
  EXPECT_CODE(Code::kNotFound, open_fs_or_fail("mem:other-name")->stat("f"));
  EXPECT_CODE(Code::kNotFound, open_fs_or_fail("mem:")->stat("f"));
  one.reset();
  EXPECT_OK(two->stat("f"));
}

TEST(MemName, IsGoneWithItsLastHolder) {
  auto fs = open_fs_or_fail("mem:short-lived");
  auto file = open_or_fail(*fs, "f", kCreate);
  fs.reset();
  EXPECT_OK(open_fs_or_fail("mem:short-lived")->stat("f"));  // an open File holds it
  file.reset();
  EXPECT_CODE(Code::kNotFound, open_fs_or_fail("mem:short-lived")->stat("f"));
}

TEST(MemFile, CostsOnlyWhatIsWritten) {
  const auto fs = open_fs_or_fail("mem:");
  const auto file = open_or_fail(*fs, "f", kCreate);
  rusage before{};
  ::getrusage(RUSAGE_SELF, &before);
  for (std::uint64_t at = 1; at <= std::uint64_t{1} << 34; at *= 4)
    ASSERT_OK(file->write_at(at, pattern(1, at).span()));
  ASSERT_OK(file->truncate(std::uint64_t{1} << 39));
  EXPECT_LE(file->info()->allocated, 20 * kPage);
  EXPECT_EQ(read(*file, std::uint64_t{1} << 34, 1).span()[0], pattern(1, std::uint64_t{1} << 34).span()[0]);
  EXPECT_EQ(read(*file, (std::uint64_t{1} << 38) + 5, 1).span()[0], std::byte{0});
  rusage after{};
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_LE(after.ru_maxrss - before.ru_maxrss, 256 << 10) << "KiB";  // huge pages and a sanitizer's shadow included
}

TEST(MemFile, HasALargestSizeAndNamesIt) {
  const auto fs = open_fs_or_fail("mem:");
  const auto file = open_or_fail(*fs, "f", kCreate);
  const Status s = file->write_at(std::uint64_t{1} << 40, pattern(1).span());
  EXPECT_CODE(Code::kTooLarge, s);
  EXPECT_NE(s.message().find("1099511627776"), std::string::npos) << s.message();
  EXPECT_CODE(Code::kTooLarge, file->truncate((std::uint64_t{1} << 40) + 1));
}

TEST(MemFile, ReadsInHolesCostNothing) {
  const auto fs = open_fs_or_fail("mem:", {.quota = kPage});
  const auto file = open_or_fail(*fs, "f", kCreate);
  ASSERT_OK(file->truncate(100 * kPage));
  EXPECT_TRUE(same(read(*file, 0, 100 * kPage).span(), zeros(100 * kPage).span()));
  EXPECT_EQ(fs->space()->available, kPage);
}

TEST(MemMapping, ChargesAWriterAndNotAReader) {
  const auto fs = open_fs_or_fail("mem:", {.quota = 4 * kPage});
  const auto file = open_or_fail(*fs, "f", kCreate);
  ASSERT_OK(file->truncate(16 * kPage));
  const auto reader = open_or_fail(*fs, "f", {});
  ASSERT_OK(reader->mapping(0, 16 * kPage));
  EXPECT_EQ(fs->space()->available, 4 * kPage);
  EXPECT_CODE(Code::kDiskFull, file->mapping(0, 5 * kPage));
  ASSERT_OK(file->mapping(0, 4 * kPage));
  EXPECT_EQ(fs->space()->available, 0u);
}

TEST(MemMapping, IsOneRangeWhenTheFileWasAllocatedFirst) {
  const auto fs = open_fs_or_fail("mem:");
  const auto file = open_or_fail(*fs, "f", kCreate);
  ASSERT_OK(file->write_at(0, pattern(100, 1).span()));
  ASSERT_OK(file->allocate(0, 32 << 20));  // grows by moving: nothing was handed out
  const auto all = file->mapping(0, 32 << 20);
  ASSERT_OK(all);
  EXPECT_TRUE(same(all->first(100), pattern(100, 1).span()));
  const auto part = file->mapping(4 << 20, 1 << 20);
  ASSERT_OK(part);
  EXPECT_EQ(part->data(), all->data() + (4 << 20));
}

TEST(MemMapping, HoldsItsPlaceWhileOthersGrowTheFile) {
  const auto fs = open_fs_or_fail("mem:");
  const auto file = open_or_fail(*fs, "f", kCreate);
  ASSERT_OK(file->allocate(0, 1 << 20));
  const auto map = file->mapping(0, 1 << 20);
  ASSERT_OK(map);
  std::thread grower([&fs] {
    const auto other = open_or_fail(*fs, "f", kCreate);
    for (std::uint64_t mib = 1; mib < 64; ++mib) EXPECT_OK(other->write_at(mib << 20, pattern(kPage, mib).span()));
  });
  for (std::size_t i = 0; i < map->size(); ++i) (*map)[i] = static_cast<std::byte>(i * 7);
  grower.join();
  const AlignedBuffer back = read(*file, 0, 1 << 20);
  for (std::size_t i = 0; i < back.size(); i += 997) ASSERT_EQ(back.span()[i], static_cast<std::byte>(i * 7));
  // A range over a boundary between chunks is refused or is the bytes; never something else.
  const auto over = file->mapping((1 << 20) - kPage, 2 * kPage);
  if (over.ok())
    EXPECT_TRUE(same(over->subspan(kPage), pattern(kPage, 1).span()));
  else
    EXPECT_CODE(Code::kUnsupported, over);
}

TEST(MemMapping, OutlivesItsName) {
  const auto fs = open_fs_or_fail("mem:");
  const auto file = open_or_fail(*fs, "f", kCreate);
  ASSERT_OK(file->write_at(0, pattern(kPage, 1).span()));
  const auto map = file->mapping(0, kPage);
  ASSERT_OK(map);
  ASSERT_OK(fs->remove("f"));
  EXPECT_TRUE(same(*map, pattern(kPage, 1).span()));
}

TEST(MemFile, ReadersAndGrowingWritersDoNotDisturbEachOther) {
  const auto fs = open_fs_or_fail("mem:");
  const auto file = open_or_fail(*fs, "f", kCreate);
  std::atomic<std::uint64_t> published{0};
  std::thread writer([&] {
    for (std::uint64_t i = 0; i < 600; ++i) {
      EXPECT_OK(file->write_at(i * 5000, pattern(5000, i).span()));
      published.store(i + 1, std::memory_order_release);
    }
  });
  std::thread reader([&] {
    for (std::uint64_t n = 0; n < 600;) {
      n = published.load(std::memory_order_acquire);
      if (n == 0) continue;
      EXPECT_TRUE(same(read(*file, (n - 1) * 5000, 5000).span(), pattern(5000, n - 1).span()));
    }
  });
  writer.join();
  reader.join();
}

}  // namespace
}  // namespace tier::testing
