/// read, scan, seek, tail, the frontiers and truncate_before.
/// Method: small segments and blocks, so that every read crosses them; on memory (zero-copy) and behind a file system that
/// cannot map (copies).
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "log/log_fixture.h"
#include "testing/fault_fs.h"

namespace tier {
namespace {

using namespace testing;

class Reading : public ::testing::TestWithParam<bool> {
 protected:
  Reading() : fs_(memory()) {
    if (GetParam()) return;
    auto faulty = FaultFs::make(fs_);
    faulty->hide(Capability::kMapping);
    fs_ = faulty;
  }
  /// `n` records, a block of one to seven each.
  void fill(Log& log, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      records_.push_back(record_of(records_.size(), records_.size() * 13 % 150));
      ASSERT_OK(log.append(records_.back()));
      if (i % 7 == 6 || i % 11 == 3) {
        ASSERT_OK(log.flush());
      }
    }
    ASSERT_OK(log.flush());
  }
  void expect_read(Log& log, std::uint64_t sequence) {
    std::string text;
    ASSERT_OK(log.read(Sequence{sequence}, text));
    ASSERT_TRUE(text == records_[sequence]) << sequence;
  }

  std::shared_ptr<FileSystem> fs_;
  std::vector<std::string> records_;
};
INSTANTIATE_TEST_SUITE_P(Places, Reading, ::testing::Bool(), [](const ::testing::TestParamInfo<bool>& tested) {
  return std::string(tested.param ? "mapped" : "copied");
});

TEST_P(Reading, AnyRecordIsFoundInAnyOrder) {
  LogOptions options = small_log();
  options.index_stride = 16;
  auto log = open_log(fs_, options);
  ASSERT_NE(log, nullptr);
  fill(*log, 500);
  for (int life = 0; life < 2; ++life) {
    for (std::uint64_t i = 0; i < 500; ++i) expect_read(*log, i);
    for (std::uint64_t i = 500; i-- > 0;) expect_read(*log, i);
    for (std::uint64_t i = 0; i < 500; ++i) expect_read(*log, i * 211 % 500);
    log.reset();
    log = open_log(fs_, options);  // the index is gone: headers are walked
    ASSERT_NE(log, nullptr);
  }
}

TEST_P(Reading, AnyRecordIsFoundFirstAfterAReopen) {
  LogOptions options = small_log();
  auto log = open_log(fs_, options);
  ASSERT_NE(log, nullptr);
  fill(*log, 300);
  log.reset();
  for (const std::uint64_t i : {299u, 0u, 150u, 7u, 298u}) {
    log = open_log(fs_, options);
    ASSERT_NE(log, nullptr);
    expect_read(*log, i);
    log.reset();
  }
}

TEST_P(Reading, ARecordThatIsNotThereIsNotFound) {
  LogOptions options = small_log();
  options.batch_interval = 60s;
  auto log = open_log(fs_, options);
  ASSERT_NE(log, nullptr);
  std::string text = "kept";
  EXPECT_CODE(kNotFound, log->read(Sequence{0}, text));
  ASSERT_OK(log->append("a"));
  EXPECT_CODE(kNotFound, log->read(Sequence{0}, text));  // not durable yet
  EXPECT_EQ(text, "kept");
  ASSERT_OK(log->flush());
  EXPECT_OK(log->read(Sequence{0}, text));
  EXPECT_CODE(kNotFound, log->read(Sequence{~0ull}, text));
}

TEST_P(Reading, AScanGivesItsHalfOpenRange) {
  auto log = open_log(fs_, small_log());
  ASSERT_NE(log, nullptr);
  fill(*log, 100);
  for (std::uint64_t from = 0; from <= 100; from += 9) {
    for (std::uint64_t to = from; to <= 110; to += 11) {
      auto cursor = log->scan(Sequence{from}, Sequence{to});
      ASSERT_OK(cursor);
      for (std::uint64_t i = from; i < std::min<std::uint64_t>(to, 100); ++i) {
        EXPECT_EQ((*cursor)->position().value, i);
        auto record = (*cursor)->next();
        ASSERT_OK(record);
        ASSERT_TRUE(record->has_value()) << i;
        ASSERT_EQ((*record)->sequence.value, i);
        ASSERT_EQ(as_text((*record)->bytes), records_[i]);
        EXPECT_GT((*record)->block_time_ns, 0u);
      }
      auto end = (*cursor)->next();
      ASSERT_OK(end);
      EXPECT_FALSE(end->has_value());
      if (to <= 100) {
        EXPECT_CODE(kNotFound, (*cursor)->wait_next(Deadline::never()));
      }
    }
  }
  EXPECT_CODE(kInvalid, log->scan(Sequence{5}, Sequence{4}));
}

TEST_P(Reading, SeekMovesACursorAnywhere) {
  auto log = open_log(fs_, small_log());
  ASSERT_NE(log, nullptr);
  fill(*log, 200);
  auto cursor = log->scan(Sequence{0});
  ASSERT_OK(cursor);
  for (const std::uint64_t at : {0u, 199u, 100u, 101u, 101u, 99u, 0u, 3u, 4u, 198u, 5u}) {
    ASSERT_OK((*cursor)->seek(Sequence{at}));
    EXPECT_EQ((*cursor)->position().value, at);
    for (std::uint64_t i = at; i < std::min<std::uint64_t>(at + 9, 200); ++i) {
      auto record = (*cursor)->next();
      ASSERT_OK(record);
      ASSERT_TRUE(record->has_value());
      ASSERT_EQ((*record)->sequence.value, i);
      ASSERT_EQ(as_text((*record)->bytes), records_[i]);
    }
  }
}

TEST_P(Reading, CommittedRecordsAreSeenOnlyByThoseWhoAsk) {
  LogOptions options = small_log(Durability::kAsync);
  auto log = open_log(fs_, options);
  ASSERT_NE(log, nullptr);
  ASSERT_OK(log->append("written"));
  auto eager = log->scan(Sequence{0}, Sequence{1}, {.committed = true});
  ASSERT_OK(eager);
  auto record = (*eager)->wait_next(Deadline::never());  // nobody asked for a sync
  ASSERT_OK(record);
  EXPECT_EQ(as_text(record->bytes), "written");
}

TEST_P(Reading, TailWaitsForMoreTimesOutAndEndsWhenTheLogCloses) {
  auto log = open_log(fs_, small_log());
  ASSERT_NE(log, nullptr);
  auto cursor = log->scan(Sequence{0});
  ASSERT_OK(cursor);
  EXPECT_CODE(kTimedOut, (*cursor)->wait_next(Deadline::now()));
  EXPECT_CODE(kTimedOut, (*cursor)->wait_next(Runtime::system().clock->in(2ms)));
  std::vector<std::string> seen;
  std::atomic<std::size_t> count{0};
  Status ended;
  std::thread reader([&] {
    for (;;) {
      auto record = (*cursor)->wait_next(Deadline::never());
      if (!record.ok()) {
        ended = record.status();
        return;
      }
      seen.emplace_back(as_text(record->bytes));
      count.fetch_add(1);
    }
  });
  fill(*log, 300);
  // A closed log ends its cursors wherever they stand; this one is to be waiting for more.
  while (count.load() < 300) std::this_thread::sleep_for(1ms);
  log->close();
  reader.join();
  EXPECT_CODE(kClosing, ended);
  EXPECT_EQ(seen, records_);
}

TEST_P(Reading, ACursorMayOutliveItsLog) {
  auto log = open_log(fs_, small_log());
  ASSERT_NE(log, nullptr);
  fill(*log, 50);
  auto cursor = log->scan(Sequence{0});
  ASSERT_OK(cursor);
  auto record = (*cursor)->next();
  ASSERT_OK(record);
  log.reset();
  EXPECT_EQ(as_text((*record)->bytes), records_[0]);
  for (;;) {  // what it holds, then the news
    auto more = (*cursor)->next();
    if (!more.ok()) {
      EXPECT_CODE(kClosing, more);
      break;
    }
    ASSERT_TRUE(more->has_value());
  }
}

TEST_P(Reading, FrontiersKeepTheirOrderWhileAllMove) {
  LogOptions options = small_log();
  options.batch_interval = 1ms;
  auto log = open_log(fs_, options);
  ASSERT_NE(log, nullptr);
  std::atomic<bool> stop{false};
  std::thread watcher([&] {
    LogCursors last = log->cursors();
    while (!stop.load()) {
      const LogCursors c = log->cursors();
      EXPECT_LE(c.first, c.durable);
      EXPECT_LE(c.durable, c.committed);
      EXPECT_LE(c.committed, c.claimed);
      EXPECT_LE(last.first, c.first);
      EXPECT_LE(last.durable, c.durable);
      EXPECT_LE(last.committed, c.committed);
      EXPECT_LE(last.claimed, c.claimed);
      last = c;
    }
  });
  for (std::uint64_t i = 0; i < 2000; ++i) {
    ASSERT_OK(log->append(record_of(i, i % 90)));
    if (i % 100 == 99) {
      ASSERT_OK(log->flush());
      ASSERT_OK(log->truncate_before(Sequence{i - 50}));
    }
  }
  stop.store(true);
  watcher.join();
}

TEST_P(Reading, TruncationGivesUpWholeBlocksAndTheirSegments) {
  auto log = open_log(fs_, small_log());
  ASSERT_NE(log, nullptr);
  fill(*log, 500);
  const std::uint64_t before = log->statistics().engine.segments;
  EXPECT_OK(log->truncate_before(Sequence{0}));
  EXPECT_EQ(log->cursors().first.value, 0u);
  for (const std::uint64_t to : {1u, 8u, 100u, 250u, 251u, 400u}) {
    ASSERT_OK(log->truncate_before(Sequence{to}));
    const std::uint64_t first = log->cursors().first.value;
    EXPECT_LE(first, to);
    EXPECT_GT(first + 8, to);  // blocks hold at most seven
    ASSERT_OK(log->truncate_before(Sequence{first / 2}));  // never back
    EXPECT_EQ(log->cursors().first.value, first);
    expect_records(*log, {records_.begin() + static_cast<std::ptrdiff_t>(first), records_.end()}, first);
    if (first == 0) continue;
    std::string text;
    const Status gone = log->read(Sequence{first - 1}, text);
    EXPECT_CODE(kTruncated, gone);
    EXPECT_NE(gone.place().find("first available " + std::to_string(first)), std::string::npos) << gone.message();
    EXPECT_CODE(kTruncated, log->scan(Sequence{0}));
  }
  EXPECT_LT(log->statistics().engine.segments, before);
  const std::uint64_t first = log->cursors().first.value;
  log.reset();
  log = open_log(fs_, small_log());
  ASSERT_NE(log, nullptr);
  EXPECT_EQ(log->recovery().from.value, first);
  expect_records(*log, {records_.begin() + static_cast<std::ptrdiff_t>(first), records_.end()}, first);
}

TEST_P(Reading, TruncatingEverythingKeepsCounting) {
  auto log = open_log(fs_, small_log());
  ASSERT_NE(log, nullptr);
  for (int life = 0; life < 4; ++life) {
    fill(*log, 40);
    const std::uint64_t all = records_.size();
    ASSERT_OK(log->truncate_before(Sequence{~std::uint64_t{0}}));
    EXPECT_EQ(log->cursors().first.value, all);
    expect_records(*log, {}, all);
    log.reset();
    log = open_log(fs_, small_log());
    ASSERT_NE(log, nullptr);
    EXPECT_EQ(log->cursors().first.value, all);
    auto next = log->append("next");
    ASSERT_OK(next);
    EXPECT_EQ(next->value, all);
    records_.push_back("next");
    ASSERT_OK(log->flush());
    expect_read(*log, all);
  }
}

TEST_P(Reading, ACursorBelowTheTruncationIsToldWhereToGoOn) {
  auto log = open_log(fs_, small_log());
  ASSERT_NE(log, nullptr);
  fill(*log, 300);
  auto cursor = log->scan(Sequence{0});
  ASSERT_OK(cursor);
  ASSERT_OK((*cursor)->next());
  ASSERT_OK(log->truncate_before(Sequence{200}));
  const std::uint64_t first = log->cursors().first.value;
  Status ended;
  for (std::uint64_t i = 1;; ++i) {  // what is left of its block, then the news
    ASSERT_LT(i, 10u);
    auto record = (*cursor)->next();
    if (!record.ok()) {
      ended = record.status();
      break;
    }
    ASSERT_EQ(as_text((*record)->bytes), records_[i]);
  }
  EXPECT_CODE(kTruncated, ended);
  EXPECT_NE(ended.place().find("first available " + std::to_string(first)), std::string::npos) << ended.message();
  ASSERT_OK((*cursor)->seek(Sequence{first}));
  auto record = (*cursor)->next();
  ASSERT_OK(record);
  EXPECT_EQ((*record)->sequence.value, first);
}

TEST_P(Reading, ReadersBesideTruncationGetDataOrTruncatedNothingElse) {
  LogOptions options = small_log();
  options.index_stride = 16;
  auto log = open_log(fs_, options);
  ASSERT_NE(log, nullptr);
  fill(*log, 1500);
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (std::uint64_t t = 0; t < 2; ++t) {
    readers.emplace_back([&, t] {
      std::uint64_t at = t;
      while (!stop.load()) {
        at = (at * 5 + 131) % 1500;
        const std::uint64_t first = log->cursors().first.value;
        auto cursor = log->scan(Sequence{std::max(at, first)});
        if (!cursor.ok()) {
          EXPECT_CODE(kTruncated, cursor);
          continue;
        }
        for (int i = 0; i < 20; ++i) {
          auto record = (*cursor)->next();
          if (!record.ok()) {
            EXPECT_CODE(kTruncated, record);
            break;
          }
          if (!*record) break;
          ASSERT_EQ(as_text((*record)->bytes), records_[(*record)->sequence.value]);
        }
      }
    });
  }
  for (std::uint64_t to = 10; to < 1490; to += 10) {
    ASSERT_OK(log->truncate_before(Sequence{to}));
    std::this_thread::yield();
  }
  stop.store(true);
  for (std::thread& t : readers) t.join();
}

TEST_P(Reading, VerifyCountsASoundLog) {
  auto log = open_log(fs_, small_log());
  ASSERT_NE(log, nullptr);
  fill(*log, 300);
  std::uint64_t bytes = 0;
  for (const std::string& r : records_) bytes += r.size();
  auto verified = log->verify([](void*, const LogDamage& d) { ADD_FAILURE() << d.what; }, nullptr);
  ASSERT_OK(verified);
  EXPECT_EQ(verified->records, 300u);
  EXPECT_EQ(verified->bytes, bytes);
  EXPECT_EQ(verified->damages, 0u);
  EXPECT_EQ(verified->from.value, 0u);
  EXPECT_EQ(verified->to.value, 300u);
}

TEST(ReadingStatistics, SayWhatWasTakenAndWritten) {
  auto log = open_log(memory(), plain_log());
  ASSERT_NE(log, nullptr);
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_OK(log->append(record_of(i, 10)));
  ASSERT_OK(log->flush());
  const LogStatistics s = log->statistics();
  EXPECT_EQ(s.appends, 100u);
  EXPECT_EQ(s.append_bytes, 1000u);
  EXPECT_GE(s.blocks, 1u);
  EXPECT_EQ(s.block_bytes, 1400u + s.blocks * 96);
  EXPECT_GE(s.syncs, 1u);
}

}  // namespace
}  // namespace tier
