/// The decorator that other tests trust: it fails what it is told to fail, and nothing else.
#include "testing/fault_fs.h"

#include <algorithm>
#include <set>

#include "fs/fs_fixture.h"

namespace tier::testing {
namespace {

std::shared_ptr<FaultFs> make(std::uint64_t seed = 1) { return FaultFs::make(open_fs_or_fail("mem:"), seed); }

TEST(FaultFs, PassesEverythingOnWithoutRules) {
  const auto fs = make();
  ASSERT_OK(fs->create_directory("d"));
  const auto file = open_or_fail(*fs, "d/f", kCreate);
  ASSERT_OK(file->write_at(0, pattern(100, 1).span()));
  ASSERT_OK(file->sync(SyncKind::kData));
  ASSERT_OK(file->allocate(0, 200));
  ASSERT_OK(file->punch(0, 10));
  ASSERT_OK(file->truncate(150));
  ASSERT_OK(file->mapping(0, 10));
  EXPECT_EQ(*file->size(), 150u);
  EXPECT_TRUE(same(read(*file, 10, 90).span(), pattern(100, 1).span().subspan(10)));
  ASSERT_OK(fs->rename("d/f", "d/g"));
  ASSERT_OK(fs->sync_directory("d"));
  EXPECT_EQ(fs->list("d")->size(), 1u);
  EXPECT_FALSE(*fs->locked("d/g"));
  ASSERT_OK(fs->space());
  ASSERT_OK(fs->stat("d/g"));
  ASSERT_OK(fs->remove("d/g"));
  for (std::size_t i = 0; i < kCalls; ++i)
    EXPECT_EQ(fs->calls(static_cast<Call>(i)), 1u) << call_name(static_cast<Call>(i));
  EXPECT_EQ(fs->calls(), kCalls);
  EXPECT_EQ(fs->fired(), 0u);
}

TEST(FaultFs, FailsTheKthMatchAsOftenAsAsked) {
  const auto fs = make();
  fs->add({.call = Call::kWrite, .glob = "*.log", .skip = 1, .count = 2, .error = ENOSPC});
  const auto log = open_or_fail(*fs, "a.log", kCreate);
  const auto other = open_or_fail(*fs, "a.txt", kCreate);
  const AlignedBuffer bytes = pattern(10);
  EXPECT_OK(other->write_at(0, bytes.span()));
  EXPECT_OK(log->write_at(0, bytes.span()));
  const Status s = log->write_at(7, bytes.span());
  EXPECT_CODE(Code::kDiskFull, s);
  EXPECT_EQ(s.system_errno(), ENOSPC);
  EXPECT_NE(s.message().find("a.log"), std::string::npos);
  EXPECT_NE(s.message().find("at 7"), std::string::npos);
  EXPECT_OK(other->write_at(0, bytes.span()));
  EXPECT_CODE(Code::kDiskFull, log->write_at(7, bytes.span()));
  EXPECT_OK(log->write_at(7, bytes.span()));
  EXPECT_EQ(*log->size(), 17u);
  EXPECT_EQ(fs->fired(), 2u);
}

TEST(FaultFs, StickyFailuresStayUntilCleared) {
  const auto fs = make();
  fs->add({.call = Call::kOpen, .count = FaultRule::kSticky, .error = EIO});
  for (int i = 0; i < 5; ++i) EXPECT_CODE(Code::kIo, fs->open("f", kCreate));
  EXPECT_TRUE(fs->below().list("")->empty());
  fs->clear();
  EXPECT_OK(fs->open("f", kCreate));
}

TEST(FaultFs, EveryKindOfCallCanFail) {
  for (std::size_t i = 0; i < kCalls; ++i) {
    const Call call = static_cast<Call>(i);
    const auto fs = make();
    ASSERT_OK(fs->create_directory("d"));
    const auto file = open_or_fail(*fs, "f", kCreate);
    ASSERT_OK(file->write_at(0, pattern(10).span()));
    ASSERT_NE(open_or_fail(*fs, "l", kCreate), nullptr);
    fs->add({.call = call, .count = FaultRule::kSticky, .error = EIO});
    std::set<Call> failed;
    const auto note = [&failed](Call c, const Status& s) {
      if (!s.ok()) failed.insert(c);
    };
    AlignedBuffer into = zeros(10);
    note(Call::kOpen, fs->open("f", {}).status());
    note(Call::kStat, fs->stat("f").status());
    note(Call::kList, fs->list("").status());
    note(Call::kCreateDirectory, fs->create_directory("e", NameSync::kNow));
    note(Call::kRename, fs->rename("d", "x", NameSync::kNow));
    note(Call::kRemove, fs->remove("f", NameSync::kNow));
    note(Call::kSyncDirectory, fs->sync_directory(""));
    note(Call::kSpace, fs->space().status());
    note(Call::kRead, file->read_at(0, into.span()).status());
    note(Call::kWrite, file->write_at(0, into.span()));
    note(Call::kAllocate, file->allocate(0, 10));
    note(Call::kPunch, file->punch(0, 10));
    note(Call::kTruncate, file->truncate(10));
    note(Call::kInfo, file->info().status());
    note(Call::kMapping, file->mapping(0, 10).status());
    note(Call::kSync, file->sync(SyncKind::kAll));
    note(Call::kLocked, fs->locked("l").status());
    EXPECT_EQ(failed, std::set<Call>{call}) << call_name(call);
  }
}

TEST(FaultFs, AShortWriteMovesItsFirstBytesAndFails) {
  const auto fs = make();
  fs->add({.call = Call::kWrite, .error = EIO, .short_bytes = 7});
  const auto file = open_or_fail(*fs, "f", kCreate);
  const AlignedBuffer bytes = pattern(20, 3);
  const ByteSpan parts[] = {bytes.span().first(5), bytes.span().subspan(5)};
  EXPECT_CODE(Code::kIo, file->write_at(0, parts));
  EXPECT_EQ(*file->size(), 7u);
  EXPECT_TRUE(same(read(*file, 0, 7).span(), bytes.span().first(7)));
}

TEST(FaultFs, AFailedSyncPoisonsTheFileAndCanLoseTheWrites) {
  const auto fs = make();
  auto file = open_or_fail(*fs, "f", kCreate);
  ASSERT_OK(file->write_at(0, pattern(100, 1).span()));
  fs->add({.call = Call::kSync, .skip = 1, .drop_unsynced = true});
  ASSERT_OK(file->sync(SyncKind::kData));
  ASSERT_OK(file->write_at(50, pattern(100, 2).span()));
  ASSERT_OK(file->write_at(0, pattern(60, 3).span()));
  EXPECT_CODE(Code::kIo, file->sync(SyncKind::kData));
  EXPECT_CODE(Code::kPoisoned, file->sync(SyncKind::kData));
  EXPECT_CODE(Code::kPoisoned, file->write_at(0, pattern(1).span()));
  EXPECT_CODE(Code::kPoisoned, file->truncate(0));
  file = open_or_fail(*fs, "f", kCreate);
  EXPECT_EQ(*file->size(), 100u);
  EXPECT_TRUE(same(read(*file, 0, 100).span(), pattern(100, 1).span()));
  EXPECT_OK(file->write_at(0, pattern(1).span()));
  EXPECT_OK(file->sync(SyncKind::kData));
}

TEST(FaultFs, TheSameSeedFailsTheSameCalls) {
  const auto run = [](std::uint64_t seed) {
    const auto fs = make(seed);
    fs->add({.call = Call::kWrite, .count = FaultRule::kSticky, .probability = 0.3});
    const auto file = open_or_fail(*fs, "f", kCreate);
    std::string outcome;
    for (int i = 0; i < 200; ++i) outcome += file->write_at(0, pattern(1).span()).ok() ? '.' : 'x';
    return outcome;
  };
  EXPECT_EQ(run(7), run(7));
  EXPECT_NE(run(7), run(8));
  const std::string one = run(7);
  const auto failures = std::count(one.begin(), one.end(), 'x');
  EXPECT_GT(failures, 20);
  EXPECT_LT(failures, 120);
}

TEST(FaultFs, ACapabilityCanBeHidden) {
  const auto fs = make();
  EXPECT_TRUE(fs->capabilities().has(Capability::kMapping));
  fs->hide(Capability::kMapping);
  EXPECT_FALSE(fs->capabilities().has(Capability::kMapping));
  const auto file = open_or_fail(*fs, "f", kCreate);
  ASSERT_OK(file->write_at(0, pattern(100).span()));
  EXPECT_CODE(Code::kUnsupported, file->mapping(0, 10));
}

TEST(FaultFs, OperationsInFlightFailToo) {
  const auto fs = make();
  const auto file = open_or_fail(*fs, "f", kCreate);
  fs->add({.call = Call::kWrite, .skip = 1});
  fs->add({.call = Call::kSync});
  const AlignedBuffer bytes = pattern(10);
  TestOp ops[4];
  for (TestOp& op : ops) {
    op.kind = IoOp::Kind::kWrite;
    op.from = bytes.span();
  }
  ops[2].kind = IoOp::Kind::kSync;
  for (TestOp& op : ops) file->start(op);
  for (TestOp& op : ops)
    while (!op.finished.load()) ASSERT_OK(fs->poll(Deadline::never()));
  EXPECT_OK(ops[0].status);
  EXPECT_CODE(Code::kIo, ops[1].status);
  EXPECT_CODE(Code::kIo, ops[2].status);
  EXPECT_CODE(Code::kPoisoned, ops[3].status);
}

}  // namespace
}  // namespace tier::testing
