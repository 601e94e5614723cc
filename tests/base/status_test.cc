/// Status: cheap to make, exact about where, honest when the place is gone.
#include "tier/status.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "testing/allocation_count.h"

namespace tier {
namespace {

constexpr int kCodes = static_cast<int>(Code::kPoisoned) + 1;
constexpr int kPlacesKept = 256;

Status failed_at(int n) { return fail(Code::kIo, EIO, "cannot read; check the disk", "file 'f' at %d", n); }
std::string place_of(int n) { return "file 'f' at " + std::to_string(n); }

TEST(Status, SuccessIsTheDefault) {
  const Status s;
  EXPECT_TRUE(s.ok());
  EXPECT_TRUE(s);
  EXPECT_EQ(s.code(), Code::kOk);
  EXPECT_STREQ(s.text(), "");
  EXPECT_EQ(s.place(), "");
  EXPECT_EQ(s.message(), "ok");
}

TEST(Status, SaysWhatWhereAndWhy) {
  const Status s = fail(Code::kDiskFull, ENOSPC, "cannot extend the segment; free some space", "file '%s' at %d", "a/b", 4096);
  EXPECT_FALSE(s.ok());
  EXPECT_EQ(s.code(), Code::kDiskFull);
  EXPECT_EQ(s.system_errno(), ENOSPC);
  EXPECT_EQ(s.place(), "file 'a/b' at 4096");
  EXPECT_EQ(s.message(),
            "disk_full: cannot extend the segment; free some space: file 'a/b' at 4096 (No space left on device, errno 28)");
}

TEST(Status, WithoutPlaceOrErrnoSaysLess) {
  const Status s(Code::kClosing, "the log is being closed");
  EXPECT_EQ(s.place(), "");
  EXPECT_EQ(s.message(), "closing: the log is being closed");
}

TEST(Status, MakingCopyingAndDroppingOneAllocatesNothing) {
  static_assert(sizeof(Status) == 16);
  const std::size_t before = testing::allocation_count();
  for (int i = 0; i < 1000; ++i) {
    const Status s = failed_at(i);
    Status copy = s;
    copy = s.as(Code::kPoisoned, "a sync failed earlier");
    ASSERT_EQ(copy.code(), Code::kPoisoned);
  }
  EXPECT_EQ(testing::allocation_count(), before);
}

TEST(Status, AsKeepsPlaceAndErrno) {
  const Status s = failed_at(7).as(Code::kCorruption, "the segment is damaged");
  EXPECT_EQ(s.code(), Code::kCorruption);
  EXPECT_STREQ(s.text(), "the segment is damaged");
  EXPECT_EQ(s.system_errno(), EIO);
  EXPECT_EQ(s.place(), place_of(7));
}

// S2
TEST(Status, APlaceOlderThanTheRingIsAbsentAndNeverAnothers) {
  std::vector<Status> all;
  for (int i = 0; i < 3 * kPlacesKept; ++i) all.push_back(failed_at(i));
  for (int i = 0; i < 2 * kPlacesKept; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)].place(), "") << i;
  for (int i = 2 * kPlacesKept; i < 3 * kPlacesKept; ++i)
    EXPECT_EQ(all[static_cast<std::size_t>(i)].place(), place_of(i));
  EXPECT_EQ(all.front().message(), "io: cannot read; check the disk (Input/output error, errno 5)");
}

// S2
TEST(Status, PlacesOfConcurrentFailuresDoNotMix) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 5000;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t, &wrong] {
      for (int i = 0; i < kRounds; ++i) {
        const int n = t * kRounds + i;
        const std::string place = failed_at(n).place();
        if (!place.empty() && place != place_of(n)) wrong.fetch_add(1, std::memory_order_relaxed);  // relaxed: joined below
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Status, AVeryLongPlaceIsCutNotOverrun) {
  const std::string path(4096, 'x');
  const Status s = fail(Code::kInvalid, 0, "the path is too long", "%s", path.c_str());
  EXPECT_EQ(s.place(), path.substr(0, 239));
}

TEST(Status, EveryCodeHasItsOwnName) {
  std::set<std::string> names;
  for (int i = 0; i < kCodes; ++i) names.insert(code_name(static_cast<Code>(i)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kCodes));
  EXPECT_FALSE(names.contains("unknown"));
  EXPECT_STREQ(code_name(static_cast<Code>(kCodes)), "unknown");
}

TEST(Status, ErrnosBecomeCodesThatCallersBranchOn) {
  const std::array<std::pair<int, Code>, 10> table{{{ENOSPC, Code::kDiskFull},
                                                    {EDQUOT, Code::kDiskFull},
                                                    {ENOENT, Code::kNotFound},
                                                    {EEXIST, Code::kExists},
                                                    {EACCES, Code::kAccess},
                                                    {EROFS, Code::kAccess},
                                                    {ENOMEM, Code::kOutOfMemory},
                                                    {EOPNOTSUPP, Code::kUnsupported},
                                                    {EIO, Code::kIo},
                                                    {EMFILE, Code::kIo}}};
  for (const auto& [number, code] : table) EXPECT_EQ(code_of_errno(number), code) << number;
}

}  // namespace
}  // namespace tier
