/// append, append_batch, reserve: what they take, what they refuse, and that every record comes back as it was, at once and
/// after a reopen. Method: each test runs on memory and on a local directory.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "testing/allocation_count.h"
#include "log/format.h"
#include "log/log_fixture.h"

namespace tier {
namespace {

using namespace testing;

class Append : public ::testing::TestWithParam<const char*> {
 protected:
  Append() : fs_(std::string_view(GetParam()) == "mem" ? memory() : open_fs(directory_.url())) {}
  std::unique_ptr<Log> open(const LogOptions& options) { return open_log(fs_, options); }
  void expect_after_reopen(std::unique_ptr<Log>& log, const LogOptions& options, const std::vector<std::string>& records) {
    expect_records(*log, records);
    EXPECT_EQ(log->close().outcome, CloseOutcome::kClean);
    log.reset();
    log = open(options);
    ASSERT_NE(log, nullptr);
    EXPECT_TRUE(log->recovery().clean);
    expect_records(*log, records);
  }

  TemporaryDirectory directory_;
  std::shared_ptr<FileSystem> fs_;
};

INSTANTIATE_TEST_SUITE_P(Places, Append, ::testing::Values("mem", "local"));

TEST_P(Append, SequencesStartAtZeroAndAreDenseAcrossReopens) {
  const LogOptions options = plain_log();
  std::uint64_t next = 0;
  for (int life = 0; life < 3; ++life) {
    auto log = open(options);
    ASSERT_NE(log, nullptr);
    EXPECT_EQ(log->recovery().created, life == 0);
    EXPECT_EQ(log->recovery().to.value, next);
    for (int i = 0; i < 10; ++i) {
      auto sequence = log->append(record_of(next, 20));
      ASSERT_OK(sequence);
      ASSERT_EQ(sequence->value, next++);
    }
  }
}

TEST_P(Append, RecordsOfEverySizeComeBackByteForByte) {
  LogOptions options = plain_log();
  options.ring_size = Bytes{256u << 10};
  options.batch_bytes = Bytes{64u << 10};
  // Around the quarter of the ring, over which a record is written from its caller's buffer, and up to the limit.
  const std::size_t inline_most = (256u << 10) / 4 - 4;
  std::vector<std::size_t> sizes = {0, 1, 3, 4, 7, 63, 64, 65, 127, 128, 255, 256, 257, 4095, 4096, 4097};
  for (std::size_t d = 0; d <= 8; ++d) sizes.push_back(inline_most - 4 + d);
  for (const std::size_t s : {std::size_t{300'000}, std::size_t{(1u << 20) - 1}, std::size_t{1u << 20}}) sizes.push_back(s);
  for (const std::size_t s : {0, 1, 1000}) sizes.push_back(static_cast<std::size_t>(s));
  auto log = open(options);
  ASSERT_NE(log, nullptr);
  std::vector<std::string> records;
  for (const std::size_t size : sizes) {
    records.push_back(record_of(records.size(), size));
    auto sequence = log->append(records.back());
    ASSERT_OK(sequence);
    ASSERT_EQ(sequence->value, records.size() - 1);
  }
  ASSERT_OK(log->flush());
  expect_after_reopen(log, options, records);
}

TEST_P(Append, ARecordOverTheLimitIsTooLargeWithSizeAndLimitAndTakesNoSequence) {
  LogOptions options = plain_log();
  options.max_record = Bytes{1000};
  auto log = open(options);
  ASSERT_NE(log, nullptr);
  ASSERT_OK(log->append(record_of(0, 1000)));
  const auto refused = log->append(record_of(1, 1001));
  EXPECT_CODE(kTooLarge, refused);
  EXPECT_NE(refused.status().message().find("1001"), std::string::npos) << refused.status().message();
  EXPECT_NE(refused.status().message().find("1000"), std::string::npos) << refused.status().message();
  EXPECT_CODE(kTooLarge, log->append_durable(as_bytes(record_of(1, 1001))));
  EXPECT_CODE(kTooLarge, log->reserve(1001));
  EXPECT_EQ(log->cursors().claimed.value, 1u);
}

TEST_P(Append, EmptyRecordsEverywhere) {
  const LogOptions options = small_log();
  auto log = open(options);
  ASSERT_NE(log, nullptr);
  std::vector<std::string> records;
  for (int i = 0; i < 3000; ++i) {
    records.emplace_back();
    ASSERT_OK(log->append(std::string_view{}));
  }
  const std::vector<ByteSpan> batch(100);
  ASSERT_OK(log->append_batch(batch));
  records.resize(records.size() + 100);
  {
    auto reservation = log->reserve(0);
    ASSERT_OK(reservation);
    EXPECT_TRUE(reservation->bytes().empty());
    reservation->publish();
  }
  records.emplace_back();
  ASSERT_OK(log->append_durable({}));
  records.emplace_back();
  expect_after_reopen(log, options, records);
}

TEST_P(Append, ABatchTakesConsecutiveSequencesAndComesBackWhole) {
  const LogOptions options = plain_log();
  auto log = open(options);
  ASSERT_NE(log, nullptr);
  std::vector<std::string> records;
  for (std::size_t n : {std::size_t{1}, std::size_t{2}, std::size_t{17}, std::size_t{500}}) {
    std::vector<std::string> batch;
    for (std::size_t i = 0; i < n; ++i) batch.push_back(record_of(records.size() + i, (i * 37) % 300));
    std::vector<ByteSpan> spans;
    for (const std::string& r : batch) spans.push_back(as_bytes(r));
    auto first = log->append_batch(spans);
    ASSERT_OK(first);
    EXPECT_EQ(first->value, records.size());
    records.insert(records.end(), batch.begin(), batch.end());
  }
  ASSERT_OK(log->flush());
  expect_after_reopen(log, options, records);
}

TEST_P(Append, ALargeBatchIsWrittenFromItsCallersBuffersAsOneBlock) {
  LogOptions options = plain_log();
  options.ring_size = Bytes{64u << 10};
  options.batch_bytes = Bytes{16u << 10};
  auto log = open(options);
  ASSERT_NE(log, nullptr);
  std::vector<std::string> records;
  std::vector<ByteSpan> spans;
  for (std::size_t i = 0; i < 40; ++i) records.push_back(record_of(i, 2000));
  for (const std::string& r : records) spans.push_back(as_bytes(r));
  ASSERT_OK(log->append_batch(spans));
  EXPECT_EQ(log->statistics().blocks, 1u);
  records.push_back(record_of(40, 5));
  ASSERT_OK(log->append(records.back()));
  ASSERT_OK(log->flush());
  expect_after_reopen(log, options, records);
}

TEST_P(Append, ABatchOverALimitIsRefusedWholeAndAnEmptyOneIsInvalid) {
  LogOptions options = small_log();
  auto log = open(options);
  ASSERT_NE(log, nullptr);
  EXPECT_CODE(kInvalid, log->append_batch({}));
  const std::string half = record_of(0, 513);
  const ByteSpan two[] = {as_bytes(half), as_bytes(half)};
  EXPECT_CODE(kTooLarge, log->append_batch(two));
  const std::vector<ByteSpan> many(4096 / 4 / 4 + 1);
  EXPECT_CODE(kTooLarge, log->append_batch(many));
  EXPECT_EQ(log->cursors().claimed.value, 0u);
  ASSERT_OK(log->append_batch(std::span(many).first(4096 / 4 / 4)));
  ASSERT_OK(log->flush());
  EXPECT_EQ(log->cursors().durable.value, 256u);
}

TEST_P(Append, AReservationIsFilledInPlaceAndPublished) {
  const LogOptions options = plain_log();
  auto log = open(options);
  ASSERT_NE(log, nullptr);
  const std::string a = record_of(0, 300), b = record_of(1, 44);
  auto first = log->reserve(300);
  auto second = log->reserve(44);
  ASSERT_OK(first);
  ASSERT_OK(second);
  EXPECT_EQ(first->sequence().value, 0u);
  EXPECT_EQ(second->sequence().value, 1u);
  ASSERT_EQ(first->bytes().size(), 300u);
  std::memcpy(second->bytes().data(), b.data(), b.size());
  second->publish();
  EXPECT_EQ(log->cursors().committed.value, 0u);  // not before the first
  std::memcpy(first->bytes().data(), a.data(), a.size());
  first->publish();
  first->publish();  // once is enough
  ASSERT_OK(log->flush());
  expect_after_reopen(log, options, {a, b});
}

TEST_P(Append, AnAbandonedReservationKeepsItsSequenceAndReadsAsVoid) {
  const LogOptions options = plain_log();
  auto log = open(options);
  ASSERT_NE(log, nullptr);
  ASSERT_OK(log->append("before"));
  {
    auto abandoned = log->reserve(10);
    ASSERT_OK(abandoned);
    std::memcpy(abandoned->bytes().data(), "half done", 9);
    Reservation moved = *std::move(abandoned);
    EXPECT_EQ(moved.sequence().value, 1u);
  }
  ASSERT_OK(log->append("after"));
  ASSERT_OK(log->flush());
  for (int life = 0; life < 2; ++life) {
    std::string text;
    EXPECT_CODE(kVoid, log->read(Sequence{1}, text));
    ASSERT_OK(log->read(Sequence{2}, text));
    EXPECT_EQ(text, "after");
    const ReadBack all = read_all(*log);
    EXPECT_OK(all.status);
    ASSERT_EQ(all.records.size(), 2u);
    EXPECT_EQ(all.records[1].first, 2u);
    EXPECT_EQ(capture(*fs_)["000000000000.seg"].find("half done"), std::string::npos);
    log.reset();
    log = open(options);
    ASSERT_NE(log, nullptr);
  }
}

TEST_P(Append, AReservationIsAtMostAQuarterOfTheRing) {
  LogOptions options = plain_log();
  options.ring_size = Bytes{64u << 10};
  options.batch_bytes = Bytes{16u << 10};
  auto log = open(options);
  ASSERT_NE(log, nullptr);
  EXPECT_CODE(kTooLarge, log->reserve((16u << 10) - 3));
  auto most = log->reserve((16u << 10) - 4);
  ASSERT_OK(most);
  most->publish();
  ASSERT_OK(log->flush());
}

/// Records of one size into segments so small that every way to meet their ends occurs.
class SegmentEnds : public ::testing::TestWithParam<Durability> {};
INSTANTIATE_TEST_SUITE_P(Modes, SegmentEnds,
                         ::testing::Values(Durability::kSync, Durability::kBatch, Durability::kAsync),
                         mode_name);

TEST_P(SegmentEnds, BlocksThatLeaveAnyRestRollIntoTheNextSegment) {
  // The second block starts at 64 * n; the rest behind it runs over 0 .. a header and a bit, in steps of one byte.
  for (std::size_t rest = 0; rest <= sizeof(log_format::BlockHeader) + 12; ++rest) {
    auto fs = memory();
    LogOptions options = small_log(GetParam());
    auto log = open_log(fs, options);
    ASSERT_NE(log, nullptr);
    std::vector<std::string> records;
    const auto add = [&](std::size_t size) {
      records.push_back(record_of(records.size(), size));
      ASSERT_OK(log->append_durable(as_bytes(records.back())));
    };
    for (int i = 0; i < 3; ++i) add(1024 - 64 - 100);  // ends at a multiple of 64, 4 below it
    const std::uint64_t end = log->engine().tails().committed.value;
    const std::uint64_t start = align_up(end, log_format::kBlockAlign);
    ASSERT_LT(start, 4096u - 1024u + 256u);
    const std::size_t left = 4096 - start - 100;
    ASSERT_GE(left, rest);
    std::size_t last = left - rest;
    if (last > 1024) {
      add(last - 1024 > 300 ? 300 : last - 1024);
      last = 4096 - align_up(log->engine().tails().committed.value, log_format::kBlockAlign) - 100 - rest;
    }
    add(last);
    EXPECT_EQ(log->engine().tails().committed.value, 4096 - rest) << "rest " << rest;
    add(1024);  // the largest record right behind a roll
    add(0);
    expect_records(*log, records);
    log.reset();
    log = open_log(fs, options);
    ASSERT_NE(log, nullptr);
    expect_records(*log, records);
    add(7);
    expect_records(*log, records);
  }
}

TEST_P(SegmentEnds, LongRunsOfEverySizeRollThroughManySegments) {
  for (const std::size_t size : {0u, 1u, 60u, 64u, 156u, 500u, 1023u, 1024u}) {
    auto fs = memory();
    const LogOptions options = small_log(GetParam());
    auto log = open_log(fs, options);
    ASSERT_NE(log, nullptr);
    std::vector<std::string> records;
    for (std::size_t i = 0; i < 200; ++i) {
      records.push_back(record_of(i, size));
      ASSERT_OK(log->append(records.back()));
      if (i % 23 == 0) {
        ASSERT_OK(log->flush());
      }
    }
    ASSERT_OK(log->flush());
    expect_records(*log, records);
    log.reset();
    log = open_log(fs, options);
    ASSERT_NE(log, nullptr);
    expect_records(*log, records);
  }
}

TEST(AppendCost, NoAllocationPerAppendInBatchAndAsync) {
  for (const Durability mode : {Durability::kBatch, Durability::kAsync}) {
    auto log = open_log(memory(), plain_log(mode));
    ASSERT_NE(log, nullptr);
    const std::string record = record_of(1, 300);
    const ByteSpan three[] = {as_bytes(record), as_bytes(record), {}};
    ASSERT_OK(log->append(record));
    const std::size_t before = allocation_count();
    bool ok = true;
    for (int i = 0; i < 2000; ++i) {
      ok &= log->append(as_bytes(record)).ok() && log->append_batch(three).ok();
      auto reservation = log->reserve(100);
      ok &= reservation.ok();
      if (reservation.ok()) {
        std::memset(reservation->bytes().data(), 1, 100);
        reservation->publish();
      }
    }
    EXPECT_EQ(allocation_count() - before, 0u) << durability_name(mode);
    EXPECT_TRUE(ok);
  }
}

TEST(AppendQueueFull, FailAnswersAtOnceAndTheRecordTakesNoSequence) {
  LogOptions options = small_log();
  options.queue_full = QueueFull::kFail;
  options.ring_size = Bytes{4096};
  options.batch_bytes = Bytes{1024};
  auto log = open_log(memory(), options);
  ASSERT_NE(log, nullptr);
  auto stopper = log->reserve(10);  // nothing behind it can be committed
  ASSERT_OK(stopper);
  Result<Sequence> refused = Sequence{0};
  std::uint64_t taken = 1;
  while ((refused = log->append(record_of(taken, 100))).ok()) ++taken;
  EXPECT_CODE(kQueueFull, refused);
  EXPECT_EQ(log->cursors().claimed.value, taken);
  EXPECT_GT(log->statistics().queue_full_waits, 0u);
  EXPECT_CODE(kQueueFull, log->reserve(100));
  stopper->publish();
  ASSERT_OK(log->flush());
  ASSERT_OK(log->append("goes on"));
}

TEST(AppendQueueFull, BlockWaitsUntilItsDeadlineThenAnswersQueueFull) {
  LogOptions options = small_log();
  options.queue_full_timeout = 20ms;
  options.ring_size = Bytes{4096};
  options.batch_bytes = Bytes{1024};
  auto log = open_log(memory(), options);
  ASSERT_NE(log, nullptr);
  auto stopper = log->reserve(10);
  ASSERT_OK(stopper);
  Result<Sequence> refused = Sequence{0};
  const std::uint64_t began = Runtime::system().clock->monotonic_ns();
  while ((refused = log->append(record_of(1, 100))).ok()) {
  }
  EXPECT_CODE(kQueueFull, refused);
  EXPECT_GE(Runtime::system().clock->monotonic_ns() - began, 20'000'000u);
  stopper->publish();
  ASSERT_OK(log->append("goes on"));
  ASSERT_OK(log->flush());
}

TEST(AppendQueueFull, BlockedAppendsGoOnWhenTheCommitterMakesRoom) {
  LogOptions options = small_log(Durability::kAsync, 64 << 10);
  options.ring_size = Bytes{4096};
  options.batch_bytes = Bytes{1024};
  auto log = open_log(memory(), options);
  ASSERT_NE(log, nullptr);
  std::vector<std::string> records;
  for (std::size_t i = 0; i < 5000; ++i) {
    records.push_back(record_of(i, i % 200));
    ASSERT_OK(log->append(records.back()));
  }
  ASSERT_OK(log->flush());
  expect_records(*log, records);
}

}  // namespace
}  // namespace tier
