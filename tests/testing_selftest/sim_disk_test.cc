/// Goal: the disk loses what the fault model says it may lose, and nothing else. Method: one small situation a test,
/// all its crash images or a few hundred of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "testing/sim_fs.h"

namespace tier::testing {
namespace {

std::string text_of(const std::vector<std::byte>& bytes) { return std::string(as_text(bytes)); }
std::string sectors(char fill, std::size_t count = 1) { return std::string(count * kSimSector, fill); }

class SimDiskTest : public ::testing::Test {
 protected:
  explicit SimDiskTest(const SimDiskOptions& options = {})
      : disk(std::make_shared<SimDisk>(options)), fs(sim_fs(disk)) {}

  std::unique_ptr<File> create(const std::string& path, FileMode mode = FileMode::kBuffered) {
    auto file = fs->open(path, {.write = true, .create = Create::kIfMissing, .mode = mode});
    EXPECT_TRUE(file.ok()) << file.status().message();
    return *std::move(file);
  }
  void write(File& file, std::uint64_t offset, const std::string& text) {
    const Status s = file.write_at(offset, as_bytes(text));
    EXPECT_TRUE(s.ok()) << s.message();
  }
  /// A file with synced content.
  std::unique_ptr<File> synced(const std::string& path, const std::string& text) {
    auto file = create(path);
    write(*file, 0, text);
    EXPECT_TRUE(file->sync(SyncKind::kData).ok());
    return file;
  }
  std::string cached(const std::string& path) { return text_of(disk->cached_bytes(path)); }
  std::string durable(const std::string& path) { return text_of(disk->durable_bytes(path)); }
  /// What a file may hold after a crash now: over every image.
  std::set<std::string> every_content(const std::string& path) {
    std::set<std::string> seen;
    SimEveryCrash every;
    while (every.next()) {
      auto image = disk->clone();
      image->crash(every);
      image->restart();
      seen.insert(text_of(image->cached_bytes(path)));
    }
    return seen;
  }
  std::set<std::string> seeded_content(const std::string& path, std::uint64_t seeds = 300) {
    std::set<std::string> seen;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      auto image = disk->clone();
      image->crash_seeded(seed);
      image->restart();
      seen.insert(text_of(image->cached_bytes(path)));
    }
    return seen;
  }
  std::set<std::vector<std::string>> every_names(bool seeded = false) {
    std::set<std::vector<std::string>> seen;
    SimEveryCrash every;
    for (std::uint64_t seed = 0; seeded ? seed < 500 : every.next(); ++seed) {
      auto image = disk->clone();
      if (seeded)
        image->crash_seeded(seed);
      else
        image->crash(every);
      image->restart();
      seen.insert(image->files());
    }
    return seen;
  }

  std::shared_ptr<SimDisk> disk;
  std::shared_ptr<FileSystem> fs;
};

class HostileDiskTest : public SimDiskTest {
 protected:
  HostileDiskTest() : SimDiskTest(SimDiskOptions{.profile = SimProfile::kHostile}) {}
};

// --- Bytes -----------------------------------------------------------------------------------------------------------

TEST_F(SimDiskTest, UnsyncedBytesAreInTheCacheOnly) {
  auto file = synced("f", sectors('a'));
  write(*file, 0, sectors('b'));
  EXPECT_EQ(cached("f"), sectors('b'));
  EXPECT_EQ(durable("f"), sectors('a'));
  ASSERT_TRUE(file->sync(SyncKind::kData).ok());
  EXPECT_EQ(durable("f"), sectors('b'));
  EXPECT_EQ(disk->pending_changes(), 0u);
}

TEST_F(SimDiskTest, SectorsOfAnUnsyncedWriteSurviveInAnySubset) {
  auto file = synced("f", sectors('a', 2));
  write(*file, 0, sectors('b', 2));
  const std::set<std::string> all{sectors('a', 2), sectors('a') + sectors('b'), sectors('b') + sectors('a'),
                                  sectors('b', 2)};
  EXPECT_EQ(every_content("f"), all);
  EXPECT_EQ(seeded_content("f"), all);
}

TEST_F(SimDiskTest, ASectorIsEachVersionThatTheCacheHeld) {
  auto file = synced("f", sectors('a'));
  write(*file, 0, "b");
  write(*file, 1, "c");
  const std::string rest(kSimSector - 2, 'a');
  // The second write alone cannot survive: the sector that held it held the first one, too.
  EXPECT_EQ(every_content("f"), (std::set<std::string>{"aa" + rest, "ba" + rest, "bc" + rest}));
}

TEST_F(SimDiskTest, AnUnsyncedSizeIsAnyThatItWas) {
  auto file = synced("f", "");
  write(*file, 0, sectors('a'));
  write(*file, kSimSector, sectors('b'));
  const std::string zero = sectors('\0');
  EXPECT_EQ(every_content("f"), (std::set<std::string>{"", sectors('a'), zero, sectors('a') + sectors('b'),
                                                       zero + sectors('b'), sectors('a') + zero, zero + zero}));
}

TEST_F(SimDiskTest, AGrowthMayStopBetween) {
  auto file = synced("f", "");
  write(*file, 0, sectors('a', 3));
  std::set<std::size_t> sizes;
  for (const std::string& content : seeded_content("f")) sizes.insert(content.size());
  EXPECT_EQ(sizes, (std::set<std::size_t>{0, kSimSector, 2 * kSimSector, 3 * kSimSector}));
}

TEST_F(SimDiskTest, AnUnsyncedTruncateIsKeptOrLostAsOne) {
  auto file = synced("f", sectors('a', 2));
  ASSERT_TRUE(file->truncate(kSimSector).ok());
  EXPECT_EQ(every_content("f"), (std::set<std::string>{sectors('a', 2), sectors('a')}));
}

TEST_F(SimDiskTest, AHoleIsOldOrZeroUntilItIsSynced) {
  auto file = synced("f", sectors('a', 2));
  ASSERT_TRUE(file->punch(0, 2 * kSimSector).ok());
  const std::string zero = sectors('\0');
  EXPECT_EQ(every_content("f"),
            (std::set<std::string>{sectors('a', 2), zero + sectors('a'), sectors('a') + zero, zero + zero}));
  ASSERT_TRUE(file->sync(SyncKind::kAll).ok());
  EXPECT_EQ(every_content("f"), (std::set<std::string>{zero + zero}));
}

TEST_F(SimDiskTest, PunchGivesWholePagesBackAlsoAfterACrash) {
  auto file = synced("f", sectors('a', 24));
  EXPECT_EQ(disk->used(), 3 * kSimPage);
  ASSERT_TRUE(file->punch(kSimPage, kSimPage).ok());
  EXPECT_EQ(disk->used(), 2 * kSimPage);
  disk->crash_all_new();
  disk->restart();
  EXPECT_EQ(disk->used(), 2 * kSimPage);
}

TEST_F(SimDiskTest, AllocateExtendsWithZerosOrIsLost) {
  auto file = synced("f", "");
  ASSERT_TRUE(file->allocate(0, 100).ok());
  EXPECT_EQ(cached("f"), std::string(100, '\0'));
  EXPECT_EQ(every_content("f"), (std::set<std::string>{"", std::string(100, '\0')}));
}

TEST_F(SimDiskTest, SyncCoversNoOtherFile) {
  auto a = synced("a", sectors('1'));
  auto b = synced("b", sectors('1'));
  write(*a, 0, sectors('2'));
  write(*b, 0, sectors('2'));
  ASSERT_TRUE(b->sync(SyncKind::kAll).ok());
  disk->crash_all_old();
  disk->restart();
  EXPECT_EQ(cached("a"), sectors('1'));
  EXPECT_EQ(cached("b"), sectors('2'));
}

TEST_F(SimDiskTest, SyncCoversWhatWasCompleteWhenItBegan) {
  // A write during a sync may be lost though the sync ends after it.
  int lost = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    auto own = std::make_shared<SimDisk>();
    SimRuntime sim(seed);
    sim.run([&] {
      auto view = sim_fs(own, &sim);
      const std::shared_ptr<File> file = *view->open("f", {.write = true, .create = Create::kIfMissing});
      EXPECT_TRUE(file->write_at(0, as_bytes(sectors('a'))).ok());
      auto writer = *sim.runtime().executor->start("writer", [&] {
        sim.sleep(10us);
        EXPECT_TRUE(file->write_at(0, as_bytes(sectors('b'))).ok());
      });
      EXPECT_TRUE(file->sync(SyncKind::kData).ok());
    });
    own->crash_all_old();
    own->restart();
    const std::string content = text_of(own->cached_bytes("f"));
    lost += content == sectors('a') ? 1 : 0;
    ASSERT_TRUE(content == sectors('a') || content == sectors('b'));
  }
  EXPECT_GT(lost, 0);
}

TEST_F(SimDiskTest, WriteThroughIsDurableWhenItReturns) {
  auto file = create("f", FileMode::kWriteThrough);
  EXPECT_EQ(file->mode(), FileMode::kWriteThrough);
  write(*file, 0, "durable");
  EXPECT_EQ(every_content("f"), (std::set<std::string>{"durable"}));
}

TEST_F(SimDiskTest, WriteThroughCoversItselfNotWhatLiesBeforeIt) {
  auto plain = synced("f", sectors('a', 2));
  auto through = create("f", FileMode::kWriteThrough);
  write(*plain, 0, sectors('b', 2));
  write(*through, 0, sectors('c'));
  EXPECT_EQ(every_content("f"), (std::set<std::string>{sectors('c') + sectors('a'), sectors('c') + sectors('b')}));
}

TEST_F(SimDiskTest, DirectTransfersMustBeAligned) {
  auto file = create("f", FileMode::kDirect);
  alignas(512) std::byte memory[1024] = {};
  EXPECT_EQ(file->alignment(), 512u);
  EXPECT_TRUE(file->write_at(0, ByteSpan(memory, 1024)).ok());
  EXPECT_EQ(file->write_at(1, ByteSpan(memory, 512)).code(), Code::kInvalid);
  EXPECT_EQ(file->write_at(0, ByteSpan(memory, 100)).code(), Code::kInvalid);
  EXPECT_EQ(file->write_at(0, ByteSpan(memory + 8, 512)).code(), Code::kInvalid);
  EXPECT_EQ(file->read_at(0, MutableByteSpan(memory + 8, 512)).code(), Code::kInvalid);
  EXPECT_EQ(durable("f"), "");
}

TEST_F(SimDiskTest, CrashPrefixKeepsWhatCameFirst) {
  auto file = synced("f", sectors('a', 2));
  write(*file, 0, sectors('b'));
  const std::uint64_t first = disk->order();
  write(*file, kSimSector, sectors('c'));
  const std::uint64_t second = disk->order();
  const std::string expected[] = {sectors('a', 2), sectors('b') + sectors('a'), sectors('b') + sectors('c')};
  const std::uint64_t orders[] = {first - 1, first, second};
  for (int i = 0; i < 3; ++i) {
    auto image = disk->clone();
    image->crash_prefix(orders[i]);
    image->restart();
    EXPECT_EQ(text_of(image->cached_bytes("f")), expected[i]);
  }
}

TEST_F(SimDiskTest, ACloneIsIndependent) {
  auto file = synced("f", "one");
  auto image = disk->clone();
  write(*file, 0, "two");
  ASSERT_TRUE(file->sync(SyncKind::kData).ok());
  EXPECT_EQ(text_of(image->cached_bytes("f")), "one");
  image->crash_all_old();
  EXPECT_TRUE(disk->powered());
}

// --- Failed syncs ----------------------------------------------------------------------------------------------------

TEST_F(SimDiskTest, AFailedSyncPoisonsTheFile) {
  auto file = synced("f", sectors('a'));
  write(*file, 0, sectors('b'));
  disk->add_fault({.calls = kSimSync, .error = ENOSPC});
  const Status failed = file->sync(SyncKind::kData);
  EXPECT_EQ(failed.code(), Code::kDiskFull);
  EXPECT_NE(failed.message().find("'f'"), std::string::npos);
  EXPECT_EQ(file->sync(SyncKind::kData).code(), Code::kPoisoned);
  EXPECT_EQ(file->write_at(0, as_bytes("c")).code(), Code::kPoisoned);
  EXPECT_EQ(disk->faults_hit(), 1u);
}

TEST_F(SimDiskTest, AFailedSyncLosesAnySubsetAndTheNextOneSucceeds) {
  std::set<std::string> kept;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    disk = std::make_shared<SimDisk>(SimDiskOptions{.seed = seed, .poison = false});
    fs = sim_fs(disk);
    auto file = synced("f", sectors('a', 2));
    write(*file, 0, sectors('b', 2));
    disk->add_fault({.calls = kSimSync});
    EXPECT_EQ(file->sync(SyncKind::kData).code(), Code::kIo);
    EXPECT_TRUE(file->sync(SyncKind::kData).ok());
    EXPECT_EQ(cached("f"), sectors('b', 2));  // the cache shows what the medium does not hold
    disk->crash_all_new();
    disk->restart();
    kept.insert(cached("f"));
  }
  EXPECT_EQ(kept.size(), 4u);
}

// --- Names -----------------------------------------------------------------------------------------------------------

TEST_F(SimDiskTest, ACreatedNameIsDurableOnlyAfterItsDirectoryIsSynced) {
  auto file = *fs->open("f", {.write = true, .create = Create::kIfMissing, .name_sync = NameSync::kLater});
  write(*file, 0, "data");
  ASSERT_TRUE(file->sync(SyncKind::kAll).ok());
  EXPECT_EQ(every_names(), (std::set<std::vector<std::string>>{{}, {"f"}}));
  ASSERT_TRUE(fs->sync_directory("").ok());
  EXPECT_EQ(every_names(), (std::set<std::vector<std::string>>{{"f"}}));
}

TEST_F(SimDiskTest, ADurableNameDoesNotMakeTheBytesDurable) {
  auto file = create("f");
  write(*file, 0, "data");
  disk->crash_all_old();
  disk->restart();
  EXPECT_EQ(disk->files(), std::vector<std::string>{"f"});
  EXPECT_EQ(cached("f"), "");
}

TEST_F(SimDiskTest, UnsyncedNamesSurviveAsAPrefix) {
  for (const char* name : {"a", "b", "c"})
    ASSERT_TRUE(fs->open(name, {.write = true, .create = Create::kIfMissing, .name_sync = NameSync::kLater}).ok());
  const std::set<std::vector<std::string>> prefixes{{}, {"a"}, {"a", "b"}, {"a", "b", "c"}};
  EXPECT_EQ(every_names(), prefixes);
  EXPECT_EQ(every_names(true), prefixes);
}

TEST_F(HostileDiskTest, UnsyncedNamesSurviveInAnySubset) {
  for (const char* name : {"a", "b", "c"})
    ASSERT_TRUE(fs->open(name, {.write = true, .create = Create::kIfMissing, .name_sync = NameSync::kLater}).ok());
  EXPECT_EQ(every_names(true).size(), 8u);
}

TEST_F(SimDiskTest, ARenameGivesOneNameOrTheOther) {
  synced("old", "new content");
  synced("target", "old content");
  ASSERT_TRUE(fs->rename("old", "target", NameSync::kLater).ok());
  EXPECT_EQ(every_names(), (std::set<std::vector<std::string>>{{"old", "target"}, {"target"}}));
  EXPECT_EQ(every_content("target"), (std::set<std::string>{"old content", "new content"}));
  ASSERT_TRUE(fs->sync_directory("").ok());
  EXPECT_EQ(every_content("target"), (std::set<std::string>{"new content"}));
}

TEST_F(HostileDiskTest, ARenameNeverLosesBothNames) {
  synced("a", "A");
  synced("c", "C");
  ASSERT_TRUE(fs->rename("a", "b", NameSync::kLater).ok());
  ASSERT_TRUE(fs->rename("c", "a", NameSync::kLater).ok());
  ASSERT_TRUE(fs->rename("b", "d", NameSync::kLater).ok());
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    auto image = disk->clone();
    image->crash_seeded(seed);
    image->restart();
    std::string all;
    for (const std::string& name : image->files()) all += text_of(image->cached_bytes(name));
    std::sort(all.begin(), all.end());
    ASSERT_EQ(all, "AC") << "seed " << seed;
  }
}

TEST_F(SimDiskTest, ARenameAcrossDirectoriesIsOneChange) {
  ASSERT_TRUE(fs->create_directory("x").ok());
  ASSERT_TRUE(fs->create_directory("y").ok());
  synced("x/f", "content");
  ASSERT_TRUE(fs->rename("x/f", "y/f", NameSync::kLater).ok());
  EXPECT_EQ(every_names(), (std::set<std::vector<std::string>>{{"x/f"}, {"y/f"}}));
  ASSERT_TRUE(fs->sync_directory("x").ok());
  EXPECT_EQ(every_names(), (std::set<std::vector<std::string>>{{"y/f"}}));
}

TEST_F(SimDiskTest, RenameWithoutAtomicityMayLoseTheTarget) {
  SimDiskOptions options;
  options.capabilities.bits &= ~static_cast<std::uint32_t>(Capability::kAtomicRename);
  disk = std::make_shared<SimDisk>(options);
  fs = sim_fs(disk);
  synced("old", "new content");
  synced("target", "old content");
  ASSERT_TRUE(fs->rename("old", "target", NameSync::kLater).ok());
  EXPECT_TRUE(every_names().contains({"old"}));
}

TEST_F(SimDiskTest, ARemovedFileMayComeBackUntilTheDirectoryIsSynced) {
  synced("f", "content");
  ASSERT_TRUE(fs->remove("f", NameSync::kLater).ok());
  EXPECT_EQ(fs->stat("f").code(), Code::kNotFound);
  EXPECT_EQ(every_content("f"), (std::set<std::string>{"", "content"}));
  ASSERT_TRUE(fs->sync_directory("").ok());
  EXPECT_EQ(every_names(), (std::set<std::vector<std::string>>{{}}));
}

TEST_F(SimDiskTest, SyncOfADirectoryCoversNoOtherDirectory) {
  ASSERT_TRUE(fs->create_directory("x").ok());
  ASSERT_TRUE(fs->create_directory("y").ok());
  for (const char* name : {"x/f", "y/f"})
    ASSERT_TRUE(fs->open(name, {.write = true, .create = Create::kIfMissing, .name_sync = NameSync::kLater}).ok());
  ASSERT_TRUE(fs->sync_directory("x").ok());
  disk->crash_all_old();
  disk->restart();
  EXPECT_EQ(disk->files(), std::vector<std::string>{"x/f"});
}

TEST_F(SimDiskTest, AFileIsLostWithItsDirectory) {
  ASSERT_TRUE(fs->create_directory("x", NameSync::kLater).ok());
  synced("x/f", "content");
  disk->crash_all_old();
  disk->restart();
  EXPECT_EQ(disk->files(), std::vector<std::string>{});
}

// --- Hostile bytes ---------------------------------------------------------------------------------------------------

TEST_F(HostileDiskTest, ASectorInFlightMayBecomeGarbageOrUnreadable) {
  auto file = synced("f", sectors('a', 4));
  write(*file, 0, sectors('b', 4));
  bool garbage = false, unreadable = false;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    auto image = disk->clone();
    image->crash_seeded(seed);
    image->restart();
    auto view = sim_fs(image);
    auto opened = *view->open("f", {});
    std::byte sector[kSimSector];
    for (std::uint64_t i = 0; i < 4; ++i) {
      const auto got = opened->read_at(i * kSimSector, sector);
      unreadable = unreadable || got.code() == Code::kIo;
      const std::string content(as_text(sector));
      garbage = garbage || (got.ok() && content != sectors('a') && content != sectors('b'));
    }
  }
  EXPECT_TRUE(garbage);
  EXPECT_TRUE(unreadable);
}

TEST_F(HostileDiskTest, UnwrittenSpaceMayShowWhatAnotherFileHeld) {
  synced("gone", sectors('x', 4));
  ASSERT_TRUE(fs->remove("gone").ok());
  auto file = synced("f", "");
  ASSERT_TRUE(file->allocate(0, 4 * kSimSector).ok());
  const auto contents = seeded_content("f", 500);
  EXPECT_TRUE(std::any_of(contents.begin(), contents.end(),
                          [](const std::string& c) { return c.find('x') != std::string::npos; }));
  ASSERT_TRUE(file->sync(SyncKind::kAll).ok());
  EXPECT_EQ(seeded_content("f"), (std::set<std::string>{sectors('\0', 4)}));
}

// --- Power -----------------------------------------------------------------------------------------------------------

TEST_F(SimDiskTest, OldObjectsStayDeadAfterRestart) {
  auto file = synced("f", "content");
  disk->power_cut();
  EXPECT_FALSE(disk->powered());
  EXPECT_EQ(file->write_at(0, as_bytes("x")).code(), Code::kIo);
  disk->restart();
  std::byte byte{};
  for (const Status s :
       {file->write_at(0, as_bytes("x")), file->sync(SyncKind::kAll), file->truncate(0), file->allocate(0, 1),
        file->punch(0, 1), file->read_at(0, {&byte, 1}).status(), file->info().status(), fs->stat("f").status(),
        fs->list("").status(), fs->remove("f"), fs->rename("f", "g"), fs->create_directory("d"), fs->sync_directory(""),
        fs->space().status(), fs->locked("f").status(), fs->open("f", {}).status()}) {
    EXPECT_EQ(s.code(), Code::kIo) << s.message();
    EXPECT_EQ(s.system_errno(), EIO);
    EXPECT_NE(s.message().find("the power is off"), std::string::npos);
  }
  auto again = *sim_fs(disk)->open("f", {});
  EXPECT_EQ(*again->size(), 7u);
}

TEST_F(SimDiskTest, TheCallDuringWhichThePowerGoesIsInFlight) {
  auto file = synced("f", sectors('a'));
  disk->cut_power_at(disk->call_count() + 1);
  write(*file, 0, sectors('b'));
  EXPECT_EQ(file->write_at(0, as_bytes(sectors('c'))).code(), Code::kIo);
  EXPECT_FALSE(disk->powered());
  EXPECT_EQ(every_content("f"), (std::set<std::string>{sectors('a'), sectors('b'), sectors('c')}));
}

TEST_F(SimDiskTest, EveryMutatingCallIsAPlaceToLosePower) {
  std::uint64_t at = 0;
  for (;; ++at) {
    auto own = std::make_shared<SimDisk>();
    own->cut_power_at(at);
    auto view = sim_fs(own);
    const auto work = [&]() -> Status {
      TIER_CHECK(view->create_directory("d"));                                                // 0, 1
      TIER_TRY(auto file, view->open("d/f", {.write = true, .create = Create::kExclusive}));  // 2, 3
      TIER_CHECK(file->allocate(0, 100));                                                     // 4
      TIER_CHECK(file->write_at(0, as_bytes("x")));                                           // 5
      TIER_CHECK(file->truncate(10));                                                         // 6
      TIER_CHECK(file->punch(0, 5));                                                          // 7
      TIER_CHECK(file->sync(SyncKind::kAll));                                                 // 8
      TIER_CHECK(view->rename("d/f", "g"));                                                   // 9, 10, 11
      return view->remove("g");                                                               // 12, 13
    };
    const Status s = work();
    ASSERT_EQ(s.ok(), own->powered());
    if (own->powered()) break;
    EXPECT_EQ(own->call_count(), at + 1);
  }
  EXPECT_EQ(at, 14u);
}

TEST_F(SimDiskTest, AKilledProcessLosesNothingButItsLocks) {
  auto file = *fs->open("f", {.write = true, .create = Create::kIfMissing, .lock = true});
  write(*file, 0, "written");
  disk->kill_process();
  EXPECT_EQ(file->sync(SyncKind::kAll).code(), Code::kIo);
  auto again = sim_fs(disk)->open("f", {.write = true, .lock = true});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(cached("f"), "written");
  EXPECT_EQ(durable("f"), "");
}

TEST_F(SimDiskTest, TheLockExcludesASecondOwnerUntilThePowerGoes) {
  auto file = *fs->open("f", {.write = true, .create = Create::kIfMissing, .lock = true});
  EXPECT_TRUE(*fs->locked("f"));
  EXPECT_EQ(sim_fs(disk)->open("f", {.write = true, .lock = true}).code(), Code::kLocked);
  EXPECT_TRUE(fs->open("f", {}).ok());
  EXPECT_TRUE(*fs->locked("f"));
  disk->power_cut();
  disk->restart();
  auto view = sim_fs(disk);
  auto next = view->open("f", {.write = true, .create = Create::kIfMissing, .lock = true});
  ASSERT_TRUE(next.ok());
  file.reset();  // a dead owner frees nothing
  EXPECT_TRUE(*view->locked("f"));
  next->reset();
  EXPECT_FALSE(*view->locked("f"));
}

// --- Faults and damage -----------------------------------------------------------------------------------------------

TEST_F(SimDiskTest, FaultsMatchKindPathAndCount) {
  auto a = create("dir-a");
  auto b = create("dir-b");
  disk->add_fault({.calls = kSimWrite, .error = ENOSPC, .path = "*-b", .skip = 1, .times = 2});
  EXPECT_TRUE(b->write_at(0, as_bytes("1")).ok());
  EXPECT_TRUE(a->write_at(0, as_bytes("1")).ok());
  EXPECT_EQ(b->write_at(0, as_bytes("2")).code(), Code::kDiskFull);
  EXPECT_TRUE(b->sync(SyncKind::kData).ok());
  EXPECT_EQ(b->write_at(0, as_bytes("2")).code(), Code::kDiskFull);
  EXPECT_TRUE(b->write_at(0, as_bytes("3")).ok());
  EXPECT_EQ(cached("dir-b"), "3");
}

TEST_F(SimDiskTest, EveryCallCanFail) {
  const auto work = [](FileSystem& view) -> Status {
    TIER_CHECK(view.create_directory("d"));
    TIER_TRY(auto file, view.open("d/f", {.write = true, .create = Create::kExclusive}));
    TIER_CHECK(file->write_at(0, as_bytes("x")));
    std::byte byte;
    TIER_CHECK(file->read_exactly_at(0, {&byte, 1}));
    TIER_CHECK(file->sync(SyncKind::kAll));
    TIER_CHECK(view.list("d").status());
    TIER_CHECK(file->size().status());
    TIER_CHECK(view.rename("d/f", "g"));
    return view.remove("g");
  };
  ASSERT_TRUE(work(*fs).ok());
  const std::uint64_t calls = disk->io_count();
  for (std::uint64_t at = 0; at < calls; ++at) {
    for (const bool partial : {false, true}) {
      auto own = std::make_shared<SimDisk>();
      own->fail_call(at, ENOSPC, partial);
      const Status s = work(*sim_fs(own));
      EXPECT_EQ(s.code(), Code::kDiskFull) << "call " << at << ": " << s.message();
      EXPECT_FALSE(s.place().empty());
      EXPECT_EQ(own->faults_hit(), 1u);
    }
  }
}

TEST_F(SimDiskTest, AFullDiskRefusesAndHeals) {
  disk->set_capacity(2 * kSimPage);
  auto file = create("f");
  write(*file, 0, sectors('a', 16));
  EXPECT_EQ(file->write_at(2 * kSimPage, as_bytes("b")).code(), Code::kDiskFull);
  EXPECT_EQ(file->allocate(0, 3 * kSimPage).code(), Code::kDiskFull);
  EXPECT_EQ(*file->size(), 2 * kSimPage);
  EXPECT_EQ(fs->space()->available, 0u);
  ASSERT_TRUE(file->punch(0, kSimPage).ok());
  EXPECT_EQ(fs->space()->available, kSimPage);
  EXPECT_TRUE(file->write_at(2 * kSimPage, as_bytes("b")).ok());
}

TEST_F(SimDiskTest, DamageShowsInReads) {
  synced("f", "abc");
  ASSERT_TRUE(disk->flip_bit("f", 1, 0));
  EXPECT_EQ(cached("f"), "acc");
  EXPECT_EQ(durable("f"), "acc");
  EXPECT_FALSE(disk->flip_bit("f", 3, 0));
  ASSERT_TRUE(disk->damage("f", 0, as_bytes("xyz")));
  EXPECT_EQ(durable("f"), "xyz");
  ASSERT_TRUE(disk->damage_size("f", 1));
  EXPECT_EQ(cached("f"), "x");
}

TEST_F(SimDiskTest, ABrokenSectorFailsReadsUntilItIsWritten) {
  auto file = synced("f", sectors('a', 2));
  ASSERT_TRUE(disk->break_sector("f", 600));
  std::byte byte{};
  EXPECT_TRUE(file->read_at(0, {&byte, 1}).ok());
  const auto got = file->read_at(600, {&byte, 1});
  EXPECT_EQ(got.code(), Code::kIo);
  EXPECT_NE(got.status().place().find("512"), std::string::npos);
  write(*file, kSimSector, sectors('b'));
  EXPECT_TRUE(file->read_at(600, {&byte, 1}).ok());
}

TEST_F(SimDiskTest, MissingCapabilitiesAreReportedOrFallBack) {
  disk = std::make_shared<SimDisk>(SimDiskOptions{.capabilities = {}});
  fs = sim_fs(disk);
  auto file = create("f", FileMode::kDirectWriteThrough);
  EXPECT_EQ(file->mode(), FileMode::kWriteThrough);
  EXPECT_EQ(file->alignment(), 1u);
  EXPECT_EQ(create("g", FileMode::kMapped)->mode(), FileMode::kBuffered);
  write(*file, 0, "ab");
  EXPECT_EQ(file->write_at(1, as_bytes("c")).code(), Code::kUnsupported);
  EXPECT_EQ(file->punch(0, 1).code(), Code::kUnsupported);
  EXPECT_EQ(file->allocate(0, 1).code(), Code::kUnsupported);
  EXPECT_EQ(file->mapping(0, 1).code(), Code::kUnsupported);
  EXPECT_EQ(fs->open("f", {.write = true, .lock = true}).code(), Code::kUnsupported);
}

TEST_F(SimDiskTest, StoresIntoAMappingAreUnsyncedWrites) {
  SimDiskOptions options;
  options.capabilities = options.capabilities.with(Capability::kMapping);
  disk = std::make_shared<SimDisk>(options);
  fs = sim_fs(disk);
  auto file = synced("f", sectors('a', 2));
  const MutableByteSpan memory = *file->mapping(0, 2 * kSimSector);
  const MutableByteSpan second = *file->mapping(kSimSector, kSimSector);
  std::memset(memory.data() + kSimSector, 'b', kSimSector);
  EXPECT_EQ(second[0], std::byte{'b'});
  EXPECT_EQ(file->truncate(0).code(), Code::kBusy);
  EXPECT_EQ(every_content("f"), (std::set<std::string>{sectors('a', 2), sectors('a') + sectors('b')}));
  write(*file, 0, "c");
  EXPECT_EQ(memory[0], std::byte{'c'});
  ASSERT_TRUE(file->sync(SyncKind::kData).ok());
  EXPECT_EQ(durable("f")[0], 'c');
  EXPECT_EQ(durable("f").substr(kSimSector), sectors('b'));
  disk->power_cut();
  std::memset(memory.data(), 'z', kSimSector);  // still memory, of nobody
  disk->restart();
  EXPECT_EQ(cached("f")[0], 'c');
}

// --- Operations in flight --------------------------------------------------------------------------------------------

struct FlightTest : SimDiskTest {
  FlightTest() : SimDiskTest(options()) {}
  static SimDiskOptions options() {
    SimDiskOptions o;
    o.capabilities = o.capabilities.with(Capability::kAsync);
    return o;
  }
  static void begin(File& file, IoOp& op, int& done) {
    op.context = &done;
    op.done = [](IoOp& o) { ++*static_cast<int*>(o.context); };
    file.start(op);
  }
};

TEST_F(FlightTest, ASyncDoesNotCoverAWriteThatWasInFlight) {
  auto file = synced("f", sectors('a'));
  const std::string text = sectors('b');
  int done = 0;
  IoOp write, sync;
  write.kind = IoOp::Kind::kWrite;
  write.from = as_bytes(text);
  sync.kind = IoOp::Kind::kSync;
  begin(*file, write, done);
  begin(*file, sync, done);
  EXPECT_EQ(done, 0);
  ASSERT_EQ(*fs->poll(Deadline::never()), 2u);
  EXPECT_EQ(done, 2);
  EXPECT_TRUE(write.status.ok() && sync.status.ok());
  EXPECT_EQ(write.transferred, text.size());
  EXPECT_EQ(every_content("f"), (std::set<std::string>{sectors('a'), sectors('b')}));
}

TEST_F(FlightTest, AWriteInFlightMaySurviveAPowerCut) {
  auto file = synced("f", sectors('a'));
  const std::string text = sectors('b');
  int done = 0;
  IoOp write;
  write.kind = IoOp::Kind::kWrite;
  write.from = as_bytes(text);
  begin(*file, write, done);
  disk->power_cut();
  EXPECT_EQ(*fs->poll(Deadline::now()), 1u);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(write.status.code(), Code::kIo);
  EXPECT_EQ(every_content("f"), (std::set<std::string>{sectors('a'), sectors('b')}));
}

TEST_F(FlightTest, PollWaitsForTheFirst) {
  SimRuntime sim(1);
  sim.run([&] {
    auto view = sim_fs(disk, &sim);
    auto file = *view->open("f", {.write = true, .create = Create::kIfMissing});
    int done = 0;
    IoOp sync;
    sync.kind = IoOp::Kind::kSync;
    begin(*file, sync, done);
    EXPECT_EQ(*view->poll(Deadline::now()), 0u);
    EXPECT_EQ(*view->poll(Deadline::never()), 1u);
    EXPECT_EQ(done, 1);
    EXPECT_EQ(*view->poll(Deadline::never()), 0u);  // nothing in flight, nothing to wait for
  });
}

// --- Interleavings and URLs ------------------------------------------------------------------------------------------

TEST(SimFs, LongWritesAreSplitAtSectorsBetweenFibers) {
  bool mixed = false;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    auto disk = std::make_shared<SimDisk>();
    SimRuntime sim(seed);
    sim.run([&] {
      auto view = sim_fs(disk, &sim);
      const std::shared_ptr<File> file = *view->open("f", {.write = true, .create = Create::kIfMissing});
      auto other = *sim.runtime().executor->start(
          "writer", [&] { EXPECT_TRUE(file->write_at(0, as_bytes(sectors('b', 4))).ok()); });
      EXPECT_TRUE(file->write_at(0, as_bytes(sectors('a', 4))).ok());
    });
    const std::string content = text_of(disk->cached_bytes("f"));
    for (std::size_t i = 0; i < 4; ++i) {
      const std::string sector = content.substr(i * kSimSector, kSimSector);
      ASSERT_TRUE(sector == sectors('a') || sector == sectors('b')) << "seed " << seed;
    }
    mixed = mixed || (content.find('a') != std::string::npos && content.find('b') != std::string::npos);
  }
  EXPECT_TRUE(mixed);
}

TEST(SimFs, OpensByUrl) {
  register_sim_file_system();
  register_sim_file_system();
  {
    auto opened = open_file_system("sim:contract");
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    EXPECT_EQ((*opened)->url(), "sim:contract");
    ASSERT_TRUE((*opened)->create_directory("d").ok());
  }
  ASSERT_NE(sim_disk("contract"), nullptr);
  sim_disk("contract")->power_cut();
  sim_disk("contract")->restart();
  EXPECT_TRUE((*open_file_system("sim:contract"))->stat("d").ok());
  set_sim_disk("contract", nullptr);
  EXPECT_EQ(sim_disk("contract"), nullptr);
}

TEST(SimFs, BadCallsChangeNothing) {
  auto disk = std::make_shared<SimDisk>();
  auto fs = sim_fs(disk);
  ASSERT_TRUE(fs->create_directory("d").ok());
  ASSERT_TRUE(fs->open("d/f", {.write = true, .create = Create::kExclusive}).ok());
  const auto code = [&](std::string_view path, const OpenOptions& options) { return fs->open(path, options).code(); };
  EXPECT_EQ(code("", {}), Code::kInvalid);
  EXPECT_EQ(code("../x", {.write = true, .create = Create::kIfMissing}), Code::kInvalid);
  EXPECT_EQ(code("d", {}), Code::kInvalid);
  EXPECT_EQ(code("none", {}), Code::kNotFound);
  EXPECT_EQ(code("none/f", {.write = true, .create = Create::kIfMissing}), Code::kNotFound);
  EXPECT_EQ(code("d/f/g", {.write = true, .create = Create::kIfMissing}), Code::kInvalid);
  EXPECT_EQ(code("d/f", {.write = true, .create = Create::kExclusive}), Code::kExists);
  EXPECT_EQ(code("g", {.create = Create::kIfMissing}), Code::kInvalid);
  EXPECT_EQ(fs->create_directory("d").code(), Code::kExists);
  EXPECT_EQ(fs->remove("d").code(), Code::kInvalid);
  EXPECT_EQ(fs->remove("none").code(), Code::kNotFound);
  EXPECT_EQ(fs->rename("d", "d/e").code(), Code::kInvalid);
  EXPECT_EQ(fs->rename("d/f", "d").code(), Code::kInvalid);
  EXPECT_EQ(fs->rename("none", "x").code(), Code::kNotFound);
  EXPECT_EQ(fs->list("d/f").code(), Code::kInvalid);
  EXPECT_EQ(fs->sync_directory("d/f").code(), Code::kInvalid);
  auto reader = *fs->open("d/f", {});
  EXPECT_EQ(reader->write_at(0, as_bytes("x")).code(), Code::kAccess);
  auto writer = *fs->open("d/f", {.write = true});
  EXPECT_EQ(writer->write_at(~std::uint64_t{0}, as_bytes("x")).code(), Code::kInvalid);
  EXPECT_EQ(writer->allocate(1, ~std::uint64_t{0}).code(), Code::kInvalid);
  EXPECT_EQ(writer->allocate(0, std::uint64_t{1} << 50).code(), Code::kDiskFull);
  EXPECT_EQ(disk->files(), std::vector<std::string>{"d/f"});
  EXPECT_EQ(*writer->size(), 0u);
}

}  // namespace
}  // namespace tier::testing
