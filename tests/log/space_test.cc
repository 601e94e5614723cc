/// A full disk: acknowledging stops, what was acknowledged stays, and all goes on by itself when space returns.
/// Method: memory with a quota; a ballast file is what takes and returns the space.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "log/log_fixture.h"

namespace tier {
namespace {

using namespace testing;

constexpr std::uint64_t kQuota = 2u << 20;

class DiskFull : public ::testing::TestWithParam<Durability> {
 protected:
  DiskFull() : fs_(memory(kQuota)) {}
  LogOptions options() const {
    LogOptions o = small_log(GetParam(), 64u << 10);
    o.max_record = Bytes{8u << 10};
    o.queue_full_timeout = 50ms;
    return o;
  }
  /// Takes all space but about `left` bytes.
  void take_space(std::uint64_t left) {
    const auto space = fs_->space();
    ASSERT_OK(space);
    auto file = fs_->open("ballast", {.write = true, .create = Create::kIfMissing});
    ASSERT_OK(file);
    const std::string chunk(4096, 'x');
    for (std::uint64_t at = 0; at + left < space->available; at += chunk.size())
      if (!(*file)->write_at(at, as_bytes(chunk)).ok()) break;
  }
  /// Appends until something is refused; returns it. What was acknowledged durable is in durable_.
  Status fill(Log& log) {
    for (;;) {
      const std::string record = record_of(next_, 3000);
      const auto sequence = log.append_durable(as_bytes(record));
      if (!sequence.ok()) {
        next_ = log.cursors().claimed.value;  // it may have been taken, only not acknowledged
        return sequence.status();
      }
      EXPECT_EQ(sequence->value, next_);
      ++next_;
      durable_ = next_;
    }
  }
  void expect_all(Log& log, std::uint64_t from = 0) {
    const ReadBack all = read_all(log, Sequence{from});
    EXPECT_OK(all.status);
    ASSERT_GE(from + all.records.size(), durable_);
    for (std::size_t i = 0; i < all.records.size(); ++i) ASSERT_EQ(all.records[i].second, record_of(from + i, 3000));
  }

  std::shared_ptr<FileSystem> fs_;
  std::uint64_t next_ = 0;
  std::uint64_t durable_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Modes, DiskFull,
                         ::testing::Values(Durability::kSync, Durability::kBatch, Durability::kAsync), mode_name);

TEST_P(DiskFull, AppendsAnswerDiskFullAndGoOnWhenAnotherFileGivesSpaceBack) {
  auto log = open_log(fs_, options());
  ASSERT_NE(log, nullptr);
  take_space(300u << 10);
  Status full;
  do {  // a claim may be refused for want of what is reserved ahead, and the next one still find room
    EXPECT_CODE(kDiskFull, fill(*log));
    full = log->flush();
  } while (full.ok());
  EXPECT_CODE(kDiskFull, full);
  EXPECT_CODE(kDiskFull, log->wait_durable(log->cursors().claimed, Runtime::system().clock->in(50ms)));
  Result<Sequence> refused = Sequence{0};
  do {  // until the ring is full, too
    next_ = log->cursors().claimed.value;
    refused = log->append(record_of(next_, 3000));
  } while (refused.ok() || log->cursors().claimed.value != next_);
  EXPECT_CODE(kDiskFull, refused);
  EXPECT_LT(log->cursors().durable, log->cursors().claimed);
  expect_all(*log);

  ASSERT_OK(fs_->remove("ballast"));
  Status healed;
  do {
    healed = log->flush();
  } while (healed.code() == Code::kDiskFull || healed.code() == Code::kTimedOut);
  ASSERT_OK(healed);
  EXPECT_EQ(log->cursors().durable, log->cursors().claimed);
  durable_ = next_;
  expect_all(*log);
  ASSERT_OK(log->append_durable(as_bytes(record_of(next_, 3000))));
  durable_ = ++next_;
  EXPECT_EQ(log->close().outcome, CloseOutcome::kClean);
  log.reset();
  log = open_log(fs_, options());
  ASSERT_NE(log, nullptr);
  EXPECT_EQ(log->recovery().to.value, next_);
  expect_all(*log);
}

TEST_P(DiskFull, TruncationGivesSpaceBackWhileTheDiskIsFull) {
  auto log = open_log(fs_, options());
  ASSERT_NE(log, nullptr);
  take_space(400u << 10);
  EXPECT_CODE(kDiskFull, fill(*log));
  ASSERT_GT(durable_, 40u);
  ASSERT_OK(log->truncate_before(Sequence{durable_ - 2}));
  Status healed;
  do {
    healed = log->flush();
  } while (healed.code() == Code::kDiskFull || healed.code() == Code::kTimedOut);
  ASSERT_OK(healed);
  expect_all(*log, log->cursors().first.value);
  ASSERT_OK(log->append_durable(as_bytes(record_of(next_, 3000))));
}

TEST_P(DiskFull, ClosingReportsWhatIsLostAndAReopenHasAllThatWasAcknowledged) {
  auto log = open_log(fs_, options());
  ASSERT_NE(log, nullptr);
  take_space(300u << 10);
  EXPECT_CODE(kDiskFull, fill(*log));
  const CloseReport report = log->close(Runtime::system().clock->in(30ms));
  EXPECT_EQ(report.outcome, CloseOutcome::kPartial);
  EXPECT_CODE(kDiskFull, report.status);
  EXPECT_GT(report.lost_records, 0u);
  log.reset();
  ASSERT_OK(fs_->remove("ballast"));
  log = open_log(fs_, options());
  ASSERT_NE(log, nullptr);
  EXPECT_FALSE(log->recovery().clean);
  expect_all(*log);
  next_ = log->cursors().claimed.value;
  ASSERT_OK(log->append_durable(as_bytes(record_of(next_, 3000))));
}

TEST_P(DiskFull, CreatingALogWithoutSpaceIsDiskFull) {
  take_space(4096);
  auto log = Log::open(fs_, "log", options());
  if (log.ok()) {  // it may fit until its first segment does not
    EXPECT_CODE(kDiskFull, (*log)->append_durable(as_bytes("a")));
  } else {
    EXPECT_CODE(kDiskFull, log);
  }
}

}  // namespace
}  // namespace tier
