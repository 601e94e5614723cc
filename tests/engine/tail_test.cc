/// Goal: claims never overlap, `committed` is exactly the contiguous prefix, and tickets may wrap.
/// Method: one thread drives every order of publication; then threads race.
#include "engine/tail.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace tier {
namespace {

std::unique_ptr<BasicTail<>> open_tail(std::uint64_t at, std::uint64_t limit) {
  auto tail = std::make_unique<BasicTail<>>();
  tail->rewind(at);
  tail->raise_limit(limit);
  tail->thaw();
  return tail;
}

TEST(Tail, CommittedIsTheContiguousPrefixInEveryOrderOfPublication) {
  std::vector<int> order{0, 1, 2, 3, 4, 5};
  do {
    auto tail = open_tail(100, 10'000);
    std::vector<ClaimedRange> ranges(order.size());
    for (std::size_t i = 0; i < ranges.size(); ++i)
      ASSERT_EQ(tail->try_claim(10 + i, 1, false, 4096, ranges[i]), ClaimOutcome::kClaimed);
    std::vector<bool> done(ranges.size());
    for (const int i : order) {
      const auto at = static_cast<std::size_t>(i);
      const std::uint64_t before = tail->committed();
      const bool moved = tail->publish(ranges[at].ticket, ranges[at].end);
      done[at] = true;
      std::uint64_t expected = 100;
      for (std::size_t k = 0; k < ranges.size() && done[k]; ++k) expected = ranges[k].end;
      ASSERT_EQ(tail->committed(), expected);
      ASSERT_EQ(moved, expected != before);
    }
    ASSERT_TRUE(tail->quiet());
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Tail, AFailedClaimChangesNothing) {
  auto tail = open_tail(0, 100);
  ClaimedRange range;
  EXPECT_EQ(tail->try_claim(101, 1, false, 4096, range), ClaimOutcome::kNoSpace);
  EXPECT_EQ(range.end, 101u) << "where it would have ended";
  EXPECT_EQ(tail->allocated(), 0u);
  EXPECT_EQ(tail->try_claim(100, 1, false, 4096, range), ClaimOutcome::kClaimed);
  EXPECT_EQ(tail->allocated(), 100u);
}

TEST(Tail, AFullRingRefusesUntilTheFirstIsPublished) {
  auto tail = open_tail(0, 1 << 20);
  std::vector<ClaimedRange> ranges(BasicTail<>::kSlots);
  for (ClaimedRange& r : ranges) ASSERT_EQ(tail->try_claim(1, 1, false, 4096, r), ClaimOutcome::kClaimed);
  ClaimedRange extra;
  EXPECT_EQ(tail->try_claim(1, 1, false, 4096, extra), ClaimOutcome::kRingFull);
  EXPECT_TRUE(tail->ring_full());
  for (std::size_t i = ranges.size(); i-- > 1;) EXPECT_FALSE(tail->publish(ranges[i].ticket, ranges[i].end));
  EXPECT_EQ(tail->try_claim(1, 1, false, 4096, extra), ClaimOutcome::kRingFull);
  EXPECT_TRUE(tail->publish(ranges[0].ticket, ranges[0].end));
  EXPECT_EQ(tail->committed(), BasicTail<>::kSlots);
  EXPECT_EQ(tail->try_claim(1, 1, false, 4096, extra), ClaimOutcome::kClaimed);
}

TEST(Tail, AnOldPublicationIsNotTakenForANewOneWhenTicketsWrap) {
  auto tail = open_tail(0, ~std::uint64_t{0} >> 16);
  ClaimedRange first, second;
  ASSERT_EQ(tail->try_claim(1, 1, false, 4096, first), ClaimOutcome::kClaimed);
  ASSERT_EQ(tail->try_claim(1, 1, false, 4096, second), ClaimOutcome::kClaimed);
  tail->publish(second.ticket, second.end);  // goes through the ring and stays there
  tail->publish(first.ticket, first.end);
  for (int i = 0; i < 3 * 65536; ++i) {
    ClaimedRange r;
    ASSERT_EQ(tail->try_claim(3, 1, false, 4096, r), ClaimOutcome::kClaimed);
    ASSERT_EQ(tail->committed(), r.start) << i;
    tail->publish(r.ticket, r.end);
  }
  // Also after the tail went back, below what the ring remembers.
  tail->freeze();
  tail->rewind(1);
  tail->raise_limit(1 << 30);
  tail->thaw();
  for (int i = 0; i < 65536 + 10; ++i) {
    ClaimedRange r;
    ASSERT_EQ(tail->try_claim(1, 1, false, 4096, r), ClaimOutcome::kClaimed);
    ASSERT_EQ(tail->committed(), r.start) << i;
    tail->publish(r.ticket, r.end);
  }
}

TEST(Tail, FreezingStopsClaimsAndKeepsTheTail) {
  auto tail = open_tail(50, 1000);
  ClaimedRange out;
  ASSERT_EQ(tail->try_claim(10, 1, false, 4096, out), ClaimOutcome::kClaimed);
  tail->freeze();
  ClaimedRange r;
  EXPECT_EQ(tail->try_claim(10, 1, false, 4096, r), ClaimOutcome::kFrozen);
  EXPECT_EQ(tail->allocated(), 60u);
  EXPECT_FALSE(tail->quiet());
  tail->publish(out.ticket, out.end);
  EXPECT_TRUE(tail->quiet());
  tail->thaw();
  ASSERT_EQ(tail->try_claim(10, 1, false, 4096, r), ClaimOutcome::kClaimed);
  EXPECT_EQ(r.start, 60u);
}

TEST(Tail, ClaimsStayInOneSegmentAndAligned) {
  std::mt19937_64 random(1);
  auto tail = open_tail(0, 1 << 30);
  std::uint64_t end = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t n = 1 + random() % 4096;
    const auto alignment = std::uint32_t{1} << (random() % 13);
    ClaimedRange r;
    ASSERT_EQ(tail->try_claim(n, alignment, true, 4096, r), ClaimOutcome::kClaimed);
    ASSERT_GE(r.start, end);
    ASSERT_EQ(r.start % alignment, 0u);
    ASSERT_EQ(r.start / 4096, (r.end - 1) / 4096);
    ASSERT_EQ(r.end, r.start + n);
    tail->publish(r.ticket, r.end);
    end = r.end;
  }
}

TEST(Tail, RacingThreadsTileTheSpace) {
  constexpr int kThreads = 8;
  constexpr int kClaims = 20'000;
  auto tail = open_tail(0, 1 << 30);
  std::vector<std::vector<ClaimedRange>> claimed(kThreads);
  std::atomic<bool> stop{false};
  std::thread watcher([&] {
    std::uint64_t last = 0;
    while (!stop.load()) {
      const std::uint64_t committed = tail->committed();
      EXPECT_GE(committed, last);
      EXPECT_LE(committed, tail->allocated());
      last = committed;
    }
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kClaims;) {
        ClaimedRange r;
        if (tail->try_claim(1 + static_cast<std::uint64_t>(i % 7), 1, false, 4096, r) != ClaimOutcome::kClaimed) {
          std::this_thread::yield();
          continue;
        }
        claimed[static_cast<std::size_t>(t)].push_back(r);
        tail->publish(r.ticket, r.end);
        ++i;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  stop.store(true);
  watcher.join();
  std::vector<ClaimedRange> all;
  for (const auto& c : claimed) all.insert(all.end(), c.begin(), c.end());
  std::sort(all.begin(), all.end(), [](const ClaimedRange& a, const ClaimedRange& b) { return a.start < b.start; });
  std::uint64_t at = 0;
  for (const ClaimedRange& r : all) {
    ASSERT_EQ(r.start, at);
    at = r.end;
  }
  EXPECT_EQ(tail->committed(), at);
  EXPECT_TRUE(tail->quiet());
}

}  // namespace
}  // namespace tier
