/// Read-only opens beside a writer, in this process and from another one: they follow, survive a writer's restart, and write
/// nothing.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <string>
#include <thread>
#include <vector>

#include "log/log_fixture.h"

namespace tier {
namespace {

using namespace testing;

class Follow : public ::testing::TestWithParam<const char*> {
 protected:
  Follow() : fs_(std::string_view(GetParam()) == "mem" ? memory() : open_fs(directory_.url())) {}
  TemporaryDirectory directory_;
  std::shared_ptr<FileSystem> fs_;
};
INSTANTIATE_TEST_SUITE_P(Places, Follow, ::testing::Values("mem", "local"));

TEST_P(Follow, EveryVerbThatWritesIsUnsupported) {
  open_log(fs_, small_log()).reset();
  auto log = open_log(fs_, read_only());
  ASSERT_NE(log, nullptr);
  EXPECT_CODE(kUnsupported, log->append("a"));
  EXPECT_CODE(kUnsupported, log->append(""));
  EXPECT_CODE(kUnsupported, log->append_durable(as_bytes("a")));
  const ByteSpan batch[] = {as_bytes("a")};
  EXPECT_CODE(kUnsupported, log->append_batch(batch));
  EXPECT_CODE(kUnsupported, log->reserve(4));
  EXPECT_CODE(kUnsupported, log->flush());
  EXPECT_CODE(kUnsupported, log->wait_durable(Sequence{0}));
  EXPECT_CODE(kUnsupported, log->truncate_before(Sequence{1}));
  DurableOp op;
  Status status;
  op.context = &status;
  op.done = [](DurableOp& o, Status s) { *static_cast<Status*>(o.context) = s; };
  log->on_durable(op);
  EXPECT_CODE(kUnsupported, status);
  EXPECT_EQ(log->close().outcome, CloseOutcome::kClean);
}

TEST_P(Follow, AReaderOfAClosedLogSeesAllOfItAndWritesNothing) {
  std::vector<std::string> records;
  {
    auto writer = open_log(fs_, small_log());
    ASSERT_NE(writer, nullptr);
    for (std::size_t i = 0; i < 200; ++i) {
      records.push_back(record_of(i, 70));
      ASSERT_OK(writer->append(records.back()));
    }
  }
  const Image before = capture(*fs_);
  auto reader = open_log(fs_, read_only());
  ASSERT_NE(reader, nullptr);
  EXPECT_TRUE(reader->recovery().clean);
  EXPECT_EQ(reader->recovery().to.value, 200u);
  expect_records(*reader, records);
  std::string text;
  ASSERT_OK(reader->read(Sequence{77}, text));
  EXPECT_EQ(text, records[77]);
  auto verified = reader->verify(nullptr, nullptr);
  ASSERT_OK(verified);
  EXPECT_EQ(verified->records, 200u);
  reader.reset();
  EXPECT_TRUE(capture(*fs_) == before);
}

TEST_P(Follow, AReaderFollowsAWriterAndSeesDurableRecordsOnly) {
  auto writer = open_log(fs_, small_log(Durability::kSync));
  ASSERT_NE(writer, nullptr);
  auto reader = open_log(fs_, read_only());
  ASSERT_NE(reader, nullptr);
  auto cursor = reader->scan(Sequence{0});
  ASSERT_OK(cursor);
  EXPECT_CODE(kTimedOut, (*cursor)->wait_next(Deadline::now()));
  for (std::uint64_t i = 0; i < 150; ++i) {
    ASSERT_OK(writer->append(record_of(i, i * 7 % 200)));
    auto record = (*cursor)->wait_next(Deadline::never());
    ASSERT_OK(record);
    ASSERT_EQ(record->sequence.value, i);
    ASSERT_EQ(as_text(record->bytes), record_of(i, i * 7 % 200));
    ASSERT_LT(i, writer->cursors().durable.value);
  }
}

TEST_P(Follow, AReaderSurvivesRestartsOfTheWriter) {
  open_log(fs_, small_log()).reset();
  auto reader = open_log(fs_, read_only());
  ASSERT_NE(reader, nullptr);
  auto cursor = reader->scan(Sequence{0});
  ASSERT_OK(cursor);
  std::uint64_t next = 0;
  for (int life = 0; life < 8; ++life) {
    auto writer = open_log(fs_, small_log(life % 2 == 0 ? Durability::kSync : Durability::kBatch));
    ASSERT_NE(writer, nullptr);
    for (std::uint64_t i = 0; i < 30; ++i) ASSERT_OK(writer->append(record_of(next + i, 100)));
    ASSERT_OK(writer->flush());
    if (life % 3 == 0) writer.reset();
    for (std::uint64_t i = 0; i < 30; ++i) {
      auto record = (*cursor)->wait_next(Deadline::never());
      ASSERT_OK(record);
      ASSERT_EQ(record->sequence.value, next);
      ASSERT_EQ(as_text(record->bytes), record_of(next, 100));
      ++next;
    }
  }
}

TEST_P(Follow, AReaderThatFellBehindATruncationIsToldWhereToGoOn) {
  auto writer = open_log(fs_, small_log(Durability::kSync));
  ASSERT_NE(writer, nullptr);
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_OK(writer->append(record_of(i, 100)));
  auto reader = open_log(fs_, read_only());
  ASSERT_NE(reader, nullptr);
  auto cursor = reader->scan(Sequence{0});
  ASSERT_OK(cursor);
  std::uint64_t next = 0;
  for (const std::uint64_t to : {3u, 50u, 90u}) {  // within a segment, and segments away
    ASSERT_OK(writer->truncate_before(Sequence{to}));
    // What it holds may still be given; then it is data or the news, never damage.
    for (int i = 0; i < 5; ++i) {
      auto record = (*cursor)->next();
      if (!record.ok()) {
        EXPECT_CODE(kTruncated, record);
        EXPECT_NE(record.status().place().find("first available " + std::to_string(to)), std::string::npos)
            << record.status().message();
        next = to;
        ASSERT_OK((*cursor)->seek(Sequence{next}));
        continue;
      }
      ASSERT_TRUE(record->has_value());
      ASSERT_EQ((*record)->sequence.value, next);
      ASSERT_EQ(as_text((*record)->bytes), record_of(next, 100));
      ++next;
    }
    std::string text;
    ASSERT_OK(reader->read(Sequence{to + 1}, text));
    EXPECT_EQ(text, record_of(to + 1, 100));
    auto fresh = Log::open(fs_, "log", read_only());
    ASSERT_OK(fresh);
    EXPECT_EQ((*fresh)->cursors().first.value, to);
    EXPECT_CODE(kTruncated, (*fresh)->read(Sequence{to - 1}, text));
  }
  const ReadBack rest = read_all(*reader, Sequence{95});
  EXPECT_OK(rest.status);
  EXPECT_EQ(rest.records.size(), 5u);
}

TEST_P(Follow, AReaderOpenedBesideABusyWriterNeverFails) {
#if defined(__SANITIZE_THREAD__)
  // A follower shares nothing with its writer but the bytes, which it checks after it has read them. Through the kernel that is
  // how files are; in one process' memory it is a race that the checksums answer.
  if (std::string_view(GetParam()) == "mem") GTEST_SKIP() << "a follower and its writer on mem: in one process";
#endif
  auto writer = open_log(fs_, small_log());
  ASSERT_NE(writer, nullptr);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    for (std::uint64_t i = 0; !stop.load(); ++i) {
      ASSERT_OK(writer->append(record_of(i, i % 120)));
      if (i % 500 == 499) {
        ASSERT_OK(writer->truncate_before(Sequence{i - 400}));
      }
    }
  });
  for (int i = 0; i < 40; ++i) {
    auto reader = Log::open(fs_, "log", read_only());
    ASSERT_OK(reader);
    const std::uint64_t from = (*reader)->cursors().first.value;
    const ReadBack all = read_all(**reader, Sequence{from});
    EXPECT_TRUE(all.status.ok() || all.status.code() == Code::kTruncated) << all.status.message();
    std::uint64_t expected = from;
    for (const auto& [sequence, bytes] : all.records) {
      ASSERT_EQ(sequence, expected++);
      ASSERT_TRUE(bytes == record_of(sequence, sequence % 120));
    }
  }
  stop.store(true);
  busy.join();
}

TEST(FollowByName, MemoryIsSharedByItsName) {
  const std::string url = "mem:follow-by-name#log";
  auto writer = Log::open(url, small_log(Durability::kSync));
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->append("shared"));
  auto reader = Log::open(url, read_only());
  ASSERT_OK(reader);
  expect_records(**reader, {"shared"});
}

TEST(FollowProcess, AReaderInAnotherProcessFollowsAndWritesNothing) {
  const TemporaryDirectory directory;
  const std::string url = directory.url() + "/log";
  int gate[2];
  ASSERT_EQ(::pipe(gate), 0);
  // The reader: waits for the log to be there, then tails 300 records. Forked before this test starts a thread.
  const pid_t child = ::fork();
  if (child == 0) {
    char go = 0;
    if (::read(gate[0], &go, 1) != 1) ::_exit(2);
    auto reader = Log::open(url, read_only());
    if (!reader.ok()) ::_exit(3);
    auto cursor = (*reader)->scan(Sequence{0});
    if (!cursor.ok()) ::_exit(4);
    for (std::uint64_t i = 0; i < 300; ++i) {
      auto record = (*cursor)->wait_next(Deadline::never());
      if (!record.ok()) ::_exit(5);
      if (record->sequence.value != i || as_text(record->bytes) != record_of(i, i % 500)) ::_exit(6);
    }
    ::_exit((*reader)->append("x").code() == Code::kUnsupported ? 0 : 7);
  }
  ASSERT_GT(child, 0);
  {
    auto writer = Log::open(url, small_log());
    ASSERT_OK(writer);
    ASSERT_EQ(::write(gate[1], "g", 1), 1);
    for (std::uint64_t i = 0; i < 300; ++i) {
      ASSERT_OK((*writer)->append(record_of(i, i % 500)));
      if (i == 150) {  // a restart in the middle
        writer->reset();
        writer = Log::open(url, small_log());
        ASSERT_OK(writer);
      }
    }
    ASSERT_OK((*writer)->flush());
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  ::close(gate[0]);
  ::close(gate[1]);
}

TEST(FollowProcess, AReaderChangesNoFileOfAStoppedLog) {
  const TemporaryDirectory directory;
  {
    auto log = Log::open(directory.url() + "/log", small_log());
    ASSERT_OK(log);
    for (std::uint64_t i = 0; i < 50; ++i) ASSERT_OK((*log)->append(record_of(i, 100)));
  }
  std::map<std::string, std::filesystem::file_time_type> times;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path() + "/log"))
    times[entry.path()] = entry.last_write_time();
  {
    auto reader = Log::open(directory.url() + "/log", read_only());
    ASSERT_OK(reader);
    EXPECT_EQ(read_all(**reader).records.size(), 50u);
    ASSERT_OK((*reader)->verify(nullptr, nullptr));
  }
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path() + "/log")) {
    ++files;
    EXPECT_EQ(times[entry.path()], entry.last_write_time()) << entry.path();
  }
  EXPECT_EQ(files, times.size());
}

}  // namespace
}  // namespace tier
