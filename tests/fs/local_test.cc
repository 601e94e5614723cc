/// What is particular to `local:`: directories, links, permissions, short transfers, failing syncs, full disks.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <fstream>

#include "fs/local_fixture.h"

namespace tier::testing {
namespace {

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void put(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

// --- the root ---

TEST(LocalRoot, MustBeADirectoryThatExists) {
  const TemporaryFolder folder;
  put(folder / "file", "x");
  const auto missing = open_file_system(folder.url() + "/no");
  EXPECT_CODE(Code::kNotFound, missing);
  EXPECT_NE(missing.status().message().find(folder / "no"), std::string::npos) << missing.status().message();
  const auto file = open_file_system(folder.url() + "/file");
  EXPECT_CODE(Code::kInvalid, file);
  EXPECT_NE(file.status().message().find("in place of a directory"), std::string::npos);
  EXPECT_CODE(Code::kInvalid, open_file_system(folder.url() + "/file", {.create = true}));
  EXPECT_FALSE(open_file_system(folder.url() + "/file/in", {.create = true}).ok());
  EXPECT_EQ(contents(folder / "file"), "x");
}

TEST(LocalRoot, CreatesItsLastComponentOnly) {
  const TemporaryFolder folder;
  EXPECT_CODE(Code::kNotFound, open_file_system(folder.url() + "/a/b", {.create = true}));
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  ASSERT_OK(open_file_system(folder.url() + "/a", {.create = true}));
  struct stat s {};
  ASSERT_EQ(::stat((folder / "a").c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0700u);
  EXPECT_OK(open_file_system(folder.url() + "/a/", {.create = true}));
}

TEST(LocalRoot, OpeningForReadingLeavesNothingBehind) {
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  EXPECT_CODE(Code::kNotFound, fs->open("f", {}));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(LocalRoot, IsDecodedOnce) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "a b#c");
  std::filesystem::create_directory(folder / "%41");
  EXPECT_OK(open_file_system(folder.url() + "/a%20b%23c"));
  EXPECT_OK(open_file_system(folder.url() + "/%2541"));
  EXPECT_CODE(Code::kNotFound, open_file_system(folder.url() + "/%41"));
}

TEST(LocalRoot, MakesFilesAndDirectoriesForTheirOwnerOnly) {
  const mode_t before = ::umask(0);
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  ASSERT_OK(fs->create_directory("d"));
  ASSERT_OK(fs->open("d/f", kCreate));
  ::umask(before);
  struct stat s {};
  ASSERT_EQ(::stat((folder / "d").c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0700u);
  ASSERT_EQ(::stat((folder / "d/f").c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0600u);
}

TEST(LocalRoot, DescriptorsDoNotPassAnExec) {
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  const auto file = open_or_fail(*fs, "f", kCreate);
  const auto owner = open_or_fail(*fs, "LOCK", kOwn);
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone).string().find(folder.path()) != 0 || gone) continue;
    ++seen;
    EXPECT_NE(::fcntl(std::stoi(entry.path().filename()), F_GETFD) & FD_CLOEXEC, 0);
  }
  EXPECT_EQ(seen, 3);  // the root and two files
}

// --- links and strange files; once with openat2, once with the walk that replaces it ---

class LocalLinks : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam())
      local_calls.openat2 = [](int, const char*, const open_how*) {
        errno = ENOSYS;
        return -1;
      };
    put(outside / "secret", "secret");
    std::filesystem::create_directory(inside / "dir");
    put(inside / "dir/file", "inside");
    std::filesystem::create_symlink(outside / "secret", inside / "link");
    std::filesystem::create_symlink(outside.path(), inside / "up");
    std::filesystem::create_symlink("dir/file", inside / "within");
    std::filesystem::create_symlink("dir", inside / "dirlink");
    std::filesystem::create_symlink("nowhere", inside / "dangling");
    fs = open_fs_or_fail(inside.url());
  }
  RealCalls real;
  TemporaryFolder outside;
  TemporaryFolder inside;
  std::shared_ptr<FileSystem> fs;
};

TEST_P(LocalLinks, AreNeverFollowed) {
  for (const char* path : {"link", "up/secret", "within", "dirlink/file", "dangling"}) {
    EXPECT_CODE(Code::kInvalid, fs->open(path, {}));
    EXPECT_CODE(Code::kInvalid, fs->open(path, kCreate));
    EXPECT_CODE(Code::kInvalid, fs->open(path, kOwn));
  }
  EXPECT_CODE(Code::kInvalid, fs->open("up/new", kCreate));
  EXPECT_CODE(Code::kInvalid, fs->list("up"));
  EXPECT_CODE(Code::kInvalid, fs->list("dirlink"));
  EXPECT_CODE(Code::kInvalid, fs->create_directory("up/new"));
  EXPECT_CODE(Code::kInvalid, fs->remove("up/secret"));
  EXPECT_CODE(Code::kInvalid, fs->rename("up/secret", "stolen"));
  EXPECT_CODE(Code::kInvalid, fs->rename("dir/file", "up/given"));
  EXPECT_CODE(Code::kInvalid, fs->locked("link"));
  EXPECT_EQ(contents(outside / "secret"), "secret");
  EXPECT_FALSE(std::filesystem::exists(outside / "new"));
  EXPECT_OK(fs->open("dir/file", {}));
  // What is removed is the link.
  EXPECT_OK(fs->remove("link"));
  EXPECT_EQ(contents(outside / "secret"), "secret");
}

TEST_P(LocalLinks, WorkGoesOnBelowTheRoot) {
  ASSERT_OK(fs->create_directory("dir/sub"));
  const auto file = open_or_fail(*fs, "dir/sub/f", kOwn);
  ASSERT_OK(file->write_at(0, pattern(100, 1).span()));
  EXPECT_EQ(fs->stat("dir/sub/f")->size, 100u);
  EXPECT_TRUE(*fs->locked("dir/sub/f"));
  EXPECT_EQ(fs->list("dir/sub")->size(), 1u);
  EXPECT_CODE(Code::kNotFound, fs->open("dir/no/f", kCreate));
  EXPECT_CODE(Code::kInvalid, fs->open("dir/file/f", kCreate));
}

TEST_P(LocalLinks, FilesThatAreNotRegularAreRefusedWithoutWaiting) {
  ASSERT_EQ(::mkfifo((inside / "fifo").c_str(), 0600), 0);
  EXPECT_CODE(Code::kInvalid, fs->open("fifo", {}));
  EXPECT_CODE(Code::kInvalid, fs->open("fifo", {.write = true}));
  EXPECT_CODE(Code::kInvalid, fs->open("fifo", kOwn));
}

INSTANTIATE_TEST_SUITE_P(Resolvers, LocalLinks, ::testing::Bool(),
                         [](const auto& chosen) { return chosen.param ? "Steps" : "Openat2"; });

// --- permissions ---

TEST(LocalAccess, IsRefusedByName) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become somebody else";
  const TemporaryFolder folder;
  {
    const auto fs = open_fs_or_fail(folder.url());
    ASSERT_OK(fs->open("private", kCreate));
    ASSERT_OK(fs->create_directory("closed"));
    put(folder / "readable", "text");
  }
  std::filesystem::create_directory(folder / "open");
  ::chmod(folder.path().c_str(), 0755);
  ::chmod((folder / "readable").c_str(), 0644);
  EXPECT_TRUE(in_child([&folder] {
    if (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0)
      return expect(false, "setresuid");
    const auto fs = open_file_system(folder.url());  // a directory that we may read, not write
    if (!expect_code(Code::kOk, fs, "open a read-only directory")) return false;
    const auto made = (*fs)->open("new", kCreate);
    return expect_code(Code::kAccess, (*fs)->open("private", {}), "read another's file") &&
           expect_code(Code::kAccess, made, "create in another's directory") &&
           expect(made.status().message().find("/new") != std::string::npos, "the message names the file") &&
           expect_code(Code::kAccess, (*fs)->create_directory("new"), "make a directory") &&
           expect_code(Code::kAccess, (*fs)->remove("readable"), "remove") &&
           expect_code(Code::kAccess, (*fs)->rename("readable", "other"), "rename") &&
           expect_code(Code::kAccess, (*fs)->list("closed"), "list a closed directory") &&
           expect_code(Code::kAccess, (*fs)->open("readable", {.write = true}), "write a readable file") &&
           expect_code(Code::kOk, (*fs)->open("readable", {}), "read a readable file") &&
           expect_code(Code::kAccess, open_file_system(folder.url() + "/closed"), "open a closed directory") &&
           expect_code(Code::kAccess, open_file_system(folder.url() + "/made", {.create = true}), "create the root");
  }));
  EXPECT_FALSE(std::filesystem::exists(folder / "new"));
  EXPECT_FALSE(std::filesystem::exists(folder / "made"));
}

// --- transfers ---

int calls_made = 0;
int calls_failing = 0;  // errno, 0 for none

TEST(LocalTransfer, InterruptionsAndShortWritesAreContinued) {
  const RealCalls real;
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  calls_made = 0;
  local_calls.pwritev = [](int fd, const iovec* parts, int, off_t offset) -> ssize_t {
    if (++calls_made % 3 == 0) {
      errno = EINTR;
      return -1;
    }
    return ::pwrite(fd, parts[0].iov_base,
                    std::min<std::size_t>(parts[0].iov_len, 1 + static_cast<std::size_t>(calls_made) % 700), offset);
  };
  const auto file = open_or_fail(*fs, "f", kCreate);
  const AlignedBuffer bytes = pattern(20000, 5);
  const ByteSpan parts[] = {bytes.span().first(1), {}, bytes.span().subspan(1, 9999), bytes.span().subspan(10000)};
  ASSERT_OK(file->write_at(17, parts));
  EXPECT_GT(calls_made, 30);
  EXPECT_TRUE(same(read(*file, 17, 20000).span(), bytes.span()));
  EXPECT_EQ(*file->size(), 20017u);
}

TEST(LocalTransfer, InterruptionsAndShortReadsAreContinued) {
  const RealCalls real;
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  const auto file = open_or_fail(*fs, "f", kCreate);
  ASSERT_OK(file->write_at(0, pattern(20000, 5).span()));
  calls_made = 0;
  local_calls.preadv = [](int fd, const iovec* parts, int, off_t offset) -> ssize_t {
    if (++calls_made % 3 == 0) {
      errno = EINTR;
      return -1;
    }
    return ::pread(fd, parts[0].iov_base,
                   std::min<std::size_t>(parts[0].iov_len, 1 + static_cast<std::size_t>(calls_made) % 700), offset);
  };
  AlignedBuffer into = zeros(30000);
  EXPECT_EQ(*file->read_at(0, into.span()), 20000u);
  EXPECT_TRUE(same(into.span().first(20000), pattern(20000, 5).span()));
}

std::uint64_t sparse_next = 0;
std::uint64_t sparse_largest = 0;

TEST(LocalTransfer, OverTwoGiBIsSplit) {
  const RealCalls real;
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  const auto file = open_or_fail(*fs, "f", kCreate);
  // Memory that is reserved only, and calls that move nothing: the arithmetic is what is tested.
  constexpr std::uint64_t kSize = (std::uint64_t{5} << 30) + 4097;
  void* memory = ::mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto transfer = [](int, const iovec* parts, int count, off_t offset) -> ssize_t {
    EXPECT_EQ(static_cast<std::uint64_t>(offset), sparse_next);
    std::uint64_t n = 0;
    for (int i = 0; i < count; ++i) n += parts[i].iov_len;
    sparse_largest = std::max(sparse_largest, n);
    sparse_next += n;
    return static_cast<ssize_t>(n);
  };
  local_calls.pwritev = transfer;
  local_calls.preadv = transfer;
  const MutableByteSpan all(static_cast<std::byte*>(memory), kSize);
  const ByteSpan parts[] = {all.first(10), all.subspan(10)};
  sparse_next = 3;
  ASSERT_OK(file->write_at(3, parts));
  EXPECT_EQ(sparse_next, kSize + 3);
  sparse_next = 5;
  EXPECT_EQ(*file->read_at(5, all), kSize);
  EXPECT_LT(sparse_largest, std::uint64_t{2} << 30);
  ::munmap(memory, kSize);
}

TEST(LocalTransfer, FailuresNameFileOffsetAndWhatToDo) {
  const RealCalls real;
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  const auto file = open_or_fail(*fs, "f", kCreate);
  ASSERT_OK(file->write_at(0, pattern(100, 1).span()));
  local_calls.pwritev = [](int, const iovec*, int, off_t) -> ssize_t {
    errno = calls_failing;
    return -1;
  };
  local_calls.preadv = local_calls.pwritev;
  calls_failing = EIO;
  AlignedBuffer into = zeros(10);
  for (const Status& s : {file->write_at(4711, pattern(10).span()), file->read_at(4711, into.span()).status()}) {
    EXPECT_CODE(Code::kIo, s);
    EXPECT_EQ(s.system_errno(), EIO);
    EXPECT_NE(s.message().find(folder / "f"), std::string::npos) << s.message();
    EXPECT_NE(s.message().find("4711"), std::string::npos) << s.message();
  }
  calls_failing = ENOSPC;
  const Status full = file->write_at(4711, pattern(10).span());
  EXPECT_CODE(Code::kDiskFull, full);
  EXPECT_NE(full.message().find("free some space"), std::string::npos);
}

TEST(LocalTransfer, AFullDiskHeals) {
  const RealCalls real;
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  for (const FileMode mode : {FileMode::kBuffered, FileMode::kWriteThrough}) {
    const auto file = open_or_fail(*fs, "f", {.write = true, .create = Create::kIfMissing, .mode = mode});
    const auto good = local_calls.pwritev;
    local_calls.pwritev = [](int, const iovec*, int, off_t) -> ssize_t {
      errno = ENOSPC;
      return -1;
    };
    EXPECT_CODE(Code::kDiskFull, file->write_at(0, pattern(10).span()));
    local_calls.pwritev = good;
    EXPECT_OK(file->write_at(0, pattern(10).span()));
    EXPECT_OK(file->sync(SyncKind::kData));
  }
}

// --- syncs ---

TEST(LocalSync, AFailurePoisonsTheFileUntilItIsOpenedAnew) {
  for (const int error : {EIO, ENOSPC}) {
    const RealCalls real;
    const TemporaryFolder folder;
    const auto fs = open_fs_or_fail(folder.url());
    auto file = open_or_fail(*fs, "f", kCreate);
    ASSERT_OK(file->write_at(0, pattern(100, 1).span()));
    const LocalCalls good = local_calls;
    calls_failing = error;
    local_calls.fdatasync = [](int) {
      errno = calls_failing;
      return -1;
    };
    EXPECT_FALSE(file->sync(SyncKind::kData).ok());
    local_calls = good;
    EXPECT_CODE(Code::kPoisoned, file->sync(SyncKind::kData));
    EXPECT_CODE(Code::kPoisoned, file->sync(SyncKind::kAll));
    EXPECT_CODE(Code::kPoisoned, file->write_at(0, pattern(1).span()));
    EXPECT_CODE(Code::kPoisoned, file->allocate(0, 1));
    EXPECT_CODE(Code::kPoisoned, file->punch(0, 1));
    EXPECT_CODE(Code::kPoisoned, file->truncate(0));
    EXPECT_EQ(*file->size(), 100u);
    EXPECT_TRUE(same(read(*file, 0, 100).span(), pattern(100, 1).span()));
    file = open_or_fail(*fs, "f", kCreate);
    EXPECT_OK(file->write_at(0, pattern(1).span()));
    EXPECT_OK(file->sync(SyncKind::kData));
  }
}

TEST(LocalSync, AnInterruptedSyncIsAskedAgain) {
  const RealCalls real;
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  const auto file = open_or_fail(*fs, "f", kCreate);
  calls_made = 0;
  local_calls.fsync = [](int fd) {
    if (++calls_made < 3) {
      errno = EINTR;
      return -1;
    }
    return ::fsync(fd);
  };
  EXPECT_OK(file->sync(SyncKind::kAll));
  EXPECT_EQ(calls_made, 3);
}

TEST(LocalSync, AFailedWriteThroughPoisonsToo) {
  const RealCalls real;
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  const auto file =
      open_or_fail(*fs, "f", {.write = true, .create = Create::kIfMissing, .mode = FileMode::kWriteThrough});
  const LocalCalls good = local_calls;
  local_calls.pwritev = [](int, const iovec*, int, off_t) -> ssize_t {
    errno = EIO;
    return -1;
  };
  EXPECT_CODE(Code::kIo, file->write_at(0, pattern(1).span()));
  local_calls = good;
  EXPECT_CODE(Code::kPoisoned, file->write_at(0, pattern(1).span()));
}

TEST(LocalSync, AFailedDirectorySyncIsToldAndStopsChangesOfNames) {
  const RealCalls real;
  const TemporaryFolder folder;
  auto fs = open_fs_or_fail(folder.url());
  ASSERT_OK(fs->open("before", kCreate));
  const LocalCalls good = local_calls;
  local_calls.fsync = [](int) {
    errno = EIO;
    return -1;
  };
  EXPECT_CODE(Code::kIo, fs->open("f", kCreate));
  local_calls = good;
  EXPECT_FALSE(std::filesystem::exists(folder / "f"));  // taken back
  EXPECT_CODE(Code::kPoisoned, fs->open("f", kCreate));
  EXPECT_CODE(Code::kPoisoned, fs->create_directory("d"));
  EXPECT_CODE(Code::kPoisoned, fs->remove("before"));
  EXPECT_CODE(Code::kPoisoned, fs->rename("before", "after"));
  EXPECT_CODE(Code::kPoisoned, fs->sync_directory(""));
  EXPECT_OK(fs->open("before", {}));
  fs = open_fs_or_fail(folder.url());
  EXPECT_OK(fs->open("f", kCreate));
}

int directories_synced = 0;

TEST(LocalSync, ChangesOfNamesSyncTheirDirectories) {
  const RealCalls real;
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  local_calls.fsync = [](int fd) {
    struct stat s {};
    if (::fstat(fd, &s) == 0 && S_ISDIR(s.st_mode)) ++directories_synced;
    return ::fsync(fd);
  };
  const auto synced = [](const auto& change) {
    directories_synced = 0;
    change();
    return directories_synced;
  };
  for (const NameSync when : {NameSync::kNow, NameSync::kLater}) {
    const int n = when == NameSync::kNow ? 1 : 0;
    EXPECT_EQ(synced([&] { EXPECT_OK(fs->create_directory("d", when)); }), 2 * n);  // itself and its parent
    EXPECT_EQ(
        synced([&] { EXPECT_OK(fs->open("f", {.write = true, .create = Create::kIfMissing, .name_sync = when})); }), n);
    EXPECT_EQ(
        synced([&] { EXPECT_OK(fs->open("f", {.write = true, .create = Create::kIfMissing, .name_sync = when})); }), 0);
    EXPECT_EQ(synced([&] { EXPECT_OK(fs->rename("f", "g", when)); }), n);
    EXPECT_EQ(synced([&] { EXPECT_OK(fs->rename("g", "d/g", when)); }), 2 * n);
    EXPECT_EQ(synced([&] { EXPECT_OK(fs->remove("d/g", when)); }), n);
    EXPECT_EQ(synced([&] { EXPECT_OK(fs->remove("d", when)); }), n);
  }
  EXPECT_EQ(synced([&] { EXPECT_OK(fs->sync_directory("")); }), 1);
}

// --- modes ---

TEST(LocalModes, DirectFallsBackOpenly) {
  // Asking for O_DIRECT of a file system that has none: ramfs, where it can be mounted.
  const TemporaryFolder folder;
  if (::mount("none", folder.path().c_str(), "ramfs", 0, nullptr) != 0) GTEST_SKIP() << "cannot mount ramfs";
  {
    const auto fs = open_fs_or_fail(folder.url());
    const auto open = [&fs](FileMode mode) {
      return open_or_fail(*fs, "f", {.write = true, .create = Create::kIfMissing, .mode = mode});
    };
    if (!fs->capabilities().has(Capability::kDirectIo)) {
      EXPECT_EQ(open(FileMode::kDirect)->mode(), FileMode::kBuffered);
      EXPECT_EQ(open(FileMode::kDirectWriteThrough)->mode(), FileMode::kWriteThrough);
      EXPECT_EQ(open(FileMode::kDirect)->alignment(), 1u);
    }
    EXPECT_FALSE(fs->capabilities().has(Capability::kPunch));
    EXPECT_FALSE(fs->capabilities().has(Capability::kAllocate));
    const auto file = open(FileMode::kBuffered);
    ASSERT_OK(file->write_at(0, pattern(8192, 1).span()));
    EXPECT_CODE(Code::kUnsupported, file->punch(0, 4096));
    EXPECT_CODE(Code::kUnsupported, file->allocate(0, 4096));
    EXPECT_TRUE(same(read(*file, 0, 8192).span(), pattern(8192, 1).span()));
  }
  EXPECT_EQ(::umount2(folder.path().c_str(), MNT_DETACH), 0);
}

TEST(LocalModes, AFullDiskIsAnErrorAndHealsInEveryMode) {
  const TemporaryFolder folder;
  if (::mount("none", folder.path().c_str(), "tmpfs", 0, "size=1m") != 0) GTEST_SKIP() << "cannot mount tmpfs";
  {
    const auto fs = open_fs_or_fail(folder.url());
    for (const FileMode mode : {FileMode::kBuffered, FileMode::kMapped, FileMode::kDirect, FileMode::kWriteThrough}) {
      SCOPED_TRACE(file_mode_name(mode));
      const OpenOptions options{.write = true, .create = Create::kIfMissing, .mode = mode};
      const auto file = open_or_fail(*fs, "f", options);
      ASSERT_OK(file->truncate(4 << 20));  // sparse: a store through a mapping would end the process
      const AlignedBuffer bytes = pattern(64 << 10, 1);
      Status s;
      std::uint64_t at = 0;
      for (; at < 4 << 20 && s.ok(); at += bytes.size()) s = file->write_at(at, bytes.span());
      EXPECT_CODE(Code::kDiskFull, s);
      EXPECT_LE(at, 2u << 20);
      EXPECT_TRUE(same(read(*file, 0, bytes.size()).span(), bytes.span()));
      ASSERT_OK(file->punch(0, 512 << 10));
      EXPECT_OK(file->write_at(128 << 10, bytes.span()));
      EXPECT_TRUE(same(read(*file, 128 << 10, bytes.size()).span(), bytes.span()));
      EXPECT_CODE(Code::kDiskFull, file->allocate(0, 4 << 20));
      ASSERT_OK(fs->remove("f"));
    }
  }
  EXPECT_EQ(::umount2(folder.path().c_str(), MNT_DETACH), 0);
}

TEST(LocalModes, AMappedFileFollowsWhatOthersDoToIt) {
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  const auto mapped = open_or_fail(*fs, "f", {.write = true, .create = Create::kIfMissing, .mode = FileMode::kMapped});
  const auto other = open_or_fail(*fs, "f", kCreate);
  EXPECT_EQ(mapped->mode(), FileMode::kMapped);
  ASSERT_OK(other->write_at(0, pattern(10000, 1).span()));
  EXPECT_TRUE(same(read(*mapped, 0, 10000).span(), pattern(10000, 1).span()));
  ASSERT_OK(other->truncate(100));
  AlignedBuffer into = zeros(10000);
  EXPECT_EQ(*mapped->read_at(0, into.span()), 100u);
  ASSERT_OK(other->write_at(3 << 20, pattern(5000, 2).span()));  // beyond the first window
  EXPECT_TRUE(same(read(*mapped, 3 << 20, 5000).span(), pattern(5000, 2).span()));
  ASSERT_OK(mapped->write_at((3 << 20) + 10, pattern(100, 3).span()));
  EXPECT_TRUE(same(read(*other, (3 << 20) + 10, 100).span(), pattern(100, 3).span()));
  ASSERT_OK(other->punch(3 << 20, 4096));
  ASSERT_OK(mapped->write_at(3 << 20, pattern(100, 4).span()));
  EXPECT_TRUE(same(read(*other, 3 << 20, 100).span(), pattern(100, 4).span()));
}

TEST(LocalModes, DirectFilesAreNotMapped) {
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  const auto file = open_or_fail(*fs, "f", {.write = true, .create = Create::kIfMissing, .mode = FileMode::kDirect});
  ASSERT_OK(file->truncate(8192));
  if (file->mode() == FileMode::kDirect) EXPECT_CODE(Code::kUnsupported, file->mapping(0, 4096));
}

}  // namespace
}  // namespace tier::testing
