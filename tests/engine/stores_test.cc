/// Goal: a store that is not what it should be is refused by name of the fault, and nothing is changed; damage in any byte of
/// the manifest and of a segment's header area is found or harmless.
/// Method: a good store is made, copied file by file, damaged, and opened for writing and for reading.
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "engine/format.h"
#include "engine_fixture.h"
#include "tier/crc32c.h"

namespace tier::testing {
namespace {

using Files = std::map<std::string, std::vector<std::byte>>;

Files save(FileSystem& fs) {
  Files files;
  const auto entries = fs.list("store");
  EXPECT_OK(entries);
  for (const DirectoryEntry& e : *entries) {
    auto file = fs.open("store/" + e.name, {});
    EXPECT_OK(file);
    std::vector<std::byte> bytes(*(*file)->size());
    EXPECT_OK((*file)->read_exactly_at(0, bytes));
    files[e.name] = std::move(bytes);
  }
  return files;
}

std::shared_ptr<FileSystem> restore(const Files& files) {
  auto fs = open_fs("mem:");
  EXPECT_OK(fs->create_directory("store"));
  for (const auto& [name, bytes] : files) {
    auto file = fs->open("store/" + name, {.write = true, .create = Create::kExclusive});
    EXPECT_OK(file);
    EXPECT_OK((*file)->write_at(0, ByteSpan(bytes)));
  }
  return fs;
}

EngineOptions options(bool read_only = false) {
  EngineOptions o;
  o.segment_size = 4_KiB;
  o.allow_small_segments = true;
  o.allocate_ahead = 4_KiB;
  o.prepared_segments = 0;
  o.read_only = read_only;
  return o;
}

constexpr std::size_t kStored = 10'000;

/// Three segments of appends; unclean, with marks, unless it is closed.
Files good_store(bool clean) {
  auto fs = open_fs("mem:");
  EngineOptions o = options();
  o.create = Create::kIfMissing;
  auto engine = open_engine(fs, o);
  EXPECT_OK(engine->append(pattern(0, 9'000)));
  EXPECT_OK(engine->sync());
  EXPECT_OK(engine->append(pattern(9'000, 1'000)));
  EXPECT_OK(engine->sync());
  EXPECT_OK(engine->put_owner_data(pattern(77, 100)));
  if (clean) {
    EXPECT_OK(engine->close(9));
  }
  engine.reset();
  return save(*fs);
}

/// Reads everything; the failure, or kOk if all is as it was stored.
Status open_and_check(const Files& files, bool read_only) {
  auto fs = restore(files);
  auto engine = Engine::open(fs, "store", options(read_only));
  if (!engine.ok()) return engine.status();
  std::vector<std::byte> bytes(kStored);
  TIER_CHECK((*engine)->read(Address{0}, bytes));
  EXPECT_EQ(bytes, pattern(0, kStored));
  EXPECT_EQ((*engine)->tails().committed.value, kStored);
  EXPECT_TRUE(std::ranges::equal((*engine)->owner_data(), pattern(77, 100)));
  return {};
}

void fix_crc(std::span<std::byte> page) {
  const std::uint32_t crc = crc32c(page.first(page.size() - 4));
  std::memcpy(page.data() + page.size() - 4, &crc, 4);
}

TEST(EngineStores, AGoodOneOpens) {
  for (const bool clean : {false, true}) {
    EXPECT_OK(open_and_check(good_store(clean), false));
    EXPECT_OK(open_and_check(good_store(clean), true));
  }
}

TEST(EngineStores, EveryFlippedBitOfTheManifestIsHarmlessAndOfBothSlotsFound) {
  const Files good = good_store(true);
  for (std::size_t at = 0; at < 2 * kHeaderPage; ++at) {
    if (at % kHeaderPage > 240 && at % 53 != 0 && at % kHeaderPage < 4090) continue;  // zeros: a sample
    Files bad = good;
    bad["MANIFEST"][at] ^= std::byte{1} << (at % 8);
    ASSERT_OK(open_and_check(bad, at % 2 == 0)) << at << ": the other slot holds the same";
  }
  for (std::size_t at = 0; at < kHeaderPage; at += 61) {
    Files bad = good;
    bad["MANIFEST"][at] ^= std::byte{4};
    bad["MANIFEST"][kHeaderPage + (at * 7) % kHeaderPage] ^= std::byte{1};
    ASSERT_EQ(open_and_check(bad, false).code(), Code::kCorruption) << at;
  }
}

TEST(EngineStores, EveryFlippedBitOfAHeaderAreaIsFoundOrHarmless) {
  for (const bool clean : {false, true}) {
    const Files good = good_store(clean);
    for (const char* name : {"000000000000.seg", "000000000002.seg"}) {
      for (std::size_t at = 0; at < 4 * kHeaderPage; ++at) {
        const std::size_t in_page = at % kHeaderPage;
        // Reserved bytes, and what lies between the copies of a mark: a sample.
        const std::size_t in_copy = in_page % kMarkCopyStride;
        if (in_copy > 64 && in_copy % 89 != 0 && (in_copy < 506 || in_copy > 513) && in_page < 4090) continue;
        Files bad = good;
        bad[name][at] ^= std::byte{1} << (at % 8);
        const Status s = open_and_check(bad, at % 2 == 0);
        if (at < kHeaderPage) {
          ASSERT_EQ(s.code(), Code::kCorruption) << name << " " << at;
          ASSERT_NE(s.place().find(name), std::string::npos) << s.message();
        } else {
          ASSERT_OK(s) << name << " " << at << ": a mark is stored twice";
        }
      }
    }
  }
}

TEST(EngineStores, SegmentsCutAtAnyLengthAreNamed) {
  const Files good = good_store(true);
  for (const std::size_t length : {0u, 1u, 4095u, 4096u, 16384u, 16384u + 4095u, 16384u + 4097u}) {
    for (const bool read_only : {false, true}) {
      for (const char* name : {"000000000000.seg", "000000000002.seg"}) {
        Files bad = good;
        bad[name].resize(length);
        const Status s = open_and_check(bad, read_only);
        EXPECT_EQ(s.code(), Code::kCorruption) << length;
        EXPECT_NE(s.place().find(name), std::string::npos) << s.message();
      }
    }
  }
}

TEST(EngineStores, AMissingFileIsNamed) {
  for (const char* name : {"000000000000.seg", "000000000001.seg", "000000000002.seg"}) {
    for (const bool read_only : {false, true}) {
      Files bad = good_store(true);
      bad.erase(name);
      const Status s = open_and_check(bad, read_only);
      EXPECT_EQ(s.code(), Code::kCorruption) << name;
      EXPECT_NE(s.place().find(name), std::string::npos) << s.message();
    }
  }
  Files bad = good_store(true);
  bad.erase("MANIFEST");
  EXPECT_CODE(kNotFound, open_and_check(bad, true));
  auto fs = restore(bad);
  EngineOptions o = options();
  o.create = Create::kIfMissing;
  EXPECT_CODE(kCorruption, Engine::open(fs, "store", o)) << "segments without a manifest are not a place for a new store";
}

TEST(EngineStores, ANewerVersionIsRefusedNamingBoth) {
  Files bad = good_store(true);
  for (std::size_t slot = 0; slot < 2; ++slot) {
    const auto page = std::span(bad["MANIFEST"]).subspan(slot * kHeaderPage, kHeaderPage);
    page[8] = std::byte{9};
    fix_crc(page);
  }
  Status s = open_and_check(bad, false);
  EXPECT_EQ(s.code(), Code::kUnsupported);
  EXPECT_NE(s.message().find("version 9"), std::string::npos) << s.message();
  EXPECT_NE(s.message().find("up to 1"), std::string::npos) << s.message();
  bad = good_store(true);
  const auto page = std::span(bad["000000000002.seg"]).first(kHeaderPage);
  page[8] = std::byte{9};
  fix_crc(page);
  s = open_and_check(bad, false);
  EXPECT_EQ(s.code(), Code::kUnsupported) << s.message();
}

TEST(EngineStores, ForeignMagicAndForeignSegmentsAreRefused) {
  Files bad = good_store(true);
  for (std::byte& b : bad["MANIFEST"]) b = std::byte{'x'};
  EXPECT_CODE(kCorruption, open_and_check(bad, false));
  bad["MANIFEST"].clear();
  EXPECT_CODE(kCorruption, open_and_check(bad, false)) << "an empty manifest";
  bad = good_store(true);
  std::swap(bad["000000000000.seg"], bad["000000000002.seg"]);
  EXPECT_CODE(kCorruption, open_and_check(bad, false));
  bad = good_store(true);
  bad["000000000002.seg"] = good_store(true)["000000000002.seg"];  // of another store
  EXPECT_CODE(kCorruption, open_and_check(bad, false));
  bad = good_store(true);
  std::ranges::swap_ranges(std::span(bad["MANIFEST"]).first(kHeaderPage), std::span(bad["MANIFEST"]).subspan(kHeaderPage));
  EXPECT_CODE(kCorruption, open_and_check(bad, false)) << "each slot in the other's place";
}

TEST(EngineStores, AnOldManifestIsToldByTheEpochOfItsSegments) {
  auto fs = open_fs("mem:");
  EngineOptions o = options();
  o.create = Create::kIfMissing;
  { EXPECT_OK(open_engine(fs, o)->append(pattern(0, 10))); }
  const auto old = save(*fs)["MANIFEST"];
  {
    auto engine = open_engine(fs, o);
    EXPECT_OK(engine->append(pattern(0, 9'000)));
    EXPECT_OK(engine->sync());
  }
  Files bad = save(*fs);
  bad["MANIFEST"] = old;
  EXPECT_CODE(kCorruption, open_and_check(bad, false));
}

TEST(EngineStores, LeftoversAreRemovedAndForeignFilesStay) {
  Files files = good_store(true);
  files["000000000003.seg.new"] = {std::byte{1}};
  files["MANIFEST.new"] = {};
  files["notes.txt"] = {std::byte{'n'}};
  files["zz.seg.new"] = {};
  auto fs = restore(files);
  { EXPECT_OK(Engine::open(fs, "store", options(true))); }
  EXPECT_OK(fs->stat("store/MANIFEST.new")) << "a reader removes nothing";
  { EXPECT_OK(Engine::open(fs, "store", options())); }
  EXPECT_CODE(kNotFound, fs->stat("store/000000000003.seg.new"));
  EXPECT_CODE(kNotFound, fs->stat("store/MANIFEST.new"));
  EXPECT_OK(fs->stat("store/notes.txt"));
  EXPECT_OK(fs->stat("store/zz.seg.new"));
}

TEST(EngineStores, PlacesThatAreNoStoreAreRefusedAndStayAsTheyWere) {
  TemporaryDirectory directory;
  auto fs = open_fs("local://" + directory.path());
  EXPECT_CODE(kNotFound, Engine::open(fs, "nothing", options()));
  EXPECT_CODE(kNotFound, Engine::open(fs, "", options()));
  EngineOptions create = options();
  create.create = Create::kIfMissing;
  EXPECT_CODE(kNotFound, Engine::open(fs, "missing/parent", create));
  EXPECT_CODE(kInvalid, Engine::open(fs, "../up", create));
  EXPECT_CODE(kInvalid, Engine::open(fs, "/abs", create));
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
  { EXPECT_OK(fs->open("file", {.write = true, .create = Create::kExclusive})); }
  EXPECT_CODE(kInvalid, Engine::open(fs, "file", create));
  EXPECT_OK(Engine::open(fs, "store", create));
  create.create = Create::kExclusive;
  EXPECT_CODE(kExists, Engine::open(fs, "store", create));
  EngineOptions other = options();
  other.kind = "log";
  const auto wrong = Engine::open(fs, "store", other);
  EXPECT_CODE(kInvalid, wrong);
  EXPECT_NE(wrong.status().message().find("'engine'"), std::string::npos) << wrong.status().message();
  EXPECT_NE(wrong.status().message().find("'log'"), std::string::npos);
}

TEST(EngineStores, StoresAreOpenedByUrl) {
  TemporaryDirectory directory;
  EngineOptions create = options();
  create.create = Create::kIfMissing;
  for (const std::string& url : {"local://" + directory.path() + "#events", "local://" + directory.path() + "/fresh"}) {
    { EXPECT_OK(Engine::open(url, create)); }
    EXPECT_OK(Engine::open(url, options()));
  }
  EXPECT_CODE(kInvalid, Engine::open("nowhere:///x", create));
  EXPECT_CODE(kNotFound, Engine::open("local://" + directory.path() + "/a/b", create));
  EXPECT_FALSE(Engine::open("", create).ok());
}

TEST(EngineStores, OptionsOutOfRangeNameTheFieldAndChangeNothing) {
  auto fs = open_fs("mem:");
  EngineOptions good = options();
  good.create = Create::kIfMissing;
  const auto refuse = [&](auto change, const char* field) {
    EngineOptions o = good;
    change(o);
    const auto engine = Engine::open(fs, "store", o);
    EXPECT_CODE(kInvalid, engine);
    EXPECT_NE(engine.status().message().find(field), std::string::npos) << engine.status().message();
  };
  refuse([](EngineOptions& o) { o.segment_size = 5000_B; }, "segment_size");
  refuse([](EngineOptions& o) { o.segment_size = 256_B; }, "segment_size");
  refuse([](EngineOptions& o) { o.segment_size = 128_GiB; }, "segment_size");
  refuse([](EngineOptions& o) { o.allow_small_segments = false; }, "segment_size");
  refuse([](EngineOptions& o) { o.mode = FileMode::kDirect; }, "mode");
  refuse([](EngineOptions& o) { o.allocate_ahead = 0_B; }, "allocate_ahead");
  refuse([](EngineOptions& o) { o.prepared_segments = 65; }, "prepared_segments");
  refuse([](EngineOptions& o) { o.claim_timeout = Duration(-1); }, "claim_timeout");
  refuse([](EngineOptions& o) { o.kind = ""; }, "kind");
  refuse([](EngineOptions& o) { o.kind = "sixteen_letters_"; }, "kind");
  refuse([](EngineOptions& o) { o.kind = "a b"; }, "kind");
  refuse([](EngineOptions& o) { o.read_only = true; }, "create");
  refuse([](EngineOptions& o) { o.tail_policy = static_cast<TailPolicy>(7); }, "tail_policy");
  EXPECT_CODE(kNotFound, fs->stat("store"));
}

TEST(EngineStores, AnotherProcessIsRefusedWhileOneOwnsIt) {
  TemporaryDirectory directory;
  auto fs = open_fs("local://" + directory.path());
  EngineOptions create = options();
  create.create = Create::kIfMissing;
  auto engine = open_engine(fs, create);
  ASSERT_OK(engine->append(pattern(0, 100)));
  ASSERT_OK(engine->sync());
  const pid_t child = ::fork();
  if (child == 0) {
    auto other = open_file_system("local://" + directory.path());
    int result = 1;
    if (other.ok()) {
      const bool refused = Engine::open(*other, "store", options()).code() == Code::kLocked;
      const bool readable = Engine::open(*other, "store", options(true)).ok();
      result = refused && readable ? 0 : 2;
    }
    ::_exit(result);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(EngineStores, AReadOnlyDirectoryCanBeReadAndNotOwned) {
  TemporaryDirectory directory;
  {
    auto fs = open_fs("local://" + directory.path());
    EngineOptions create = options();
    create.create = Create::kIfMissing;
    auto engine = open_engine(fs, create);
    ASSERT_OK(engine->append(pattern(0, 100)));
    ASSERT_OK(engine->close());
  }
  const auto store = std::filesystem::path(directory.path()) / "store";
  std::filesystem::permissions(directory.path(), std::filesystem::perms(0755));
  for (const auto& e : std::filesystem::directory_iterator(store)) std::filesystem::permissions(e, std::filesystem::perms(0444));
  std::filesystem::permissions(store, std::filesystem::perms(0555));
  const pid_t child = ::fork();
  if (child == 0) {
    if (::getuid() == 0 && ::setuid(65534) != 0) ::_exit(3);  // root passes every permission
    auto other = open_file_system("local://" + directory.path());
    int result = 1;
    if (other.ok()) {
      EngineOptions create = options();
      create.create = Create::kIfMissing;
      const bool refused = Engine::open(*other, "store", options()).code() == Code::kAccess &&
                           Engine::open(*other, "store", create).code() == Code::kAccess;
      auto reader = Engine::open(*other, "store", options(true));
      result = refused && reader.ok() && (*reader)->tails().committed.value == 100 ? 0 : 2;
    }
    ::_exit(result);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  std::filesystem::permissions(store, std::filesystem::perms(0755));
}

}  // namespace
}  // namespace tier::testing
