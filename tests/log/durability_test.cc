/// flush, wait_durable, on_durable, close: who is told what, and when. And poisoning: after a failed sync nothing more is
/// acknowledged (L6).
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

Deadline in(Duration d) { return Runtime::system().clock->in(d); }

/// A DurableOp that remembers how it ended.
struct Waiter {
  explicit Waiter(std::uint64_t sequence) {
    op.sequence = Sequence{sequence};
    op.context = this;
    op.done = [](DurableOp& o, Status s) {
      auto* self = static_cast<Waiter*>(o.context);
      self->status = s;
      self->calls.fetch_add(1, std::memory_order_release);  // publishes status
    };
  }
  bool done() const { return calls.load(std::memory_order_acquire) != 0; }
  void wait() const {
    while (!done()) std::this_thread::yield();
  }
  DurableOp op;
  Status status;
  std::atomic<int> calls{0};
};

/// A log that makes nothing durable by itself for a long time.
LogOptions lazy() {
  LogOptions o = plain_log(Durability::kBatch);
  o.batch_interval = 60s;
  o.batch_records = 1u << 20;
  return o;
}

TEST(Durable, InSyncModeAppendReturnsWhenItsRecordIsDurable) {
  auto log = open_log(memory(), plain_log(Durability::kSync));
  ASSERT_NE(log, nullptr);
  for (std::uint64_t i = 0; i < 50; ++i) {
    ASSERT_OK(log->append(record_of(i, 100)));
    ASSERT_GT(log->cursors().durable.value, i);
  }
}

TEST(Durable, AppendDurableIsDurableInEveryMode) {
  for (const Durability mode : {Durability::kSync, Durability::kBatch, Durability::kAsync}) {
    auto log = open_log(memory(), plain_log(mode));
    ASSERT_NE(log, nullptr);
    ASSERT_OK(log->append("earlier"));
    auto sequence = log->append_durable(as_bytes("now"));
    ASSERT_OK(sequence);
    EXPECT_EQ(sequence->value, 1u);
    EXPECT_EQ(log->cursors().durable.value, 2u);
  }
}

TEST(Durable, FlushMakesAllThatHasArrivedDurable) {
  for (const Durability mode : {Durability::kBatch, Durability::kAsync}) {
    auto log = open_log(memory(), plain_log(mode));
    ASSERT_NE(log, nullptr);
    ASSERT_OK(log->flush());  // nothing to do
    for (std::uint64_t i = 0; i < 1000; ++i) ASSERT_OK(log->append(record_of(i, 100)));
    ASSERT_OK(log->flush());
    const LogCursors c = log->cursors();
    EXPECT_EQ(c.durable.value, 1000u);
    EXPECT_EQ(c.committed.value, 1000u);
    EXPECT_EQ(c.claimed.value, 1000u);
  }
}

TEST(Durable, FlushBehindAnUnpublishedReservationTimesOutAndGoesOnAfterwards) {
  LogOptions options = plain_log();
  options.queue_full_timeout = 20ms;
  auto log = open_log(memory(), options);
  ASSERT_NE(log, nullptr);
  auto reservation = log->reserve(5);
  ASSERT_OK(reservation);
  ASSERT_OK(log->append("behind"));
  EXPECT_CODE(kTimedOut, log->flush());
  std::memcpy(reservation->bytes().data(), "there", 5);
  reservation->publish();
  ASSERT_OK(log->flush());
  EXPECT_EQ(log->cursors().durable.value, 2u);
}

TEST(Durable, TheBatchIntervalMakesRecordsDurableUnasked) {
  auto log = open_log(memory(), plain_log());
  ASSERT_NE(log, nullptr);
  ASSERT_OK(log->append("a"));
  ASSERT_OK(log->wait_durable(Sequence{1}));
}

TEST(Durable, TheBatchThresholdsMakeRecordsDurableUnasked) {
  LogOptions by_records = lazy();
  by_records.batch_records = 64;
  LogOptions by_bytes = lazy();
  by_bytes.batch_bytes = Bytes{64 * 104};
  for (const LogOptions& options : {by_records, by_bytes}) {
    auto log = open_log(memory(), options);
    ASSERT_NE(log, nullptr);
    for (std::uint64_t i = 0; i < 64; ++i) ASSERT_OK(log->append(record_of(i, 100)));
    ASSERT_OK(log->wait_durable(Sequence{64}));
  }
}

TEST(Durable, AnIdleAsyncLogMakesWhatIsLeftDurableByItself) {
  auto log = open_log(memory(), plain_log(Durability::kAsync));
  ASSERT_NE(log, nullptr);
  ASSERT_OK(log->append("a"));
  while (log->cursors().durable.value == 0) std::this_thread::yield();
}

TEST(Durable, WaitDurableAnswersAtOnceTimedOutOrInvalid) {
  auto log = open_log(memory(), lazy());
  ASSERT_NE(log, nullptr);
  ASSERT_OK(log->wait_durable(Sequence{0}, Deadline::now()));
  EXPECT_CODE(kInvalid, log->wait_durable(Sequence{1}));  // not handed out yet
  ASSERT_OK(log->append("a"));
  EXPECT_CODE(kTimedOut, log->wait_durable(Sequence{1}, in(5ms)));
  EXPECT_CODE(kTimedOut, log->wait_durable(Sequence{1}, Deadline::now()));
  ASSERT_OK(log->flush());
  ASSERT_OK(log->wait_durable(Sequence{1}, Deadline::now()));
}

TEST(Durable, WaitDurableStartsASyncInAsyncMode) {
  auto log = open_log(memory(), plain_log(Durability::kAsync));
  ASSERT_NE(log, nullptr);
  ASSERT_OK(log->append("a"));
  ASSERT_OK(log->wait_durable(Sequence{1}));
}

TEST(Durable, OnDurableIsDoneBeforeItReturnsWhenThereIsNothingToWaitFor) {
  auto log = open_log(memory(), lazy());
  ASSERT_NE(log, nullptr);
  Waiter none(0);
  log->on_durable(none.op);
  EXPECT_TRUE(none.done());
  EXPECT_OK(none.status);
  ASSERT_OK(log->append_durable(as_bytes("a")));
  Waiter already(1);
  log->on_durable(already.op);
  EXPECT_TRUE(already.done());
  EXPECT_OK(already.status);
}

TEST(Durable, OnDurableIsCalledOncePerOpWhenTheRecordBecomesDurable) {
  for (const Durability mode : {Durability::kSync, Durability::kBatch, Durability::kAsync}) {
    auto log = open_log(memory(), plain_log(mode));
    ASSERT_NE(log, nullptr);
    Waiter before(1), later(2);
    log->on_durable(later.op);  // of a record that does not exist yet
    log->on_durable(before.op);
    EXPECT_FALSE(before.done());
    ASSERT_OK(log->append("a"));
    ASSERT_OK(log->append("b"));
    ASSERT_OK(log->flush());
    before.wait();
    later.wait();
    EXPECT_OK(before.status);
    EXPECT_OK(later.status);
    log.reset();
    EXPECT_EQ(before.calls.load(), 1);
    EXPECT_EQ(later.calls.load(), 1);
  }
}

TEST(Durable, OnDurableAloneStartsASyncInAsyncMode) {
  auto log = open_log(memory(), plain_log(Durability::kAsync));
  ASSERT_NE(log, nullptr);
  ASSERT_OK(log->append("a"));
  Waiter waiter(1);
  log->on_durable(waiter.op);
  waiter.wait();
  EXPECT_OK(waiter.status);
}

TEST(Durable, CloseAnswersOpsThatCanNoLongerBeSatisfied) {
  auto log = open_log(memory(), lazy());
  ASSERT_NE(log, nullptr);
  ASSERT_OK(log->append("a"));
  Waiter satisfied(1), never(2), after(2), old(1);
  log->on_durable(satisfied.op);
  log->on_durable(never.op);
  EXPECT_EQ(log->close().outcome, CloseOutcome::kClean);
  ASSERT_TRUE(satisfied.done());
  EXPECT_OK(satisfied.status);
  ASSERT_TRUE(never.done());
  EXPECT_CODE(kClosing, never.status);
  log->on_durable(after.op);
  ASSERT_TRUE(after.done());
  EXPECT_CODE(kClosing, after.status);
  log->on_durable(old.op);
  ASSERT_TRUE(old.done());
  EXPECT_OK(old.status);
}

TEST(Close, DrainsReportsCleanAndIsIdempotent) {
  auto fs = memory();
  auto log = open_log(fs, lazy());
  ASSERT_NE(log, nullptr);
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_OK(log->append(record_of(i, 50)));
  for (int i = 0; i < 2; ++i) {
    const CloseReport report = log->close();
    EXPECT_EQ(report.outcome, CloseOutcome::kClean);
    EXPECT_OK(report.status);
    EXPECT_EQ(report.lost_records, 0u);
  }
  EXPECT_EQ(log->cursors().durable.value, 100u);
  auto again = open_log(fs, lazy());  // closing released the store
  ASSERT_NE(again, nullptr);
  EXPECT_TRUE(again->recovery().clean);
  EXPECT_EQ(again->recovery().scanned_bytes, 0u);
  EXPECT_EQ(again->recovery().to.value, 100u);
}

TEST(Close, AClosedLogAnswersClosingToEveryVerb) {
  auto log = open_log(memory(), plain_log());
  ASSERT_NE(log, nullptr);
  ASSERT_OK(log->append_durable(as_bytes("a")));
  auto cursor = log->scan(Sequence{0});
  ASSERT_OK(cursor);
  log->close();
  EXPECT_CODE(kClosing, log->append("b"));
  EXPECT_CODE(kClosing, log->append(std::string(200'000, 'x')));
  EXPECT_CODE(kClosing, log->append_durable(as_bytes("b")));
  const ByteSpan batch[] = {as_bytes("b")};
  EXPECT_CODE(kClosing, log->append_batch(batch));
  EXPECT_CODE(kClosing, log->reserve(1));
  EXPECT_CODE(kClosing, log->truncate_before(Sequence{1}));
  std::string text;
  EXPECT_CODE(kClosing, log->read(Sequence{0}, text));
  EXPECT_CODE(kClosing, (*cursor)->next());
  EXPECT_CODE(kClosing, log->verify(nullptr, nullptr));
  EXPECT_OK(log->flush());  // all that had arrived is durable
  EXPECT_OK(log->wait_durable(Sequence{1}));
}

TEST(Close, TimesOutBehindAnUnpublishedReservationAndCountsWhatIsLost) {
  auto fs = memory();
  auto log = open_log(fs, plain_log());
  ASSERT_NE(log, nullptr);
  ASSERT_OK(log->append_durable(as_bytes("kept")));
  {
    auto reservation = log->reserve(5);
    ASSERT_OK(reservation);
    ASSERT_OK(log->append("behind"));
    const CloseReport report = log->close(in(20ms));
    EXPECT_EQ(report.outcome, CloseOutcome::kTimedOut);
    EXPECT_CODE(kTimedOut, report.status);
    EXPECT_EQ(report.lost_records, 2u);
  }
  log.reset();
  log = open_log(fs, plain_log());
  ASSERT_NE(log, nullptr);
  EXPECT_FALSE(log->recovery().clean);
  expect_records(*log, {"kept"});
}

TEST(Close, TheDestructorClosesCleanly) {
  auto fs = memory();
  EXPECT_OK(open_log(fs, lazy())->append("a"));
  auto log = open_log(fs, lazy());
  ASSERT_NE(log, nullptr);
  EXPECT_TRUE(log->recovery().clean);
  expect_records(*log, {"a"});
}

class Poisoned : public ::testing::TestWithParam<Durability> {
 protected:
  std::shared_ptr<FileSystem> below_ = memory();
  std::shared_ptr<FaultFs> fs_ = FaultFs::make(below_);
};
INSTANTIATE_TEST_SUITE_P(Modes, Poisoned,
                         ::testing::Values(Durability::kSync, Durability::kBatch, Durability::kAsync),
                         mode_name);

TEST_P(Poisoned, AFailedSyncReachesEveryWaiterAndNothingIsAcknowledgedAfter) {
  fs_->hide(Capability::kMapping);
  LogOptions options = plain_log(GetParam());
  options.batch_interval = 60s;
  auto log = open_log(fs_, options);
  ASSERT_NE(log, nullptr);
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_OK(log->append_durable(as_bytes(record_of(i, 100))));
  Waiter early(11), late(500);
  log->on_durable(early.op);
  log->on_durable(late.op);
  fs_->add({.call = Call::kSync, .glob = "*.seg*", .count = 1, .error = EIO});
  std::vector<std::thread> threads;
  std::atomic<int> poisoned{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      const auto result = log->append_durable(as_bytes("lost"));
      if (result.code() == Code::kPoisoned) poisoned.fetch_add(1);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(poisoned.load(), 4);  // the file's next sync would succeed: it is never asked
  early.wait();
  late.wait();
  EXPECT_CODE(kPoisoned, early.status);
  EXPECT_CODE(kPoisoned, late.status);
  EXPECT_EQ(log->cursors().durable.value, 10u);

  EXPECT_CODE(kPoisoned, log->append("more"));
  EXPECT_CODE(kPoisoned, log->append(record_of(0, 300'000)));
  EXPECT_CODE(kPoisoned, log->reserve(1));
  EXPECT_CODE(kPoisoned, log->flush());
  EXPECT_CODE(kPoisoned, log->wait_durable(Sequence{11}));
  EXPECT_CODE(kPoisoned, log->truncate_before(Sequence{5}));
  EXPECT_OK(log->wait_durable(Sequence{10}));  // acknowledged before
  Waiter after(11), acknowledged(10);
  log->on_durable(after.op);
  EXPECT_CODE(kPoisoned, after.status);
  log->on_durable(acknowledged.op);
  ASSERT_TRUE(acknowledged.done());
  EXPECT_OK(acknowledged.status);
  std::string text;
  EXPECT_OK(log->read(Sequence{9}, text));  // reading goes on
  EXPECT_NE(log->append("x").status().message().find("reopen"), std::string::npos);
  const CloseReport report = log->close();
  EXPECT_EQ(report.outcome, CloseOutcome::kPartial);
  EXPECT_CODE(kPoisoned, report.status);
  EXPECT_GT(report.lost_records, 0u);
  log.reset();

  log = open_log(below_, plain_log());
  ASSERT_NE(log, nullptr);
  const ReadBack all = read_all(*log);
  EXPECT_OK(all.status);
  ASSERT_GE(all.records.size(), 10u);
  for (std::uint64_t i = 0; i < 10; ++i) EXPECT_EQ(all.records[i].second, record_of(i, 100));
  for (std::size_t i = 10; i < all.records.size(); ++i) EXPECT_EQ(all.records[i].second, "lost");
  ASSERT_OK(log->append_durable(as_bytes("works again")));
}

TEST_P(Poisoned, AFailedBlockWritePoisonsToo) {
  fs_->hide(Capability::kMapping);
  auto log = open_log(fs_, plain_log(GetParam()));
  ASSERT_NE(log, nullptr);
  ASSERT_OK(log->append_durable(as_bytes("kept")));
  fs_->add({.call = Call::kWrite, .glob = "*.seg*", .count = 1, .error = EIO, .short_bytes = 50});
  EXPECT_CODE(kPoisoned, log->append_durable(as_bytes("lost")));
  EXPECT_CODE(kPoisoned, log->append(record_of(3, 400'000)));
  log.reset();
  log = open_log(below_, plain_log());
  ASSERT_NE(log, nullptr);
  expect_records(*log, {"kept"});
}

TEST(PoisonedSync, ALostSyncLosesNothingThatWasAcknowledged) {
  // The disk drops what the failed sync was to write, as kernels do.
  auto below = memory();
  auto fs = FaultFs::make(below);
  fs->hide(Capability::kMapping);
  auto log = open_log(fs, plain_log(Durability::kSync));
  ASSERT_NE(log, nullptr);
  fs->add({.call = Call::kSync, .glob = "*.seg*", .skip = 5, .count = 1, .error = EIO, .drop_unsynced = true});
  std::vector<std::string> acknowledged;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const std::string record = record_of(i, 70);
    const auto result = log->append(record);
    if (!result.ok()) {
      EXPECT_CODE(kPoisoned, result);
      break;
    }
    acknowledged.push_back(record);
  }
  EXPECT_LT(acknowledged.size(), 100u);
  log.reset();
  log = open_log(below, plain_log(Durability::kSync));
  ASSERT_NE(log, nullptr);
  const ReadBack all = read_all(*log);
  EXPECT_OK(all.status);
  ASSERT_GE(all.records.size(), acknowledged.size());
  for (std::size_t i = 0; i < acknowledged.size(); ++i) EXPECT_EQ(all.records[i].second, acknowledged[i]);
}

}  // namespace
}  // namespace tier
