/// Ownership on `local:`: one owner among processes and within one, dead with its process, not passed on by fork.
#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>

#include "fs/local_fixture.h"

namespace tier::testing {
namespace {

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(LocalOwner, ExcludesOtherProcessesAndIsNamed) {
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  auto owner = open_or_fail(*fs, "LOCK", kOwn);
  const std::string name = "process " + std::to_string(::getpid());
  EXPECT_TRUE(in_child([&] {
    const auto mine = open_file_system(folder.url());
    const auto second = (*mine)->open("LOCK", kOwn);
    const auto told = (*mine)->locked("LOCK");
    return expect_code(Code::kLocked, second, "second owner") &&
           expect(second.status().message().find(name) != std::string::npos, second.status().message().c_str()) &&
           expect(told.ok() && *told, "locked()") && expect_code(Code::kOk, (*mine)->open("LOCK", {}), "a reader");
  }));
  const auto second = fs->open("LOCK", kOwn);
  EXPECT_CODE(Code::kLocked, second);
  EXPECT_NE(second.status().message().find("this process"), std::string::npos) << second.status().message();
  owner.reset();
  EXPECT_TRUE(in_child([&] {
    const auto mine = open_file_system(folder.url());
    return expect_code(Code::kOk, (*mine)->open("LOCK", kOwn), "the next owner");
  }));
}

TEST(LocalOwner, DiesWithItsProcess) {
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  LivingChild child([&] {
    const auto mine = open_file_system(folder.url());
    static std::unique_ptr<File> held;
    auto file = (*mine)->open("LOCK", kOwn);
    if (!expect_code(Code::kOk, file, "own")) return false;
    held = *std::move(file);
    return true;
  });
  const auto refused = fs->open("LOCK", kOwn);
  EXPECT_CODE(Code::kLocked, refused);
  EXPECT_NE(refused.status().message().find("process " + std::to_string(child.pid())), std::string::npos)
      << refused.status().message();
  child.kill();
  EXPECT_FALSE(*fs->locked("LOCK"));
  EXPECT_OK(fs->open("LOCK", kOwn));
}

TEST(LocalOwner, IsNotPassedOnByFork) {
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  auto owner = open_or_fail(*fs, "seg", kOwn);
  ASSERT_OK(owner->write_at(0, pattern(8192, 1).span()));
  ASSERT_OK(owner->mapping(0, 8192));  // a mapping that the child kept would keep the lock alive
  LivingChild child([&] {
    AlignedBuffer into = zeros(100);
    const auto late = owner->read_at(0, into.span());
    TestOp op;
    op.kind = IoOp::Kind::kWrite;
    op.from = into.span();
    owner->start(op);
    return expect_code(Code::kClosing, owner->write_at(0, pattern(100, 2).span()), "write") &&
           expect_code(Code::kClosing, late, "read") &&
           expect_code(Code::kClosing, owner->sync(SyncKind::kData), "sync") &&
           expect_code(Code::kClosing, owner->info(), "info") &&
           expect_code(Code::kClosing, owner->truncate(0), "truncate") &&
           expect_code(Code::kClosing, owner->mapping(0, 10), "mapping") &&
           expect(op.finished.load() && op.status.code() == Code::kClosing, "operation") &&
           expect(late.status().message().find("parent process") != std::string::npos, "the message says why");
  });
  EXPECT_OK(owner->write_at(0, pattern(100, 3).span()));  // the parent's handle lives on
  EXPECT_CODE(Code::kLocked, fs->open("seg", kOwn));
  owner.reset();
  EXPECT_OK(fs->open("seg", kOwn));  // though the child still runs
}

TEST(LocalOwner, AForkedDescriptorCannotWrite) {
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  const auto owner = open_or_fail(*fs, "seg", kOwn);
  ASSERT_OK(owner->write_at(0, as_bytes("safe")));
  EXPECT_TRUE(in_child([&] {
    bool all = true;
    for (int fd = 3; fd < 256; ++fd)
      if (const int flags = ::fcntl(fd, F_GETFL);
          flags >= 0 && (flags & O_ACCMODE) == O_RDWR && (flags & O_PATH) == 0) {
        struct stat a {
        }, b{};
        if (::fstat(fd, &a) == 0 && ::stat((folder / "seg").c_str(), &b) == 0 && a.st_ino == b.st_ino &&
            a.st_dev == b.st_dev)
          all = expect(false, "a writable descriptor of the owned file is left");
      }
    return all;
  }));
  EXPECT_EQ(contents(folder / "seg"), "safe");
}

TEST(LocalOwner, AChildMayCloseWhatItInheritedAndOpenAnew) {
  const TemporaryFolder folder;
  auto fs = open_fs_or_fail(folder.url());
  auto owner = open_or_fail(*fs, "LOCK", kOwn);
  auto plain = open_or_fail(*fs, "plain", kCreate);
  ASSERT_OK(owner->mapping(0, 1));
  EXPECT_TRUE(in_child([&] {
    owner.reset();  // does not give the parent's lock away
    if (!expect_code(Code::kLocked, fs->open("LOCK", kOwn), "the parent still owns")) return false;
    // What is not owned goes on, operations in flight included: they complete at once.
    const AlignedBuffer bytes = pattern(100, 1);
    TestOp op;
    op.kind = IoOp::Kind::kWrite;
    op.from = bytes.span();
    plain->start(op);
    return expect(op.finished.load() && op.status.ok(), "an operation of a plain file") &&
           expect_code(Code::kOk, plain->write_at(100, bytes.span()), "a write of a plain file") &&
           expect_code(Code::kOk, fs->open("other", kOwn), "another lock");
  }));
  EXPECT_CODE(Code::kLocked, fs->open("LOCK", kOwn));
  EXPECT_EQ(*plain->size(), 200u);
}

TEST(LocalOwner, AChildOfAChildOwnsNothingEither) {
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  EXPECT_TRUE(in_child([&] {
    const auto owner = fs->open("LOCK", kOwn);
    if (!expect_code(Code::kOk, owner, "own")) return false;
    return in_child([&] { return expect_code(Code::kClosing, (*owner)->sync(SyncKind::kAll), "the grandchild"); }) &&
           expect_code(Code::kOk, (*owner)->sync(SyncKind::kAll), "the child");
  }));
  EXPECT_OK(fs->open("LOCK", kOwn));
}

TEST(LocalOwner, LeavesANoteInALockFileAndTouchesNoOther) {
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  ASSERT_OK(fs->open("LOCK", kOwn));
  const std::string note = "pid " + std::to_string(::getpid()) + "\n";
  EXPECT_EQ(contents(folder / "LOCK"), note);
  std::ofstream(folder / "LOCK") << "pid 123456789\n";
  ASSERT_OK(fs->open("LOCK", kOwn));
  EXPECT_EQ(contents(folder / "LOCK"), note);
  for (const std::string other :
       {"something else", "pid x\n", "pid 12", "pid 12\nmore", "pid 123456789012345678901234567890\n"}) {
    std::ofstream(folder / "LOCK") << other;
    ASSERT_OK(fs->open("LOCK", kOwn));
    EXPECT_EQ(contents(folder / "LOCK"), other);
  }
  ASSERT_OK(fs->open("segment", kOwn));
  EXPECT_EQ(contents(folder / "segment"), "");
}

std::string swap_from;
std::string swap_to;

TEST(LocalOwner, LooksAgainWhetherTheLockedFileStillHasItsName) {
  const RealCalls real;
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  ASSERT_OK(fs->open("LOCK", kCreate));
  ASSERT_OK(fs->open("fresh", kCreate));
  swap_from = folder / "fresh";
  swap_to = folder / "LOCK";
  static auto good = local_calls.openat2;
  // Between the opening of the file that will own and its lock, another takes its name.
  static int opened = 0;
  opened = 0;
  local_calls.openat2 = [](int directory, const char* path, const open_how* how) {
    const int fd = good(directory, path, how);
    if (fd >= 0 && std::string_view(path) == "LOCK" && ++opened == 2) ::rename(swap_from.c_str(), swap_to.c_str());
    return fd;
  };
  const auto owner = open_or_fail(*fs, "LOCK", kOwn);
  EXPECT_GT(opened, 3);
  EXPECT_CODE(Code::kLocked, fs->open("LOCK", kOwn));
  EXPECT_TRUE(*fs->locked("LOCK"));
}

TEST(LocalOwner, IsOneOfManyWhoTryAtOnce) {
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  for (int round = 0; round < 10; ++round) {
    constexpr int kProcesses = 6;
    int gate[2];
    int results[2];
    ASSERT_EQ(::pipe(gate), 0);
    ASSERT_EQ(::pipe(results), 0);
    std::vector<pid_t> children;
    for (int i = 0; i < kProcesses; ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        ::close(gate[1]);
        char c = 0;
        if (::read(gate[0], &c, 1) < 0) ::_exit(2);  // end of file: all start
        const auto mine = open_file_system(folder.url());
        const auto file = (*mine)->open("LOCK", kOwn);
        c = file.ok() ? 'o' : file.code() == Code::kLocked ? 'l' : '?';
        if (::write(results[1], &c, 1) != 1) ::_exit(2);
        for (;;) ::pause();
      }
      children.push_back(child);
    }
    ::close(gate[0]);
    ::close(gate[1]);
    std::string all;
    for (char c = 0; all.size() < kProcesses && ::read(results[0], &c, 1) == 1;) all += c;
    EXPECT_EQ(std::count(all.begin(), all.end(), 'o'), 1) << all;
    EXPECT_EQ(std::count(all.begin(), all.end(), 'l'), kProcesses - 1) << all;
    for (const pid_t child : children) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
    ::close(results[0]);
    ::close(results[1]);
    EXPECT_FALSE(*fs->locked("LOCK"));
  }
}

}  // namespace
}  // namespace tier::testing
