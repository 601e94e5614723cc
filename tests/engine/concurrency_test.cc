/// Goal: any verbs, from any threads, at once: every byte comes back, committed is contiguous, nothing races (TSan).
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "engine_fixture.h"

namespace tier::testing {
namespace {

class EngineThreads : public ::testing::TestWithParam<FileMode> {
 protected:
  void SetUp() override { fs_ = open_fs(GetParam() == FileMode::kWriteThrough ? "mem:" : "local://" + directory_.path()); }
  EngineOptions options() const {
    EngineOptions o;
    o.segment_size = 64_KiB;
    o.allow_small_segments = true;
    o.allocate_ahead = 64_KiB;
    o.prepared_segments = 2;
    o.mode = GetParam() == FileMode::kWriteThrough ? FileMode::kBuffered : GetParam();
    o.create = Create::kIfMissing;
    return o;
  }
  TemporaryDirectory directory_;
  std::shared_ptr<FileSystem> fs_;
};

TEST_P(EngineThreads, EightAppendersAndASyncerLoseNothing) {
  auto engine = open_engine(fs_, options());
  constexpr int kThreads = 8;
  constexpr int kAppends = 300;
  std::vector<std::vector<std::pair<std::uint64_t, std::size_t>>> ranges(kThreads);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < kAppends; ++i) {
        const std::size_t n = 1 + (i * 37 + t * 101) % 700;
        auto lease = engine->claim(Bytes{n}, {.alignment = i % 3 == 0 ? 64u : 1u, .one_segment = i % 2 == 0});
        ASSERT_OK(lease);
        const auto bytes = pattern(lease->address().value, n);
        const ByteSpan part(bytes);
        ASSERT_OK(lease->write(Bytes{0}, {&part, 1}));
        lease->commit();
        ranges[t].emplace_back(lease->address().value, n);
      }
    });
  }
  std::vector<std::thread> others;
  for (int s = 0; s < 2; ++s) {
    others.emplace_back([&] {
      while (!stop.load()) {
        const Tails before = engine->tails();
        EXPECT_OK(engine->sync(before.committed));
        EXPECT_GE(engine->tails().durable, before.committed);
      }
    });
  }
  others.emplace_back([&] {  // a reader of what is committed
    std::vector<std::byte> bytes(300);
    while (!stop.load()) {
      const Tails t = engine->tails();
      EXPECT_LE(t.durable, t.committed);
      EXPECT_LE(t.committed, t.allocated);
      const std::uint64_t n = std::min<std::uint64_t>(bytes.size(), t.committed.value);
      EXPECT_OK(engine->read(Address{t.committed.value - n}, std::span(bytes).first(n)));
    }
  });
  for (std::thread& t : threads) t.join();
  stop.store(true);
  for (std::thread& t : others) t.join();
  const Tails t = engine->tails();
  EXPECT_EQ(t.committed, t.allocated);
  for (const auto& mine : ranges) {
    for (const auto& [at, n] : mine) ASSERT_EQ(read_back(*engine, Address{at}, n), pattern(at, n));
  }
  ASSERT_OK(engine->close());
}

TEST_P(EngineThreads, OverwritesReadsViewsAndTruncationRunTogether) {
  auto engine = open_engine(fs_, options());
  ASSERT_OK(engine->allocate(512_KiB));
  ASSERT_OK(engine->sync());
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 3; ++t) {  // each in a region of its own, at the end
    threads.emplace_back([&, t] {
      const std::uint64_t at = (320 << 10) + t * (64 << 10);
      for (std::uint64_t version = 1; !stop.load(); ++version) {
        const auto bytes = pattern(at, 3000, version);
        ASSERT_OK(engine->write(Address{at}, bytes));
        ASSERT_EQ(read_back(*engine, Address{at}, 3000), bytes);
      }
    });
  }
  threads.emplace_back([&] {
    std::vector<std::byte> bytes(5000);
    std::uint64_t at = 0;
    while (!stop.load()) {
      const Status s = engine->read(Address{at}, bytes);
      if (s.code() == Code::kTruncated) at = engine->tails().begin.value;
      else EXPECT_OK(s);
      const auto view = engine->view(Address{at}, 1000_B);
      EXPECT_TRUE(view.ok() || view.code() == Code::kTruncated);
    }
  });
  for (std::uint64_t to = 0; to <= 300 << 10; to += 5'000) {
    ASSERT_OK(engine->reclaim_head(Address{to}));
    ASSERT_OK(engine->sync());
  }
  stop.store(true);
  for (std::thread& t : threads) t.join();
}

TEST_P(EngineThreads, TheTailIsTakenBackBetweenAppends) {
  auto engine = open_engine(fs_, options());
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      const auto bytes = pattern(0, 900);
      while (!stop.load()) EXPECT_OK(engine->append(bytes));
    });
  }
  threads.emplace_back([&] {
    while (!stop.load()) EXPECT_OK(engine->sync());
  });
  for (int i = 0; i < 20; ++i) {
    while (engine->tails().committed.value < 10'000) std::this_thread::yield();
    ASSERT_OK(engine->reclaim_tail(Address{5'000}));
  }
  stop.store(true);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(engine->tails().committed, engine->tails().allocated);
}

INSTANTIATE_TEST_SUITE_P(Places, EngineThreads,
                         ::testing::Values(FileMode::kWriteThrough, FileMode::kBuffered, FileMode::kMapped),
                         [](const auto& mode) {
                           return std::string(mode.param == FileMode::kWriteThrough ? "mem" : file_mode_name(mode.param));
                         });

}  // namespace
}  // namespace tier::testing
