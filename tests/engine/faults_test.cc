/// Goal: a full disk heals; a failed sync poisons for good; a failed write is reported and nothing else is lost.
#include "base/assert.h"
#include "engine_fixture.h"
#include "testing/fault_fs.h"

namespace tier::testing {
namespace {

EngineOptions small() {
  EngineOptions o;
  o.segment_size = 16_KiB;
  o.allow_small_segments = true;
  o.allocate_ahead = 16_KiB;
  o.create = Create::kIfMissing;
  return o;
}

TEST(EngineFaults, AFullDiskIsReportedAndHeals) {
  auto below = open_fs("mem:", 1 << 20);
  auto fs = FaultFs::make(below);
  auto engine = open_engine(fs, small());
  std::uint64_t end = 0;
  for (;;) {
    const auto at = engine->append(pattern(end, 4'000));
    if (!at.ok()) {
      EXPECT_CODE(kDiskFull, at);
      break;
    }
    end += 4'000;
    ASSERT_LT(end, 1u << 20);
  }
  EXPECT_GT(end, 300'000u);
  EXPECT_EQ(engine->tails().allocated.value, end) << "a failed claim moves no tail";
  EXPECT_EQ(engine->tails().committed.value, end);
  EXPECT_CODE(kDiskFull, engine->append(pattern(end, 16'000)));
  EXPECT_EQ(read_back(*engine, Address{0}, end), pattern(0, end));
  ASSERT_OK(engine->sync());
  ASSERT_OK(engine->reclaim_head(Address{200'000}));
  ASSERT_OK(engine->append(pattern(end, 16'000))) << "space has returned";
  EXPECT_EQ(read_back(*engine, Address{end}, 16'000), pattern(end, 16'000));
}

TEST(EngineFaults, AHugeAllocationFailsBeforeAnythingIsMade) {
  auto fs = open_fs("mem:", 1 << 20);
  auto engine = open_engine(fs, small());
  ASSERT_OK(engine->append(pattern(0, 10)));
  const auto files = engine->statistics().segments;
  EXPECT_CODE(kDiskFull, engine->allocate(Bytes{1ull << 30}));
  EXPECT_EQ(engine->tails().allocated.value, 10u);
  EXPECT_EQ(engine->statistics().segments, files);
}

TEST(EngineFaults, AFailedSyncPoisonsUntilReopen) {
  auto fs = FaultFs::make(open_fs("mem:"));
  auto engine = open_engine(fs, small());
  ASSERT_OK(engine->append(pattern(0, 100)));
  ASSERT_OK(engine->sync());
  ASSERT_OK(engine->append(pattern(100, 100)));
  fs->add({.call = Call::kSync, .glob = "*.seg*", .error = EIO});
  EXPECT_CODE(kIo, engine->sync());
  for (int i = 0; i < 2; ++i) {
    EXPECT_CODE(kPoisoned, engine->sync());
    EXPECT_CODE(kPoisoned, engine->append(pattern(200, 1)));
    EXPECT_CODE(kPoisoned, engine->allocate(1_B));
    EXPECT_CODE(kPoisoned, engine->write(Address{0}, pattern(0, 1)));
    EXPECT_CODE(kPoisoned, engine->reclaim_head(Address{50}));
    EXPECT_CODE(kPoisoned, engine->reclaim_tail(Address{50}));
    EXPECT_CODE(kPoisoned, engine->put_owner_data({}));
  }
  EXPECT_EQ(engine->tails().durable.value, 100u) << "nothing above is ever reported durable";
  EXPECT_EQ(read_back(*engine, Address{0}, 200), pattern(0, 200)) << "reads go on";
  EXPECT_CODE(kPoisoned, engine->close());
  engine.reset();
  engine = open_engine(fs, small());
  EXPECT_FALSE(engine->recovered().clean);
  EXPECT_EQ(read_back(*engine, Address{0}, 100), pattern(0, 100));
  ASSERT_OK(engine->append(pattern(0, 10)));
}

TEST(EngineFaults, AFailedSyncOfTheManifestPoisonsToo) {
  auto fs = FaultFs::make(open_fs("mem:"));
  auto engine = open_engine(fs, small());
  fs->add({.call = Call::kSync, .glob = "*MANIFEST", .error = EIO});
  EXPECT_CODE(kPoisoned, engine->put_owner_data(pattern(0, 5)));
  EXPECT_CODE(kPoisoned, engine->append(pattern(0, 5)));
  engine.reset();
  engine = open_engine(fs, small());
  EXPECT_OK(engine->append(pattern(0, 5)));
}

TEST(EngineFaults, AFailedWriteIsReportedAndTheNextSucceeds) {
  auto fs = FaultFs::make(open_fs("mem:"));
  fs->hide(Capability::kMapping);
  auto engine = open_engine(fs, small());
  ASSERT_OK(engine->append(pattern(0, 100)));
  fs->add({.call = Call::kWrite, .glob = "*.seg*", .error = EIO});
  EXPECT_CODE(kIo, engine->append(pattern(100, 100)));
  EXPECT_EQ(engine->tails().committed.value, 200u) << "a claim is never undone";
  ASSERT_OK(engine->append(pattern(200, 100)));
  EXPECT_EQ(read_back(*engine, Address{200}, 100), pattern(200, 100));
  fs->add({.call = Call::kRead, .glob = "*.seg*", .error = EIO});
  std::byte byte{};
  EXPECT_CODE(kIo, engine->read(Address{0}, {&byte, 1}));
  EXPECT_OK(engine->read(Address{0}, {&byte, 1}));
}

TEST(EngineFaults, ASegmentThatCannotBeMadeFailsTheClaimAndIsTriedAgain) {
  for (const Call call : {Call::kOpen, Call::kTruncate, Call::kWrite, Call::kAllocate, Call::kRename}) {
    auto fs = FaultFs::make(open_fs("mem:"));
    EngineOptions o = small();
    o.prepared_segments = 0;
    auto engine = open_engine(fs, o);
    ASSERT_OK(engine->append(pattern(0, 16 << 10)));
    fs->add({.call = call, .glob = "*000000000001.seg*", .count = 1, .error = EIO});
    EXPECT_CODE(kIo, engine->append(pattern(0, 1))) << call_name(call);
    EXPECT_EQ(engine->tails().allocated.value, 16u << 10);
    EXPECT_OK(engine->append(pattern(16 << 10, 100))) << call_name(call);
    EXPECT_EQ(read_back(*engine, Address{16 << 10}, 100), pattern(16 << 10, 100));
  }
}

TEST(EngineFaults, EveryFailingCallOfAnOpenLeavesAStoreThatOpensLater) {
  auto below = open_fs("mem:");
  {
    auto engine = open_engine(below, small());
    ASSERT_OK(engine->append(pattern(0, 40'000)));
    ASSERT_OK(engine->sync());
  }
  for (std::size_t kind = 0; kind < kCalls; ++kind) {
    for (std::uint64_t skip = 0; skip < 40; ++skip) {
      auto fs = FaultFs::make(below);
      fs->add({.call = static_cast<Call>(kind), .skip = skip, .error = EIO});
      { const auto engine = Engine::open(fs, "store", small()); }
      if (fs->fired() == 0) break;
      auto engine = open_engine(below, small());
      ASSERT_NE(engine, nullptr) << call_name(static_cast<Call>(kind)) << " " << skip;
      ASSERT_EQ(engine->tails().committed.value, 40'000u);
      ASSERT_EQ(read_back(*engine, Address{0}, 40'000), pattern(0, 40'000));
    }
  }
}

}  // namespace
}  // namespace tier::testing
