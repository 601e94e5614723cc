/// Goal: every verb of Engine does what tier/engine.h says, on memory and on a directory, in each mode.
/// Method: one suite, run for each file system and mode; small segments, so that ranges cross them.
#include <algorithm>
#include <cstring>

#include "engine_fixture.h"

namespace tier::testing {
namespace {

struct Place {
  const char* name;
  const char* scheme;
  FileMode mode;
  bool zero_ahead = false;
};

class EngineVerbs : public ::testing::TestWithParam<Place> {
 protected:
  void SetUp() override {
    const std::string url = GetParam().scheme == std::string("mem") ? "mem:" : "local://" + directory_.path();
    fs_ = open_fs(url);
    ASSERT_NE(fs_, nullptr);
  }
  EngineOptions options(TailPolicy policy = TailPolicy::kManaged) const {
    EngineOptions o;
    o.segment_size = 4_KiB;
    o.allow_small_segments = true;
    o.allocate_ahead = 8_KiB;
    o.mode = GetParam().mode;
    o.zero_ahead = GetParam().zero_ahead;
    o.tail_policy = policy;
    o.create = Create::kIfMissing;
    o.claim_timeout = std::chrono::seconds(20);
    return o;
  }

  TemporaryDirectory directory_;
  std::shared_ptr<FileSystem> fs_;
};

TEST_P(EngineVerbs, AppendsComeBackAndCrossSegments) {
  auto engine = open_engine(fs_, options());
  ASSERT_NE(engine, nullptr);
  EXPECT_TRUE(engine->recovered().created);
  std::uint64_t at = 0;
  for (std::size_t n : {1u, 17u, 4000u, 4096u, 10'000u, 3u}) {
    const auto bytes = pattern(at, n);
    const auto address = engine->append(bytes);
    ASSERT_OK(address);
    EXPECT_EQ(address->value, at);
    at += n;
  }
  const Tails t = engine->tails();
  EXPECT_EQ(t.begin.value, 0u);
  EXPECT_EQ(t.durable.value, 0u);
  EXPECT_EQ(t.committed.value, at);
  EXPECT_EQ(t.allocated.value, at);
  EXPECT_EQ(read_back(*engine, Address{0}, at), pattern(0, at));
  EXPECT_OK(engine->sync());
  EXPECT_EQ(engine->tails().durable.value, at);
  EXPECT_EQ(engine->statistics().appended, at);
}

TEST_P(EngineVerbs, AllocatedBytesReadZeroUntilWritten) {
  auto engine = open_engine(fs_, options());
  ASSERT_OK(engine->append(pattern(0, 100)));
  const auto at = engine->allocate(20'000_B);
  ASSERT_OK(at);
  EXPECT_EQ(at->value, 100u);
  EXPECT_EQ(engine->tails().committed.value, 20'100u);
  const auto zeros = read_back(*engine, *at, 20'000);
  EXPECT_TRUE(std::all_of(zeros.begin(), zeros.end(), [](std::byte b) { return b == std::byte{0}; }));
  ASSERT_OK(engine->write(Address{5'000}, pattern(5'000, 9'000, 7)));
  EXPECT_EQ(read_back(*engine, Address{5'000}, 9'000), pattern(5'000, 9'000, 7));
  EXPECT_EQ(read_back(*engine, Address{0}, 100), pattern(0, 100));
}

TEST_P(EngineVerbs, ClaimsAlignSkipAndPublishInOrder) {
  auto engine = open_engine(fs_, options());
  ASSERT_OK(engine->append(pattern(0, 10)));
  auto first = engine->claim(100_B, {.alignment = 64});
  ASSERT_OK(first);
  EXPECT_EQ(first->address().value, 64u);
  auto second = engine->claim(4000_B, {.one_segment = true});
  ASSERT_OK(second);
  EXPECT_EQ(second->address().value, 4096u) << "it does not fit the first segment any more";
  const auto bytes = pattern(4096, 4000);
  const ByteSpan parts[] = {ByteSpan(bytes).first(1000), ByteSpan(bytes).subspan(1000)};
  ASSERT_OK(second->write(Bytes{0}, parts));
  second->commit();
  EXPECT_FALSE(second->active());
  EXPECT_EQ(engine->tails().committed.value, 10u) << "the first claim is still out";
  EXPECT_EQ(engine->tails().allocated.value, 8096u);
  const auto early = pattern(64, 100);
  const ByteSpan early_part(early);
  ASSERT_OK(first->write(Bytes{0}, {&early_part, 1}));
  first->commit();
  EXPECT_EQ(engine->tails().committed.value, 8096u);
  EXPECT_EQ(read_back(*engine, Address{64}, 100), early);
  EXPECT_EQ(read_back(*engine, Address{4096}, 4000), bytes);
  const auto skipped = read_back(*engine, Address{164}, 4096 - 164);
  EXPECT_TRUE(std::all_of(skipped.begin(), skipped.end(), [](std::byte b) { return b == std::byte{0}; }));
}

TEST_P(EngineVerbs, ADroppedLeaseHoldsNothingBack) {
  auto engine = open_engine(fs_, options());
  { auto lease = engine->claim(500_B); ASSERT_OK(lease); }
  EXPECT_EQ(engine->tails().committed.value, 500u);
  ASSERT_OK(engine->append(pattern(500, 20)));
  EXPECT_EQ(read_back(*engine, Address{500}, 20), pattern(500, 20));
}

TEST_P(EngineVerbs, ALeaseRefusesMoreThanItClaimed) {
  auto engine = open_engine(fs_, options());
  auto lease = engine->claim(10_B);
  ASSERT_OK(lease);
  const auto bytes = pattern(0, 11);
  const ByteSpan part(bytes);
  EXPECT_CODE(kInvalid, lease->write(Bytes{0}, {&part, 1}));
  const ByteSpan fits = part.first(10);
  EXPECT_CODE(kInvalid, lease->write(Bytes{1}, {&fits, 1}));
  EXPECT_CODE(kInvalid, lease->write(Bytes{~std::uint64_t{0}}, {&fits, 1}));
  EXPECT_OK(lease->write(Bytes{0}, {&fits, 1}));
  lease->commit();
  EXPECT_CODE(kInvalid, lease->write(Bytes{0}, {&fits, 1})) << "it has ended";
}

TEST_P(EngineVerbs, RangesOutsideAreRefusedAndChangeNothing) {
  auto engine = open_engine(fs_, options());
  ASSERT_OK(engine->append(pattern(0, 5000)));
  std::byte byte{};
  EXPECT_CODE(kNotFound, engine->read(Address{5000}, {&byte, 1}));
  EXPECT_CODE(kNotFound, engine->read(Address{Address::kMax}, {&byte, 1}));
  EXPECT_CODE(kNotFound, engine->write(Address{4999}, pattern(0, 2)));
  EXPECT_CODE(kNotFound, engine->view(Address{4999}, 2_B));
  EXPECT_CODE(kNotFound, engine->view(Address{1}, Bytes{~std::uint64_t{0}}));
  EXPECT_CODE(kInvalid, engine->append({}));
  EXPECT_CODE(kInvalid, engine->allocate(0_B));
  EXPECT_CODE(kTooLarge, engine->allocate(Bytes{std::uint64_t{1} << 48}));
  EXPECT_CODE(kTooLarge, engine->allocate(Bytes{~std::uint64_t{0}}));
  EXPECT_CODE(kTooLarge, engine->claim(4097_B, {.one_segment = true}));
  EXPECT_CODE(kInvalid, engine->claim(1_B, {.alignment = 3}));
  EXPECT_CODE(kInvalid, engine->claim(1_B, {.alignment = 8192}));
  EXPECT_CODE(kInvalid, engine->reclaim_head(Address{1})) << "nothing is durable yet";
  EXPECT_CODE(kNotFound, engine->reclaim_tail(Address{5001}));
  EXPECT_CODE(kTooLarge, engine->put_owner_data(pattern(0, 1025)));
  EXPECT_EQ(engine->tails().allocated.value, 5000u);
  EXPECT_OK(engine->read(Address{0}, {}));
  EXPECT_OK(engine->write(Address{0}, {}));
}

TEST_P(EngineVerbs, ViewsShowTheBytesAndStayAfterTruncation) {
  auto engine = open_engine(fs_, options());
  ASSERT_OK(engine->append(pattern(0, 10'000)));
  ASSERT_OK(engine->sync());
  auto inside = engine->view(Address{100}, 200_B);
  ASSERT_OK(inside);
  auto across = engine->view(Address{4000}, 3000_B);
  ASSERT_OK(across);
  EXPECT_FALSE(across->zero_copy());
  EXPECT_TRUE(std::ranges::equal(inside->bytes(), pattern(100, 200)));
  EXPECT_TRUE(std::ranges::equal(across->bytes(), pattern(4000, 3000)));
  ASSERT_OK(engine->reclaim_head(Address{9000}));
  EXPECT_TRUE(std::ranges::equal(inside->bytes(), pattern(100, 200)));
  EXPECT_CODE(kTruncated, engine->view(Address{100}, 200_B));
  View moved = *std::move(inside);
  EXPECT_TRUE(std::ranges::equal(moved.bytes(), pattern(100, 200)));
  engine.reset();
  EXPECT_TRUE(std::ranges::equal(moved.bytes(), pattern(100, 200)));
}

TEST_P(EngineVerbs, APartlyTruncatedSegmentKeepsWhatAViewHolds) {
  EngineOptions o = options();
  o.segment_size = 64_KiB;
  auto engine = open_engine(fs_, o);
  ASSERT_OK(engine->append(pattern(0, 40'000)));
  ASSERT_OK(engine->sync());
  {
    auto view = engine->view(Address{0}, 8192_B);
    ASSERT_OK(view);
    ASSERT_OK(engine->reclaim_head(Address{20'000}));
    EXPECT_TRUE(std::ranges::equal(view->bytes(), pattern(0, 8192)));
  }
  ASSERT_OK(engine->reclaim_head(Address{20'000})) << "again: the space goes now";
  EXPECT_CODE(kTruncated, engine->view(Address{0}, 1_B));
  EXPECT_EQ(read_back(*engine, Address{20'000}, 20'000), pattern(20'000, 20'000));
}

TEST_P(EngineVerbs, ReclaimHeadRemovesWholeSegmentsDurably) {
  {
    auto engine = open_engine(fs_, options());
    ASSERT_OK(engine->append(pattern(0, 20'000)));
    ASSERT_OK(engine->sync());
    ASSERT_OK(engine->reclaim_head(Address{9'000}));
    EXPECT_EQ(engine->tails().begin.value, 9'000u);
    std::byte byte{};
    EXPECT_CODE(kTruncated, engine->read(Address{8'999}, {&byte, 1}));
    EXPECT_CODE(kTruncated, engine->write(Address{8'999}, {&byte, 1}));
    EXPECT_CODE(kNotFound, fs_->stat("store/000000000000.seg"));
    EXPECT_CODE(kNotFound, fs_->stat("store/000000000001.seg"));
    EXPECT_OK(fs_->stat("store/000000000002.seg"));
    EXPECT_EQ(read_back(*engine, Address{9'000}, 11'000), pattern(9'000, 11'000));
    ASSERT_OK(engine->reclaim_head(Address{100})) << "below begin: nothing to do";
    ASSERT_OK(engine->close());
  }
  auto engine = open_engine(fs_, options());
  EXPECT_EQ(engine->tails().begin.value, 9'000u);
  EXPECT_EQ(engine->tails().committed.value, 20'000u);
  EXPECT_EQ(read_back(*engine, Address{9'000}, 11'000), pattern(9'000, 11'000));
  ASSERT_OK(engine->reclaim_head(Address{20'000}));
  EXPECT_EQ(engine->tails().begin.value, 20'000u);
  ASSERT_OK(engine->append(pattern(20'000, 5'000)));
  EXPECT_EQ(read_back(*engine, Address{20'000}, 5'000), pattern(20'000, 5'000));
}

TEST_P(EngineVerbs, EverythingCanBeGivenUpAtASegmentBoundary) {
  EngineOptions o = options();
  o.prepared_segments = 0;
  {
    auto engine = open_engine(fs_, o);
    ASSERT_OK(engine->append(pattern(0, 8192)));
    ASSERT_OK(engine->sync());
    ASSERT_OK(engine->reclaim_head(Address{8192}));
    EXPECT_EQ(engine->statistics().segments, 0u);
    ASSERT_OK(engine->close(5));
  }
  auto engine = open_engine(fs_, o);
  EXPECT_TRUE(engine->recovered().clean);
  EXPECT_EQ(engine->recovered().clean_mark.value, 5u);
  EXPECT_EQ(engine->tails().begin.value, 8192u);
  ASSERT_OK(engine->append(pattern(8192, 100)));
  EXPECT_EQ(read_back(*engine, Address{8192}, 100), pattern(8192, 100));
}

TEST_P(EngineVerbs, ReclaimTailErasesAndRaisesTheEpoch) {
  auto engine = open_engine(fs_, options());
  ASSERT_OK(engine->append(pattern(0, 30'000)));
  ASSERT_OK(engine->sync());
  const std::uint32_t epoch = engine->epoch();
  for (const std::uint64_t to : {25'000u, 12'288u, 12'287u, 5'000u}) {
    ASSERT_OK(engine->reclaim_tail(Address{to}));
    const Tails t = engine->tails();
    EXPECT_EQ(t.durable.value, to);
    EXPECT_EQ(t.committed.value, to);
    EXPECT_EQ(t.allocated.value, to);
  }
  EXPECT_EQ(engine->epoch(), epoch + 4);
  EXPECT_EQ(read_back(*engine, Address{0}, 5'000), pattern(0, 5'000));
  const auto at = engine->allocate(20'000_B);
  ASSERT_OK(at);
  const auto zeros = read_back(*engine, *at, 20'000);
  EXPECT_TRUE(std::all_of(zeros.begin(), zeros.end(), [](std::byte b) { return b == std::byte{0}; }))
      << "what was cut must not come back";
}

TEST_P(EngineVerbs, ReclaimTailWaitsForLeases) {
  EngineOptions o = options();
  o.claim_timeout = std::chrono::milliseconds(20);
  auto engine = open_engine(fs_, o);
  while (engine->append(pattern(0, 100)).code() == Code::kTimedOut) {  // until the first segment is there
  }
  auto lease = engine->claim(10_B);
  ASSERT_OK(lease);
  EXPECT_CODE(kBusy, engine->reclaim_tail(Address{50}));
  EXPECT_CODE(kTimedOut, engine->close());
  EXPECT_EQ(engine->tails().allocated.value, 110u);
  ASSERT_OK(engine->append(pattern(110, 10))) << "appends go on, for their space is there already";
  lease->commit();
  ASSERT_OK(engine->reclaim_tail(Address{50}));
  EXPECT_EQ(engine->tails().committed.value, 50u);
}

TEST_P(EngineVerbs, CloseKeepsTheExactTailAndItsValue) {
  std::uint64_t id = 0;
  std::uint32_t epoch = 0;
  {
    auto engine = open_engine(fs_, options());
    id = engine->store_id();
    epoch = engine->epoch();
    ASSERT_OK(engine->append(pattern(0, 7'777)));
    ASSERT_OK(engine->put_owner_data(pattern(1, 1024)));
    ASSERT_OK(engine->close(42));
    EXPECT_OK(engine->close(43)) << "idempotent";
    EXPECT_CODE(kClosing, engine->append(pattern(0, 1)));
    std::byte byte{};
    EXPECT_CODE(kClosing, engine->read(Address{0}, {&byte, 1}));
    EXPECT_CODE(kClosing, engine->sync());
  }
  auto engine = open_engine(fs_, options());
  EXPECT_EQ(engine->store_id(), id);
  EXPECT_GT(engine->epoch(), epoch);
  EXPECT_FALSE(engine->recovered().created);
  EXPECT_TRUE(engine->recovered().clean);
  EXPECT_EQ(engine->recovered().clean_mark.address.value, 7'777u);
  EXPECT_EQ(engine->recovered().clean_mark.value, 42u);
  EXPECT_EQ(engine->tails().durable.value, 7'777u);
  EXPECT_TRUE(std::ranges::equal(engine->owner_data(), pattern(1, 1024)));
  EXPECT_EQ(read_back(*engine, Address{0}, 7'777), pattern(0, 7'777));
  ASSERT_OK(engine->put_owner_data(pattern(2, 3)));
  EXPECT_TRUE(std::ranges::equal(engine->owner_data(), pattern(2, 3)));
}

TEST_P(EngineVerbs, AnUncleanStopKeepsWhatWasSyncedAndErasesTheRest) {
  {
    auto engine = open_engine(fs_, options());
    ASSERT_OK(engine->append(pattern(0, 6'000)));
    ASSERT_OK(engine->sync());
    ASSERT_OK(engine->append(pattern(6'000, 6'000)));
  }
  auto engine = open_engine(fs_, options());
  EXPECT_FALSE(engine->recovered().clean);
  EXPECT_TRUE(engine->recovered().has_mark);
  EXPECT_EQ(engine->recovered().mark.address.value, 6'000u);
  EXPECT_EQ(engine->tails().committed.value, 6'000u);
  EXPECT_EQ(read_back(*engine, Address{0}, 6'000), pattern(0, 6'000));
  const auto at = engine->allocate(6'000_B);
  ASSERT_OK(at);
  const auto zeros = read_back(*engine, *at, 6'000);
  EXPECT_TRUE(std::all_of(zeros.begin(), zeros.end(), [](std::byte b) { return b == std::byte{0}; }));
}

TEST_P(EngineVerbs, TheCallerFindsItsOwnTail) {
  {
    auto engine = open_engine(fs_, options(TailPolicy::kCaller));
    EXPECT_CODE(kNotReady, engine->append(pattern(0, 1)));
    EXPECT_CODE(kNotReady, engine->sync());
    EXPECT_CODE(kNotReady, engine->put_owner_data(pattern(0, 1)));
    ASSERT_OK(engine->reclaim_tail(Address{0}));
    ASSERT_OK(engine->append(pattern(0, 10'000)));
    ASSERT_OK(engine->put_mark({.address = Address{3'000}, .value = 30}));
    ASSERT_OK(engine->put_mark({.address = Address{9'000}, .value = 90}));
    EXPECT_CODE(kInvalid, engine->put_mark({.address = Address{10'001}}));
    ASSERT_OK(engine->sync());
    const auto low = engine->mark_in(Address{100});
    ASSERT_OK(low);
    EXPECT_EQ(low->address.value, 3'000u);
    EXPECT_EQ(low->value, 30u);
    EXPECT_EQ(low->epoch, engine->epoch());
    EXPECT_CODE(kNotFound, engine->mark_in(Address{5'000}));
  }
  auto engine = open_engine(fs_, options(TailPolicy::kCaller));
  EXPECT_FALSE(engine->recovered().clean);
  ASSERT_TRUE(engine->recovered().has_mark);
  EXPECT_EQ(engine->recovered().mark.value, 90u);
  EXPECT_GE(engine->recovered().end_of_segments.value, 10'000u);
  EXPECT_EQ(read_back(*engine, Address{0}, 10'000), pattern(0, 10'000)) << "read during recovery";
  EXPECT_OK(engine->mark_in(Address{0}));
  ASSERT_OK(engine->reclaim_tail(Address{10'000}));
  ASSERT_OK(engine->append(pattern(10'000, 10)));
  EXPECT_EQ(read_back(*engine, Address{10'000}, 10), pattern(10'000, 10));
}

TEST_P(EngineVerbs, CuttingBelowAMarkForgetsIt) {
  {
    auto engine = open_engine(fs_, options(TailPolicy::kCaller));
    ASSERT_OK(engine->reclaim_tail(Address{0}));
    ASSERT_OK(engine->append(pattern(0, 4'000)));
    ASSERT_OK(engine->put_mark({.address = Address{1'000}, .value = 1}));
    ASSERT_OK(engine->sync());
    ASSERT_OK(engine->put_mark({.address = Address{3'000}, .value = 3}));
    ASSERT_OK(engine->sync());
    ASSERT_OK(engine->reclaim_tail(Address{2'000}));
    const auto mark = engine->mark_in(Address{0});
    ASSERT_OK(mark);
    EXPECT_EQ(mark->value, 1u);
    ASSERT_OK(engine->reclaim_tail(Address{500}));
    EXPECT_CODE(kNotFound, engine->mark_in(Address{0}));
    ASSERT_OK(engine->append(pattern(500, 3'500)));
    ASSERT_OK(engine->sync());
  }
  auto engine = open_engine(fs_, options(TailPolicy::kCaller));
  EXPECT_FALSE(engine->recovered().has_mark) << "a mark of what was cut must not come back";
  EXPECT_EQ(engine->recovered().cut.value, 500u);
}

TEST_P(EngineVerbs, AReaderBesideTheOwnerFollows) {
  auto owner = open_engine(fs_, options());
  ASSERT_OK(owner->append(pattern(0, 5'000)));
  ASSERT_OK(owner->sync());
  EngineOptions o = options();
  o.create = Create::kNever;
  o.read_only = true;
  auto reader = open_engine(fs_, o);
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ(reader->tails().committed.value, 5'000u);
  EXPECT_EQ(read_back(*reader, Address{0}, 5'000), pattern(0, 5'000));
  EXPECT_CODE(kAccess, reader->append(pattern(0, 1)));
  EXPECT_CODE(kAccess, reader->reclaim_tail(Address{0}));
  EXPECT_CODE(kAccess, reader->reclaim_head(Address{0}));
  EXPECT_CODE(kAccess, reader->put_owner_data(pattern(0, 1)));
  EXPECT_CODE(kAccess, reader->sync());

  ASSERT_OK(owner->append(pattern(5'000, 20'000)));
  ASSERT_OK(owner->sync());
  ASSERT_OK(reader->refresh());
  EXPECT_EQ(reader->tails().committed.value, 25'000u);
  EXPECT_EQ(read_back(*reader, Address{4'000}, 21'000), pattern(4'000, 21'000));

  ASSERT_OK(owner->reclaim_head(Address{10'000}));
  ASSERT_OK(reader->refresh());
  EXPECT_EQ(reader->tails().begin.value, 10'000u);
  std::byte byte{};
  EXPECT_CODE(kTruncated, reader->read(Address{9'999}, {&byte, 1}));

  ASSERT_OK(owner->reclaim_tail(Address{15'000}));
  ASSERT_OK(owner->append(pattern(15'000, 9'000, 2)));
  ASSERT_OK(owner->sync());
  ASSERT_OK(reader->refresh());
  EXPECT_EQ(read_back(*reader, Address{15'000}, 9'000), pattern(15'000, 9'000, 2));
  EXPECT_EQ(reader->epoch(), owner->epoch());
  EXPECT_OK(reader->close());
}

TEST_P(EngineVerbs, AReaderThatWasNotRefreshedLearnsOfTruncation) {
  auto owner = open_engine(fs_, options());
  ASSERT_OK(owner->append(pattern(0, 50'000)));
  ASSERT_OK(owner->sync());
  EngineOptions o = options();
  o.create = Create::kNever;
  o.read_only = true;
  auto reader = open_engine(fs_, o);
  ASSERT_OK(owner->reclaim_head(Address{20'000}));
  std::byte byte{};
  EXPECT_CODE(kTruncated, reader->read(Address{5'000}, {&byte, 1})) << "its file is gone";
  EXPECT_EQ(read_back(*reader, Address{20'000}, 1'000), pattern(20'000, 1'000));
}

TEST_P(EngineVerbs, ASecondOwnerIsRefused) {
  auto owner = open_engine(fs_, options());
  EXPECT_CODE(kLocked, Engine::open(fs_, "store", options()));
  ASSERT_OK(owner->append(pattern(0, 10)));
  ASSERT_OK(owner->close());
  auto second = open_engine(fs_, options());
  EXPECT_EQ(second->tails().committed.value, 10u);
}

TEST_P(EngineVerbs, SegmentsAreReadyAheadOfTheTail) {
  EngineOptions o = options();
  o.segment_size = 64_KiB;
  o.allocate_ahead = 32_KiB;
  auto engine = open_engine(fs_, o);
  for (std::uint64_t at = 0; at < 60'000; at += 1'000) ASSERT_OK(engine->append(pattern(at, 1'000)));
  // The worker prepares on its own time; the next segment must come without a claim that needs it.
  for (int i = 0; i < 2'000 && engine->statistics().segments < 2; ++i) Runtime::system().parker->sleep(1ms);
  EXPECT_EQ(engine->statistics().segments, 2u);
  EXPECT_GT(engine->statistics().bytes_on_disk, 0u);
  EXPECT_NE(engine->locate(Address{70'000}).find("store/000000000001.seg' at offset 20848"), std::string::npos)
      << engine->locate(Address{70'000});
}

INSTANTIATE_TEST_SUITE_P(Places, EngineVerbs,
                         ::testing::Values(Place{"mem", "mem", FileMode::kBuffered},
                                           Place{"local", "local", FileMode::kBuffered},
                                           Place{"local_zeroed", "local", FileMode::kBuffered, true},
                                           Place{"local_mapped", "local", FileMode::kMapped},
                                           Place{"local_write_through", "local", FileMode::kWriteThrough}),
                         [](const auto& place) { return std::string(place.param.name); });

}  // namespace
}  // namespace tier::testing
