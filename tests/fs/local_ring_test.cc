/// Operations in flight on `local:`: many, from many threads, cut short, cancelled, refused, and without a ring.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cstddef>
#include <thread>

#include "fs/local_fixture.h"

namespace tier::testing {
namespace {

void finish(FileSystem& fs, TestOp& op) {
  while (!op.finished.load()) ASSERT_OK(fs.poll(Deadline::never()));
}

TEST(LocalRing, IsThereWhereTheKernelHasIt) {
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  const bool refused = ::syscall(SYS_io_uring_setup, 0, nullptr) < 0 && errno == ENOSYS;
  EXPECT_EQ(fs->capabilities().has(Capability::kAsync), !refused);
}

TEST(LocalRing, HoldsMoreOperationsThanItsDepth) {
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  const auto file = open_or_fail(*fs, "f", kCreate);
  constexpr std::size_t kOps = 3000;
  constexpr std::size_t kSize = 512;
  const AlignedBuffer bytes = pattern(kOps * kSize, 1);
  std::vector<TestOp> ops(kOps);
  for (std::size_t i = 0; i < kOps; ++i) {
    ops[i].kind = IoOp::Kind::kWrite;
    ops[i].offset = i * kSize;
    ops[i].from = bytes.span().subspan(i * kSize, kSize);
    file->start(ops[i]);
  }
  for (TestOp& op : ops) {
    finish(*fs, op);
    ASSERT_OK(op.status);
    ASSERT_EQ(op.transferred, kSize);
  }
  EXPECT_TRUE(same(read(*file, 0, kOps * kSize).span(), bytes.span()));
  EXPECT_EQ(*fs->poll(Deadline::never()), 0u);  // nothing in flight: nothing to wait for
}

TEST(LocalRing, TakesOperationsOfManyThreads) {
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  const auto file = open_or_fail(*fs, "f", kCreate);
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kEach = 150;
  const AlignedBuffer bytes = pattern(kThreads * kEach * 100, 1);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::vector<TestOp> ops(kEach);
      for (std::size_t i = 0; i < kEach; ++i) {
        ops[i].kind = IoOp::Kind::kWrite;
        ops[i].offset = (t * kEach + i) * 100;
        ops[i].from = bytes.span().subspan(ops[i].offset, 100);
        file->start(ops[i]);
      }
      TestOp sync;
      sync.kind = IoOp::Kind::kSync;
      file->start(sync);
      for (TestOp& op : ops) {
        finish(*fs, op);
        EXPECT_OK(op.status);
      }
      finish(*fs, sync);
      EXPECT_OK(sync.status);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_TRUE(same(read(*file, 0, bytes.size()).span(), bytes.span()));
}

TEST(LocalRing, FinishesWhatAThreadStartedThatIsGone) {
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  const auto file = open_or_fail(*fs, "f", kCreate);
  const AlignedBuffer bytes = pattern(1 << 20, 1);
  for (int round = 0; round < 10; ++round) {
    std::vector<TestOp> ops(12);
    std::thread starter([&] {
      for (std::size_t i = 0; i < ops.size(); ++i) {
        ops[i].kind = i % 3 == 2 ? IoOp::Kind::kSync : IoOp::Kind::kWrite;
        ops[i].offset = i << 20;
        ops[i].from = bytes.span();
        file->start(ops[i]);
      }
    });
    starter.join();
    for (TestOp& op : ops) {
      finish(*fs, op);
      EXPECT_OK(op.status);
    }
  }
  EXPECT_TRUE(same(read(*file, 0, 1 << 20).span(), bytes.span()));
}

TEST(LocalRing, AFileWaitsForItsOperations) {
  const TemporaryFolder folder;
  auto fs = open_fs_or_fail(folder.url());
  auto file = open_or_fail(*fs, "f", kCreate);
  const AlignedBuffer bytes = pattern(1 << 20, 1);
  std::vector<TestOp> ops(20);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    ops[i].kind = IoOp::Kind::kWrite;
    ops[i].offset = i << 20;
    ops[i].from = bytes.span();
    file->start(ops[i]);
  }
  fs.reset();  // the file keeps what it needs
  file.reset();
  for (TestOp& op : ops) {
    EXPECT_TRUE(op.finished.load());
    EXPECT_OK(op.status);
  }
}

/// Writes ten pieces, one after the other, from done().
struct Chain : IoOp {
  std::unique_ptr<File>* file;
  int left = 10;
  std::atomic<bool> finished{false};
};

TEST(LocalRing, DoneMayStartTheNextOperationAndCloseTheFile) {
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  auto file = open_or_fail(*fs, "f", kCreate);
  const AlignedBuffer bytes = pattern(100, 1);
  Chain chain;
  chain.kind = IoOp::Kind::kWrite;
  chain.file = &file;
  chain.from = bytes.span();
  chain.done = [](IoOp& op) {
    auto& c = static_cast<Chain&>(op);
    EXPECT_OK(c.status);
    if (--c.left == 0) {
      c.file->reset();
      c.finished.store(true);
      return;
    }
    c.offset += 100;
    (*c.file)->start(c);
  };
  file->start(chain);
  while (!chain.finished.load()) ASSERT_OK(fs->poll(Deadline::never()));
  EXPECT_EQ(fs->stat("f")->size, 1000u);
}

TEST(LocalRing, RefusalsCompleteAtOnce) {
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  ASSERT_OK(fs->open("f", kCreate));
  const auto reader = open_or_fail(*fs, "f", {});
  const AlignedBuffer bytes = pattern(100, 1);
  TestOp op;
  op.kind = IoOp::Kind::kWrite;
  op.from = bytes.span();
  reader->start(op);
  EXPECT_TRUE(op.finished.load());
  EXPECT_CODE(Code::kAccess, op.status);
  TestOp empty;
  reader->start(empty);
  EXPECT_TRUE(empty.finished.load());
  EXPECT_OK(empty.status);
  const auto direct = open_or_fail(*fs, "f", {.write = true, .mode = FileMode::kDirect});
  if (direct->alignment() > 1) {
    TestOp misaligned;
    misaligned.kind = IoOp::Kind::kWrite;
    misaligned.from = bytes.span();
    direct->start(misaligned);
    EXPECT_CODE(Code::kInvalid, misaligned.status);
  }
}

TEST(LocalRing, AFailureOfTheDiskReachesTheOperationAndASyncPoisons) {
  // /dev/full is no regular file, so a limit on the size of files stands in: EFBIG once the signal is ignored.
  const TemporaryFolder folder;
  EXPECT_TRUE(in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return expect(false, "setrlimit");
    const auto fs = open_file_system(folder.url());
    const auto file = (*fs)->open("f", kCreate);
    const AlignedBuffer bytes = pattern(64 << 10, 1);
    TestOp op;
    op.kind = IoOp::Kind::kWrite;
    op.offset = (1 << 20) - 1000;  // a short write first, then the error
    op.from = bytes.span();
    (*file)->start(op);
    while (!op.finished.load())
      if (!(*fs)->poll(Deadline::never()).ok()) return false;
    return expect_code(Code::kDiskFull, op.status, "write over the limit") &&
           expect(op.status.message().find(folder / "f") != std::string::npos, "names the file") &&
           expect(op.status.message().find("at 1048576") != std::string::npos, op.status.message().c_str());
  }));
}

TEST(LocalRing, WaitsOnlyUntilTheDeadline) {
  const TemporaryFolder folder;
  const auto fs = open_fs_or_fail(folder.url());
  const auto file = open_or_fail(*fs, "f", kCreate);
  const AlignedBuffer bytes = pattern(1 << 20, 1);
  TestOp op;
  op.kind = IoOp::Kind::kWrite;
  op.from = bytes.span();
  file->start(op);
  TestOp sync;
  sync.kind = IoOp::Kind::kSync;
  file->start(sync);
  // However often it is asked with a deadline that is near or past, it comes back, and in the end with the operation.
  Clock& clock = *Runtime::system().clock;
  std::size_t ended = 0;
  while (ended < 2) {
    ended += *fs->poll(Deadline::now());
    ended += *fs->poll(clock.in(1us));
  }
  EXPECT_TRUE(op.finished.load() && sync.finished.load());
}

bool forbid(int call) {
  const sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{4, const_cast<sock_filter*>(code)};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(LocalRing, WithoutItOperationsCompleteBeforeStartReturns) {
  const TemporaryFolder folder;
  EXPECT_TRUE(in_child([&] {
    if (!forbid(SYS_io_uring_setup) || !forbid(SYS_openat2)) return expect(false, "cannot filter system calls");
    const auto fs = open_file_system(folder.url());
    if (!expect_code(Code::kOk, fs, "open") || !expect(!(*fs)->capabilities().has(Capability::kAsync), "no kAsync"))
      return false;
    const auto file = (*fs)->open("f", kCreate);
    const AlignedBuffer bytes = pattern(5000, 1);
    TestOp write;
    write.kind = IoOp::Kind::kWrite;
    write.from = bytes.span();
    (*file)->start(write);
    TestOp sync;
    sync.kind = IoOp::Kind::kSync;
    (*file)->start(sync);
    AlignedBuffer into = zeros(5000);
    TestOp reading;
    reading.into = into.span();
    (*file)->start(reading);
    return expect(write.finished && sync.finished && reading.finished, "all ended") &&
           expect_code(Code::kOk, write.status, "write") && expect_code(Code::kOk, sync.status, "sync") &&
           expect_code(Code::kOk, reading.status, "read") && expect(same(into.span(), bytes.span()), "bytes") &&
           expect(*(*fs)->poll(Deadline::never()) == 0, "nothing in flight");
  }));
}

}  // namespace
}  // namespace tier::testing
