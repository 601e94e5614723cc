/// The one contract suite of the floor: include/tier/fs.h, against every file system and mode.
///
/// TIER_TEST_FS   what to run it against, separated by spaces: URL[?MODE], MODE one of buffered, mapped, direct,
///                write-through, direct+write-through. Default: mem:, mem:NAME, sim:, a temporary folder in all, tmpfs.
/// Method         each test works in a fresh directory of its own; memory, offsets, sizes are multiples of 4096,
///                unless a test is about those that are not.
#include <atomic>
#include <cstring>
#include <limits>
#include <sstream>
#include <thread>

#include "fs/fs_fixture.h"
#include "testing/sim_fs.h"

namespace tier::testing {
namespace {

constexpr std::size_t kUnit = 4096;
constexpr FileMode kModes[] = {FileMode::kBuffered, FileMode::kMapped, FileMode::kDirect, FileMode::kWriteThrough,
                               FileMode::kDirectWriteThrough};

struct Target {
  std::string url;
  FileMode mode = FileMode::kBuffered;
};

void PrintTo(const Target& target, std::ostream* out) { *out << target.url << '?' << file_mode_name(target.mode); }

TemporaryFolder& folder() {
  static TemporaryFolder f;
  return f;
}
/// tmpfs fills holes when they are read through a mapping, and knows no disk.
TemporaryFolder& memory_folder() {
  static TemporaryFolder f("/dev/shm");
  return f;
}

std::vector<Target> targets() {
  register_sim_file_system();
  std::vector<Target> all;
  if (const char* chosen = std::getenv("TIER_TEST_FS"); chosen != nullptr && *chosen != '\0') {
    std::istringstream words(chosen);
    for (std::string word; words >> word;) {
      Target target{word.substr(0, word.find('?'))};
      if (const std::size_t at = word.find('?'); at != std::string::npos)
        for (const FileMode mode : kModes)
          if (word.substr(at + 1) == file_mode_name(mode)) target.mode = mode;
      all.push_back(target);
    }
    return all;
  }
  all.push_back({"mem:"});
  all.push_back({"mem:contract", FileMode::kMapped});
  all.push_back({"sim:contract"});
  all.push_back({"sim:contract", FileMode::kDirect});
  for (const FileMode mode : kModes) all.push_back({folder().url(), mode});
  if (::access("/dev/shm", W_OK) == 0)
    for (const FileMode mode : {FileMode::kBuffered, FileMode::kMapped}) all.push_back({memory_folder().url(), mode});
  return all;
}

std::string target_name(const ::testing::TestParamInfo<Target>& info) {
  std::string name = info.param.url.substr(0, info.param.url.find(':')) + "_" + file_mode_name(info.param.mode) + "_" +
                     std::to_string(info.index);
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

class FsContract : public ::testing::TestWithParam<Target> {
 protected:
  void SetUp() override {
    static std::atomic<int> number{0};
    fs = open_fs_or_fail(GetParam().url, {.create = true});
    ASSERT_NE(fs, nullptr);
    directory = "contract-" + std::to_string(::getpid()) + "-" + std::to_string(number.fetch_add(1));
    ASSERT_OK(fs->create_directory(directory));
  }
  void TearDown() override {
    if (fs != nullptr) remove_all(directory);
  }
  void remove_all(const std::string& path) {
    if (const auto entries = fs->list(path); entries.ok())
      for (const DirectoryEntry& e : *entries) {
        if (e.directory)
          remove_all(path + "/" + e.name);
        else
          EXPECT_OK(fs->remove(path + "/" + e.name));
      }
    EXPECT_OK(fs->remove(path));
  }

  std::string at(const std::string& name) const { return directory + "/" + name; }
  OpenOptions creating() const { return {.write = true, .create = Create::kIfMissing, .mode = GetParam().mode}; }
  OpenOptions reading() const { return {.mode = GetParam().mode}; }
  std::unique_ptr<File> make(const std::string& name) { return open_or_fail(*fs, at(name), creating()); }
  bool can(Capability c) const { return fs->capabilities().has(c); }

  std::shared_ptr<FileSystem> fs;
  std::string directory;
};

TEST_P(FsContract, OpeningWhatIsMissingIsNotFoundAndCreatesNothing) {
  EXPECT_CODE(Code::kNotFound, fs->open(at("no"), {}));
  EXPECT_CODE(Code::kNotFound, fs->open(at("no"), {.write = true}));
  EXPECT_CODE(Code::kNotFound, fs->open(at("no/file"), creating()));
  EXPECT_CODE(Code::kNotFound, fs->stat(at("no")));
  EXPECT_CODE(Code::kNotFound, fs->list(at("no")));
  EXPECT_CODE(Code::kNotFound, fs->remove(at("no")));
  EXPECT_CODE(Code::kNotFound, fs->rename(at("no"), at("other")));
  EXPECT_CODE(Code::kNotFound, fs->create_directory(at("no/directory")));
  EXPECT_CODE(Code::kNotFound, fs->locked(at("no")));
  const auto entries = fs->list(directory);
  ASSERT_OK(entries);
  EXPECT_TRUE(entries->empty());
}

TEST_P(FsContract, ExclusiveCreationRefusesATakenName) {
  OpenOptions exclusive = creating();
  exclusive.create = Create::kExclusive;
  ASSERT_NE(open_or_fail(*fs, at("file"), exclusive), nullptr);
  EXPECT_CODE(Code::kExists, fs->open(at("file"), exclusive));
  ASSERT_OK(fs->create_directory(at("dir")));
  EXPECT_CODE(Code::kExists, fs->open(at("dir"), exclusive));
  EXPECT_CODE(Code::kExists, fs->create_directory(at("dir")));
  EXPECT_CODE(Code::kExists, fs->create_directory(at("file")));
}

TEST_P(FsContract, CreatingNeedsWrite) {
  EXPECT_CODE(Code::kInvalid, fs->open(at("file"), {.create = Create::kIfMissing}));
  ASSERT_NE(make("file"), nullptr);
  // A lock without write is refused where the system's locks need it; it is never granted without excluding others.
  const auto owner = fs->open(at("file"), {.lock = true});
  if (owner.ok())
    EXPECT_TRUE(*fs->locked(at("file")));
  else
    EXPECT_CODE(Code::kInvalid, owner);
}

TEST_P(FsContract, EveryCallRefusesABadPath) {
  const std::string long_name(256, 'n');
  const std::string nul("a\0b", 3);
  std::string long_path = "d";
  while (long_path.size() <= 4096) long_path += "/d";
  for (const std::string& bad :
       {std::string("/etc"), std::string(".."), std::string("../up"), std::string("a/../b"), std::string("."),
        std::string("a/./b"), std::string("a//b"), std::string("a/"), nul, long_name, long_path}) {
    EXPECT_CODE(Code::kInvalid, fs->open(bad, creating()));
    EXPECT_CODE(Code::kInvalid, fs->stat(bad));
    EXPECT_CODE(Code::kInvalid, fs->list(bad));
    EXPECT_CODE(Code::kInvalid, fs->create_directory(bad));
    EXPECT_CODE(Code::kInvalid, fs->remove(bad));
    EXPECT_CODE(Code::kInvalid, fs->rename(bad, at("x")));
    EXPECT_CODE(Code::kInvalid, fs->rename(at("x"), bad));
    EXPECT_CODE(Code::kInvalid, fs->sync_directory(bad));
    EXPECT_CODE(Code::kInvalid, fs->locked(bad));
  }
  // The root is no file.
  EXPECT_CODE(Code::kInvalid, fs->open("", creating()));
  EXPECT_CODE(Code::kInvalid, fs->remove(""));
  EXPECT_CODE(Code::kInvalid, fs->rename("", at("x")));
  EXPECT_CODE(Code::kInvalid, fs->create_directory(""));
  // The longest name is a name.
  const std::string longest(255, 'n');
  EXPECT_OK(fs->open(at(longest), creating()));
  EXPECT_OK(fs->stat(at(longest)));
}

TEST_P(FsContract, AFileIsNoDirectoryAndADirectoryNoFile) {
  ASSERT_NE(make("file"), nullptr);
  ASSERT_OK(fs->create_directory(at("dir")));
  EXPECT_CODE(Code::kInvalid, fs->open(at("dir"), {}));
  EXPECT_CODE(Code::kInvalid, fs->open(at("dir"), creating()));
  EXPECT_CODE(Code::kInvalid, fs->list(at("file")));
  EXPECT_CODE(Code::kInvalid, fs->open(at("file/in"), creating()));
  EXPECT_CODE(Code::kInvalid, fs->stat(at("file/in")));
  EXPECT_CODE(Code::kInvalid, fs->create_directory(at("file/in")));
  EXPECT_CODE(Code::kInvalid, fs->remove(at("file/in")));
  EXPECT_CODE(Code::kInvalid, fs->sync_directory(at("file")));
}

TEST_P(FsContract, WhatIsWrittenIsReadBack) {
  const auto file = make("file");
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->path(), at("file"));
  EXPECT_EQ(*file->size(), 0u);
  const AlignedBuffer bytes = pattern(3 * kUnit, 1);
  ASSERT_OK(file->write_at(0, bytes.span()));
  EXPECT_EQ(*file->size(), 3 * kUnit);
  EXPECT_TRUE(same(read(*file, 0, 3 * kUnit).span(), bytes.span()));
  EXPECT_TRUE(same(read(*file, kUnit, kUnit).span(), bytes.span().subspan(kUnit, kUnit)));
  // Another handle sees it, opened for reading.
  const auto reader = open_or_fail(*fs, at("file"), reading());
  EXPECT_TRUE(same(read(*reader, 0, 3 * kUnit).span(), bytes.span()));
  EXPECT_OK(file->sync(SyncKind::kData));
  EXPECT_OK(file->sync(SyncKind::kAll));
}

TEST_P(FsContract, AReadStopsAtTheEndAndOnlyThere) {
  const auto file = make("file");
  ASSERT_OK(file->write_at(0, pattern(2 * kUnit, 1).span()));
  AlignedBuffer into = zeros(4 * kUnit);
  EXPECT_EQ(*file->read_at(0, into.span()), 2 * kUnit);
  EXPECT_EQ(*file->read_at(kUnit, into.span()), kUnit);
  EXPECT_EQ(*file->read_at(2 * kUnit, into.span()), 0u);
  EXPECT_EQ(*file->read_at(100 * kUnit, into.span()), 0u);
  EXPECT_EQ(*file->read_at(0, {}), 0u);
  EXPECT_CODE(Code::kCorruption, file->read_exactly_at(kUnit, into.span()));
  EXPECT_OK(file->read_exactly_at(0, into.span().first(2 * kUnit)));
}

TEST_P(FsContract, AnEndWithinABlockIsExact) {
  const auto file = make("file");
  ASSERT_OK(file->write_at(0, pattern(2 * kUnit, 1).span()));
  ASSERT_OK(file->truncate(kUnit + 100));
  AlignedBuffer into = zeros(2 * kUnit);
  EXPECT_EQ(*file->read_at(0, into.span()), kUnit + 100);
  EXPECT_TRUE(same(into.span().first(kUnit + 100), pattern(2 * kUnit, 1).span().first(kUnit + 100)));
}

TEST_P(FsContract, AGatherOfManyPartsIsOneRange) {
  const auto file = make("file");
  constexpr std::size_t kParts = 1500;  // over IOV_MAX
  const AlignedBuffer bytes = pattern(kParts * kUnit, 7);
  std::vector<ByteSpan> parts;
  for (std::size_t i = 0; i < kParts; ++i) {
    parts.push_back(bytes.span().subspan(i * kUnit, kUnit));
    if (i % 100 == 0) parts.push_back({});
  }
  ASSERT_OK(file->write_at(kUnit, parts));
  EXPECT_EQ(*file->size(), (kParts + 1) * kUnit);
  EXPECT_TRUE(same(read(*file, 0, kUnit).span(), zeros(kUnit).span()));
  EXPECT_TRUE(same(read(*file, kUnit, kParts * kUnit).span(), bytes.span()));
}

TEST_P(FsContract, NothingToWriteChangesNothing) {
  const auto file = make("file");
  EXPECT_OK(file->write_at(8 * kUnit, ByteSpan{}));
  EXPECT_OK(file->write_at(8 * kUnit, std::span<const ByteSpan>{}));
  EXPECT_OK(file->punch(0, 0));
  EXPECT_EQ(*file->size(), 0u);
}

TEST_P(FsContract, AGapReadsZero) {
  const auto file = make("file");
  ASSERT_OK(file->write_at(1000 * kUnit, pattern(kUnit, 1).span()));
  EXPECT_EQ(*file->size(), 1001 * kUnit);
  EXPECT_TRUE(same(read(*file, 0, 1000 * kUnit).span(), zeros(1000 * kUnit).span()));
  if (can(Capability::kSparse)) {
    EXPECT_LE(file->info()->allocated, 100 * kUnit);
  }
}

TEST_P(FsContract, OverwritingReplacesOnlyTheRange) {
  if (!can(Capability::kOverwrite)) return;
  const auto file = make("file");
  ASSERT_OK(file->write_at(0, pattern(4 * kUnit, 1).span()));
  ASSERT_OK(file->write_at(kUnit, pattern(kUnit, 2).span()));
  EXPECT_TRUE(same(read(*file, 0, kUnit).span(), pattern(4 * kUnit, 1).span().first(kUnit)));
  EXPECT_TRUE(same(read(*file, kUnit, kUnit).span(), pattern(kUnit, 2).span()));
  EXPECT_TRUE(same(read(*file, 2 * kUnit, 2 * kUnit).span(), pattern(4 * kUnit, 1).span().subspan(2 * kUnit)));
  EXPECT_EQ(*file->size(), 4 * kUnit);
}

TEST_P(FsContract, AWriteOverTheEndExtends) {
  const auto file = make("file");
  ASSERT_OK(file->write_at(0, pattern(2 * kUnit, 1).span()));
  ASSERT_OK(file->write_at(kUnit, pattern(4 * kUnit, 2).span()));
  EXPECT_EQ(*file->size(), 5 * kUnit);
  EXPECT_TRUE(same(read(*file, kUnit, 4 * kUnit).span(), pattern(4 * kUnit, 2).span()));
}

TEST_P(FsContract, TruncationCutsAndExtendsWithZeros) {
  const auto file = make("file");
  ASSERT_OK(file->write_at(0, pattern(4 * kUnit, 1).span()));
  ASSERT_OK(file->truncate(kUnit));
  EXPECT_EQ(*file->size(), kUnit);
  ASSERT_OK(file->truncate(3 * kUnit));
  EXPECT_EQ(*file->size(), 3 * kUnit);
  EXPECT_TRUE(same(read(*file, 0, kUnit).span(), pattern(4 * kUnit, 1).span().first(kUnit)));
  EXPECT_TRUE(same(read(*file, kUnit, 2 * kUnit).span(), zeros(2 * kUnit).span()));
  // Within a page too: what was cut off never comes back.
  ASSERT_OK(file->truncate(100));
  ASSERT_OK(file->truncate(kUnit));
  const AlignedBuffer page = read(*file, 0, kUnit);
  EXPECT_TRUE(same(page.span().first(100), pattern(4 * kUnit, 1).span().first(100)));
  EXPECT_TRUE(same(page.span().subspan(100), zeros(kUnit - 100).span()));
}

TEST_P(FsContract, AllocationExtendsWithZerosAndKeepsWhatIsThere) {
  const auto file = make("file");
  if (!can(Capability::kAllocate)) {
    EXPECT_CODE(Code::kUnsupported, file->allocate(0, kUnit));
    return;
  }
  ASSERT_OK(file->write_at(0, pattern(kUnit, 1).span()));
  ASSERT_OK(file->allocate(0, 64 * kUnit));
  EXPECT_EQ(*file->size(), 64 * kUnit);
  EXPECT_GE(file->info()->allocated, 64 * kUnit);
  EXPECT_TRUE(same(read(*file, 0, kUnit).span(), pattern(kUnit, 1).span()));
  EXPECT_TRUE(same(read(*file, kUnit, 63 * kUnit).span(), zeros(63 * kUnit).span()));
  ASSERT_OK(file->allocate(0, kUnit));  // never makes it smaller
  EXPECT_EQ(*file->size(), 64 * kUnit);
}

TEST_P(FsContract, PunchingReadsZeroAndKeepsTheSize) {
  const auto file = make("file");
  const AlignedBuffer bytes = pattern(64 * kUnit, 1);
  ASSERT_OK(file->write_at(0, bytes.span()));
  if (!can(Capability::kPunch)) {
    EXPECT_CODE(Code::kUnsupported, file->punch(0, kUnit));
    EXPECT_TRUE(same(read(*file, 0, 64 * kUnit).span(), bytes.span()));
    return;
  }
  ASSERT_OK(file->sync(SyncKind::kAll));
  const std::uint64_t before = file->info()->allocated;
  ASSERT_OK(file->punch(8 * kUnit, 16 * kUnit));
  ASSERT_OK(file->punch(40 * kUnit + 100, 200));  // within a block
  ASSERT_OK(file->sync(SyncKind::kAll));
  EXPECT_LE(file->info()->allocated + 16 * kUnit, before);
  EXPECT_EQ(*file->size(), 64 * kUnit);
  EXPECT_TRUE(same(read(*file, 0, 8 * kUnit).span(), bytes.span().first(8 * kUnit)));
  EXPECT_TRUE(same(read(*file, 8 * kUnit, 16 * kUnit).span(), zeros(16 * kUnit).span()));
  EXPECT_TRUE(same(read(*file, 24 * kUnit, 16 * kUnit).span(), bytes.span().subspan(24 * kUnit, 16 * kUnit)));
  const AlignedBuffer page = read(*file, 40 * kUnit, kUnit);
  EXPECT_TRUE(same(page.span().first(100), bytes.span().subspan(40 * kUnit, 100)));
  EXPECT_TRUE(same(page.span().subspan(100, 200), zeros(200).span()));
  EXPECT_TRUE(same(page.span().subspan(300), bytes.span().subspan(40 * kUnit + 300, kUnit - 300)));
  // To the end and past it.
  ASSERT_OK(file->punch(60 * kUnit, 100 * kUnit));
  EXPECT_EQ(*file->size(), 64 * kUnit);
  EXPECT_TRUE(same(read(*file, 60 * kUnit, 4 * kUnit).span(), zeros(4 * kUnit).span()));
}

TEST_P(FsContract, TheModeIsWhatWasAskedForOrAnHonestFallback) {
  const auto file = make("file");
  const FileMode asked = GetParam().mode;
  const FileMode got = file->mode();
  if (got != asked) {
    EXPECT_TRUE(got == FileMode::kBuffered ||
                (asked == FileMode::kDirectWriteThrough && got == FileMode::kWriteThrough))
        << file_mode_name(got);
  }
  const bool direct = got == FileMode::kDirect || got == FileMode::kDirectWriteThrough;
  if (direct)
    EXPECT_GE(file->alignment(), 1u);
  else
    EXPECT_EQ(file->alignment(), 1u);
}

TEST_P(FsContract, MisalignedRequestsOfADirectFileAreInvalidAndNameTheAlignment) {
  const auto file = make("file");
  if (file->alignment() == 1) return;  // not direct: nothing is misaligned
  AlignedBuffer bytes = pattern(4 * kUnit, 1);
  ASSERT_OK(file->write_at(0, bytes.span()));
  const std::string unit = std::to_string(file->alignment());
  for (const Status& s :
       {file->write_at(1, bytes.span().first(kUnit)), file->write_at(0, bytes.span().first(100)),
        file->write_at(0, bytes.span().subspan(1, kUnit)), file->read_at(1, bytes.span().first(kUnit)).status(),
        file->read_at(0, bytes.span().first(100)).status(),
        file->read_at(0, bytes.span().subspan(1, kUnit)).status()}) {
    EXPECT_CODE(Code::kInvalid, s);
    EXPECT_NE(s.message().find(unit), std::string::npos) << s.message();
  }
  EXPECT_TRUE(same(read(*file, 0, 4 * kUnit).span(), pattern(4 * kUnit, 1).span()));
}

TEST_P(FsContract, AFileOpenedForReadingRefusesChanges) {
  ASSERT_OK(make("file")->write_at(0, pattern(kUnit, 1).span()));
  const auto file = open_or_fail(*fs, at("file"), reading());
  EXPECT_CODE(Code::kAccess, file->write_at(0, pattern(kUnit, 2).span()));
  EXPECT_CODE(Code::kAccess, file->truncate(0));
  EXPECT_CODE(Code::kAccess, file->allocate(0, kUnit));
  EXPECT_CODE(Code::kAccess, file->punch(0, kUnit));
  EXPECT_TRUE(same(read(*file, 0, kUnit).span(), pattern(kUnit, 1).span()));
}

TEST_P(FsContract, RangesPastEveryLimitAreRefused) {
  const auto file = make("file");
  ASSERT_OK(file->write_at(0, pattern(kUnit, 1).span()));
  const AlignedBuffer bytes = pattern(kUnit, 2);
  constexpr std::uint64_t kTop = std::numeric_limits<std::uint64_t>::max() & ~std::uint64_t{kUnit - 1};
  for (const std::uint64_t offset : {kTop, kTop / 2 + kUnit, std::uint64_t{1} << 63}) {
    EXPECT_FALSE(file->write_at(offset, bytes.span()).ok());
    EXPECT_FALSE(file->allocate(offset, kUnit).ok());
    EXPECT_FALSE(file->allocate(kUnit, offset).ok());
    EXPECT_FALSE(file->truncate(offset).ok());
    AlignedBuffer into = zeros(kUnit);
    if (const auto n = file->read_at(offset, into.span()); n.ok()) {
      EXPECT_EQ(*n, 0u);
    }
    EXPECT_FALSE(file->mapping(offset, kUnit).ok());
    EXPECT_FALSE(file->mapping(kUnit, offset).ok());
  }
  EXPECT_EQ(*file->size(), kUnit);
}

TEST_P(FsContract, AMappingIsTheBytes) {
  const auto file = make("file");
  ASSERT_OK(file->write_at(0, pattern(4 * kUnit, 1).span()));
  const auto map = file->mapping(0, 4 * kUnit);
  if (!map.ok()) {
    EXPECT_CODE(Code::kUnsupported, map);
    EXPECT_TRUE(!can(Capability::kMapping) || file->alignment() != 1);
    return;
  }
  EXPECT_TRUE(can(Capability::kMapping));
  EXPECT_TRUE(same(*map, pattern(4 * kUnit, 1).span()));
  // Stores are writes, writes are seen.
  std::memset(map->data() + kUnit, 0x5a, 100);
  const AlignedBuffer page = read(*file, kUnit, kUnit);
  EXPECT_EQ(page.span()[99], std::byte{0x5a});
  EXPECT_EQ(page.span()[100], pattern(4 * kUnit, 1).span()[kUnit + 100]);
  ASSERT_OK(file->write_at(2 * kUnit, pattern(kUnit, 3).span()));
  EXPECT_TRUE(same(map->subspan(2 * kUnit, kUnit), pattern(kUnit, 3).span()));
  EXPECT_OK(file->sync(SyncKind::kData));
  // An odd range of it.
  const auto part = file->mapping(kUnit + 10, 20);
  ASSERT_OK(part);
  EXPECT_EQ(part->size(), 20u);
  EXPECT_EQ((*part)[0], std::byte{0x5a});
  // It lies below the size.
  EXPECT_CODE(Code::kInvalid, file->mapping(0, 5 * kUnit));
  EXPECT_CODE(Code::kInvalid, file->mapping(5 * kUnit, kUnit));
}

TEST_P(FsContract, AMappedFileDoesNotShrinkUnderIt) {
  auto file = make("file");
  ASSERT_OK(file->write_at(0, pattern(8 * kUnit, 1).span()));
  if (!file->mapping(kUnit, 3 * kUnit).ok()) return;  // AMappingIsTheBytes says whether that is right
  EXPECT_CODE(Code::kBusy, file->truncate(2 * kUnit));
  const auto other = open_or_fail(*fs, at("file"), creating());
  EXPECT_CODE(Code::kBusy, other->truncate(2 * kUnit));
  EXPECT_EQ(*file->size(), 8 * kUnit);
  EXPECT_OK(file->truncate(4 * kUnit));
  file.reset();
  EXPECT_OK(other->truncate(2 * kUnit));
}

TEST_P(FsContract, AMappingStaysWhereItIsWhileTheFileGrows) {
  const auto file = make("file");
  ASSERT_OK(file->write_at(0, pattern(kUnit, 1).span()));
  const auto map = file->mapping(0, kUnit);
  if (!map.ok()) return;  // AMappingIsTheBytes says whether that is right
  for (std::uint64_t offset = kUnit; offset <= 4096 * kUnit; offset *= 4)
    ASSERT_OK(file->write_at(offset, pattern(kUnit, offset).span()));
  EXPECT_TRUE(same(*map, pattern(kUnit, 1).span()));
  std::memset(map->data(), 0x77, kUnit);
  EXPECT_EQ(read(*file, 0, kUnit).span()[5], std::byte{0x77});
  for (std::uint64_t offset = kUnit; offset <= 4096 * kUnit; offset *= 4)
    EXPECT_TRUE(same(read(*file, offset, kUnit).span(), pattern(kUnit, offset).span())) << offset;
}

TEST_P(FsContract, NamesAreListedInByteOrder) {
  for (const char* name : {"b", "a", "Z", "a.b", "\xc3\xa9", "10", "9"}) ASSERT_NE(make(name), nullptr);
  ASSERT_OK(fs->create_directory(at("dir")));
  const auto entries = fs->list(directory);
  ASSERT_OK(entries);
  std::vector<std::string> names;
  for (const DirectoryEntry& e : *entries) {
    names.push_back(e.name);
    EXPECT_EQ(e.directory, e.name == "dir");
  }
  EXPECT_EQ(names, (std::vector<std::string>{"10", "9", "Z", "a", "a.b", "b", "dir", "\xc3\xa9"}));
  const auto root = fs->list("");
  ASSERT_OK(root);
  EXPECT_TRUE(
      std::any_of(root->begin(), root->end(), [this](const auto& e) { return e.name == directory && e.directory; }));
}

TEST_P(FsContract, StatTellsFilesFromDirectories) {
  ASSERT_OK(make("file")->write_at(0, pattern(3 * kUnit, 1).span()));
  ASSERT_OK(fs->create_directory(at("dir"), NameSync::kLater));
  EXPECT_FALSE(fs->stat(at("file"))->directory);
  EXPECT_EQ(fs->stat(at("file"))->size, 3 * kUnit);
  EXPECT_TRUE(fs->stat(at("dir"))->directory);
  EXPECT_TRUE(fs->stat("")->directory);
  EXPECT_OK(fs->sync_directory(directory));
  EXPECT_OK(fs->sync_directory(""));
}

TEST_P(FsContract, RemovalTakesFilesAndEmptyDirectories) {
  ASSERT_NE(make("file"), nullptr);
  ASSERT_OK(fs->create_directory(at("dir")));
  ASSERT_NE(make("dir/file"), nullptr);
  EXPECT_CODE(Code::kInvalid, fs->remove(at("dir")));
  EXPECT_OK(fs->remove(at("dir/file"), NameSync::kLater));
  EXPECT_OK(fs->remove(at("dir")));
  EXPECT_OK(fs->remove(at("file")));
  EXPECT_TRUE(fs->list(directory)->empty());
}

TEST_P(FsContract, ARemovedFileLivesWhileItIsOpen) {
  const auto file = make("file");
  ASSERT_OK(file->write_at(0, pattern(2 * kUnit, 1).span()));
  ASSERT_OK(fs->remove(at("file")));
  EXPECT_CODE(Code::kNotFound, fs->stat(at("file")));
  const auto next = make("file");
  EXPECT_EQ(*next->size(), 0u);
  ASSERT_OK(file->write_at(kUnit, pattern(kUnit, 2).span()));
  EXPECT_TRUE(same(read(*file, 0, kUnit).span(), pattern(2 * kUnit, 1).span().first(kUnit)));
  EXPECT_EQ(*next->size(), 0u);
}

TEST_P(FsContract, RenamingReplacesAndMoves) {
  ASSERT_OK(make("a")->write_at(0, pattern(kUnit, 1).span()));
  ASSERT_OK(make("b")->write_at(0, pattern(kUnit, 2).span()));
  const auto old = open_or_fail(*fs, at("b"), reading());
  ASSERT_OK(fs->rename(at("a"), at("b")));
  EXPECT_CODE(Code::kNotFound, fs->stat(at("a")));
  EXPECT_TRUE(same(read(*open_or_fail(*fs, at("b"), reading()), 0, kUnit).span(), pattern(kUnit, 1).span()));
  EXPECT_TRUE(same(read(*old, 0, kUnit).span(), pattern(kUnit, 2).span()));
  ASSERT_OK(fs->create_directory(at("dir")));
  ASSERT_OK(fs->rename(at("b"), at("dir/c"), NameSync::kLater));
  EXPECT_EQ(fs->list(at("dir"))->size(), 1u);
  ASSERT_OK(fs->rename(at("dir"), at("moved")));
  EXPECT_TRUE(same(read(*open_or_fail(*fs, at("moved/c"), reading()), 0, kUnit).span(), pattern(kUnit, 1).span()));
  EXPECT_OK(fs->rename(at("moved/c"), at("moved/c")));
  EXPECT_OK(fs->stat(at("moved/c")));
}

TEST_P(FsContract, RenamingRefusesWhatMakesNoSense) {
  ASSERT_NE(make("file"), nullptr);
  ASSERT_OK(fs->create_directory(at("dir")));
  ASSERT_OK(fs->create_directory(at("full")));
  ASSERT_NE(make("full/x"), nullptr);
  EXPECT_CODE(Code::kInvalid, fs->rename(at("file"), at("dir")));
  EXPECT_CODE(Code::kInvalid, fs->rename(at("dir"), at("file")));
  EXPECT_CODE(Code::kInvalid, fs->rename(at("dir"), at("full")));
  EXPECT_CODE(Code::kInvalid, fs->rename(at("dir"), at("dir/in")));
  EXPECT_CODE(Code::kNotFound, fs->rename(at("file"), at("no/in")));
  EXPECT_CODE(Code::kInvalid, fs->rename(at("file"), at("file/in")));
  EXPECT_EQ(fs->list(directory)->size(), 3u);
  EXPECT_OK(fs->rename(at("full"), at("dir")));  // over an empty directory
  EXPECT_OK(fs->stat(at("dir/x")));
}

TEST_P(FsContract, ALockExcludesTheSecondOwnerUntilTheFirstIsGone) {
  if (!can(Capability::kLocking)) return;
  OpenOptions owning = creating();
  owning.lock = true;
  auto owner = open_or_fail(*fs, at("LOCK"), owning);
  EXPECT_TRUE(*fs->locked(at("LOCK")));
  const auto second = fs->open(at("LOCK"), owning);
  EXPECT_CODE(Code::kLocked, second);
  EXPECT_NE(second.status().message().find("LOCK"), std::string::npos);
  // Readers and writers that do not ask for ownership are not held up, and locked() does not take it.
  EXPECT_OK(fs->open(at("LOCK"), reading()));
  EXPECT_OK(fs->open(at("LOCK"), creating()));
  EXPECT_TRUE(*fs->locked(at("LOCK")));
  EXPECT_CODE(Code::kLocked, fs->open(at("LOCK"), owning));
  // Another file has another lock.
  EXPECT_OK(fs->open(at("other"), owning));
  EXPECT_FALSE(*fs->locked(at("other")));
  owner.reset();
  EXPECT_FALSE(*fs->locked(at("LOCK")));
  EXPECT_OK(fs->open(at("LOCK"), owning));
}

TEST_P(FsContract, ALockedFileThatIsRemovedHasALockOfItsOwn) {
  if (!can(Capability::kLocking)) return;
  OpenOptions owning = creating();
  owning.lock = true;
  const auto owner = open_or_fail(*fs, at("seg"), owning);
  ASSERT_OK(fs->rename(at("seg"), at("moved")));
  EXPECT_CODE(Code::kLocked, fs->open(at("moved"), owning));
  EXPECT_OK(fs->open(at("seg"), owning));
}

TEST_P(FsContract, SpaceIsToldWithinTheCapacity) {
  const auto space = fs->space();
  ASSERT_OK(space);
  EXPECT_GT(space->capacity, 0u);
  EXPECT_LE(space->available, space->capacity);
}

TEST_P(FsContract, TheUrlOpensTheSameAgain) {
  EXPECT_EQ(fs->url(), GetParam().url);
  if (GetParam().url == "mem:") return;
  ASSERT_NE(make("file"), nullptr);
  const auto again = open_fs_or_fail(fs->url());
  EXPECT_OK(again->stat(at("file")));
}

TEST_P(FsContract, ThreadsWriteAndReadDisjointRanges) {
  const auto file = make("file");
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kRounds = 40;
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      AlignedBuffer into = zeros(kUnit);
      for (std::size_t r = 0; r < kRounds; ++r) {
        const std::uint64_t offset = (r * kThreads + t) * kUnit;  // they extend the file by turns
        const AlignedBuffer bytes = pattern(kUnit, offset + 1);
        if (!file->write_at(offset, bytes.span()).ok()) ++failures;
        const auto n = file->read_at(offset, into.span());
        if (!n.ok() || *n != kUnit || !same(into.span(), bytes.span())) ++failures;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(failures.load(), 0);
  EXPECT_EQ(*file->size(), kThreads * kRounds * kUnit);
  for (std::size_t i = 0; i < kThreads * kRounds; ++i)
    EXPECT_TRUE(same(read(*file, i * kUnit, kUnit).span(), pattern(kUnit, i * kUnit + 1).span())) << i;
}

TEST_P(FsContract, ThreadsMakeAndRemoveNames) {
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int r = 0; r < 20; ++r) {
        const std::string name = at("t" + std::to_string(t));
        OpenOptions options = creating();
        options.name_sync = NameSync::kLater;
        if (!fs->open(name, options).ok()) ++failures;
        if (!fs->rename(name, name + ".x", NameSync::kLater).ok()) ++failures;
        if (!fs->list(directory).ok()) ++failures;
        if (!fs->remove(name + ".x", NameSync::kLater).ok()) ++failures;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(failures.load(), 0);
  EXPECT_TRUE(fs->list(directory)->empty());
}

TEST_P(FsContract, OperationsInFlightEndOnce) {
  const auto file = make("file");
  constexpr std::size_t kOps = 64;
  const AlignedBuffer bytes = pattern(kOps * kUnit, 3);
  std::vector<TestOp> writes(kOps);
  for (std::size_t i = 0; i < kOps; ++i) {
    writes[i].kind = IoOp::Kind::kWrite;
    writes[i].offset = i * kUnit;
    writes[i].from = bytes.span().subspan(i * kUnit, kUnit);
    file->start(writes[i]);
  }
  for (TestOp& op : writes) {
    while (!op.finished.load()) ASSERT_OK(fs->poll(Deadline::never()));
    EXPECT_OK(op.status);
    EXPECT_EQ(op.transferred, kUnit);
  }
  TestOp sync;
  sync.kind = IoOp::Kind::kSync;
  file->start(sync);
  while (!sync.finished.load()) ASSERT_OK(fs->poll(Deadline::never()));
  EXPECT_OK(sync.status);
  AlignedBuffer into = zeros((kOps + 1) * kUnit);
  std::vector<TestOp> reads(2);
  reads[0].into = into.span().first(kOps * kUnit / 2);
  reads[1].offset = kOps * kUnit / 2;
  reads[1].into = into.span().subspan(kOps * kUnit / 2);  // one unit past the end
  for (TestOp& op : reads) file->start(op);
  for (TestOp& op : reads)
    while (!op.finished.load()) ASSERT_OK(fs->poll(Deadline::never()));
  EXPECT_OK(reads[0].status);
  EXPECT_EQ(reads[0].transferred, kOps * kUnit / 2);
  EXPECT_OK(reads[1].status);
  EXPECT_EQ(reads[1].transferred, kOps * kUnit / 2);
  EXPECT_TRUE(same(into.span().first(kOps * kUnit), bytes.span()));
  EXPECT_EQ(*fs->poll(Deadline::now()), 0u);
}

/// Random calls against a vector of bytes.
TEST_P(FsContract, AModelAgrees) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto below = [&random](std::uint64_t n) { return random() % n; };
  auto file = make("file");
  std::vector<std::byte> model;
  constexpr std::uint64_t kUnits = 64;
  const std::uint64_t unit = std::max<std::uint64_t>(file->alignment(), 512);
  for (int step = 0; step < 400; ++step) {
    const std::uint64_t offset = below(kUnits) * unit;
    const std::size_t length = static_cast<std::size_t>((1 + below(8)) * unit);
    switch (below(12)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        const AlignedBuffer bytes = pattern(length, random());
        ASSERT_OK(file->write_at(offset, bytes.span()));
        if (model.size() < offset + length) model.resize(offset + length);
        std::copy(bytes.span().begin(), bytes.span().end(), model.begin() + static_cast<std::ptrdiff_t>(offset));
        break;
      }
      case 4: {
        if (!can(Capability::kPunch)) break;
        ASSERT_OK(file->punch(offset, length));
        for (std::uint64_t i = offset; i < std::min<std::uint64_t>(offset + length, model.size()); ++i)
          model[i] = std::byte{0};
        break;
      }
      case 5: {
        const std::uint64_t size = below(kUnits) * unit;
        ASSERT_OK(file->truncate(size));
        model.resize(size);
        break;
      }
      case 6: {
        if (!can(Capability::kAllocate)) break;
        ASSERT_OK(file->allocate(offset, length));
        if (model.size() < offset + length) model.resize(offset + length);
        break;
      }
      case 7: ASSERT_OK(file->sync(below(2) == 0 ? SyncKind::kData : SyncKind::kAll)); break;
      case 8:
        file = make("file");  // opened anew, the old handle closed after
        break;
      default: {
        AlignedBuffer into = zeros(length);
        const auto n = file->read_at(offset, into.span());
        ASSERT_OK(n);
        const std::uint64_t expected =
            offset >= model.size() ? 0 : std::min<std::uint64_t>(length, model.size() - offset);
        ASSERT_EQ(*n, expected);
        ASSERT_TRUE(same(into.span().first(*n), ByteSpan(model).subspan(offset >= model.size() ? 0 : offset, *n)));
      }
    }
    ASSERT_EQ(*file->size(), model.size()) << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(FileSystems, FsContract, ::testing::ValuesIn(targets()), target_name);

}  // namespace
}  // namespace tier::testing
