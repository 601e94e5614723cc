/// A real kernel, a real process, SIGKILL at a random moment (reliability goal G8; acknowledgement level A1 and more).
///
/// The child appends from two threads and reports through a pipe what the log has told it: sequences that a durable wait
/// covered, and how far `committed` had come. The parent reads what is in the pipe when the child is dead: every report was
/// true at some moment before, so all of it must be found again. A second child tails the log read-only meanwhile.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "testing/sim_random.h"
#include "tier/log.h"

namespace tier::testing {
namespace {

struct Report {
  enum class Kind : std::uint32_t { kRecord, kCommitted, kDurable, kFailed };
  Kind kind = Kind::kRecord;
  std::uint32_t producer = 0;
  std::uint64_t sequence = 0;  ///< kRecord: of it; else one past the last
  std::uint64_t number = 0;    ///< kRecord: the producer's own count, over all its lives
};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base != nullptr ? base : "/tmp") + "/tier-kill-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

/// Producer and number first, then bytes that follow from them; sizes from 12 bytes to some kilobytes.
std::string payload(std::uint32_t producer, std::uint64_t number) {
  std::uint64_t word = sim_mix(number, producer);
  std::string bytes(12 + (word % 16 == 0 ? word % 4000 : word % 200), '\0');
  std::memcpy(bytes.data(), &producer, 4);
  std::memcpy(bytes.data() + 4, &number, 8);
  for (std::size_t at = 12; at < bytes.size(); at += 8) {
    word = sim_mix(word, at);
    std::memcpy(bytes.data() + at, &word, std::min<std::size_t>(8, bytes.size() - at));
  }
  return bytes;
}
bool is_payload(std::string_view bytes, std::uint32_t& producer, std::uint64_t& number) {
  if (bytes.size() < 12) return false;
  std::memcpy(&producer, bytes.data(), 4);
  std::memcpy(&number, bytes.data() + 4, 8);
  return bytes == payload(producer, number);
}

LogOptions options(Durability durability) {
  LogOptions o;
  o.durability = durability;
  o.segment_size = Bytes{64u << 10};
  o.allow_small_segments = true;
  o.ring_size = Bytes{64u << 10};
  o.max_record = Bytes{8u << 10};
  o.batch_bytes = Bytes{4096};
  o.batch_interval = std::chrono::milliseconds(1);
  return o;
}

void tell(int pipe, const Report& report) {
  // Less than PIPE_BUF: whole or not at all. A full pipe blocks, and a kill may come then, too.
  if (::write(pipe, &report, sizeof report) != static_cast<ssize_t>(sizeof report)) ::_exit(3);
}

/// The child's life; ends with SIGKILL.
[[noreturn]] void append_for_ever(const std::string& url, Durability durability, std::array<std::uint64_t, 2> next,
                                  int pipe) {
  auto opened = Log::open(url, options(durability));
  if (!opened.ok()) {
    std::fprintf(stderr, "child: %s\n", opened.status().message().c_str());
    tell(pipe, {Report::Kind::kFailed});
    ::_exit(2);
  }
  Log& log = **opened;
  const auto produce = [&](std::uint32_t producer) {
    for (std::uint64_t i = next[producer];; ++i) {
      const std::string bytes = payload(producer, i);
      const auto sequence = log.append(bytes);
      if (!sequence.ok()) {
        std::fprintf(stderr, "child: %s\n", sequence.status().message().c_str());
        tell(pipe, {Report::Kind::kFailed});
        ::_exit(2);
      }
      tell(pipe, {Report::Kind::kRecord, producer, sequence->value, i});
      if (durability == Durability::kSync) tell(pipe, {Report::Kind::kDurable, producer, sequence->value + 1, 0});
      if (i % 16 == 7) {
        if (log.wait_durable(*sequence + 1).ok())
          tell(pipe, {Report::Kind::kDurable, producer, sequence->value + 1, 0});
      } else if (i % 4 == 1) {
        tell(pipe, {Report::Kind::kCommitted, producer, log.cursors().committed.value, 0});
      }
    }
  };
  std::thread other([&] { produce(1); });
  produce(0);
  ::_exit(0);
}

/// Follows the log from `from`; exits 0 when told to stop, 1 on anything that is not the next record.
[[noreturn]] void tail(const std::string& url, std::uint64_t from, int stop) {
  LogOptions o;
  o.read_only = true;
  o.allow_small_segments = true;
  o.max_record = Bytes{8u << 10};
  std::unique_ptr<Log> log;
  for (;;) {
    auto opened = Log::open(url, o);
    if (opened.ok()) {
      log = *std::move(opened);
      break;
    }
    if (opened.code() != Code::kNotFound) {
      std::fprintf(stderr, "tail: %s\n", opened.status().message().c_str());
      ::_exit(1);
    }
    ::usleep(200);
  }
  auto cursor = log->scan(Sequence{from});
  if (!cursor.ok()) ::_exit(1);
  Clock& clock = *Runtime::system().clock;
  for (std::uint64_t expected = from;;) {
    auto record = (*cursor)->wait_next(clock.in(std::chrono::milliseconds(5)));
    if (record.ok()) {
      std::uint32_t producer = 0;
      std::uint64_t number = 0;
      if (record->sequence.value != expected++ || !is_payload(as_text(record->bytes), producer, number)) ::_exit(1);
      continue;
    }
    if (record.code() != Code::kTimedOut) {
      std::fprintf(stderr, "tail: %s\n", record.status().message().c_str());
      ::_exit(1);
    }
    char byte = 0;
    if (::read(stop, &byte, 1) == 0) ::_exit(0);  // the parent has closed its end
  }
}

class KillTest : public ::testing::TestWithParam<Durability> {};

TEST_P(KillTest, WhatTheLogPromisedIsThereAfterSigkill) {
  constexpr int kLives = 14;
  constexpr std::uint64_t kSeed = 20240229;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  SimRandom random(kSeed + static_cast<std::uint64_t>(GetParam()));
  const TemporaryFolder folder;
  ASSERT_FALSE(folder.path().empty());
  const std::string url = "local://" + folder.path() + "#log";
  std::array<std::uint64_t, 2> next{};  // numbers that no life has used
  std::vector<Report> records;          // of all lives, by what the parent found
  for (int life = 0; life < kLives; ++life) {
    SCOPED_TRACE("life " + std::to_string(life));
    int reports[2];
    int stop[2];
    ASSERT_EQ(::pipe2(reports, O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(stop, O_CLOEXEC | O_NONBLOCK), 0);
    const std::uint64_t found_before = records.size();
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(reports[0]);
      append_for_ever(url, GetParam(), next, reports[1]);
    }
    pid_t follower = -1;
    if (life % 3 == 1) {
      follower = ::fork();
      ASSERT_GE(follower, 0);
      if (follower == 0) {
        ::close(reports[0]);
        ::close(reports[1]);
        ::close(stop[1]);
        tail(url, 0, stop[0]);
      }
    }
    ::close(reports[1]);
    ::close(stop[0]);

    // Reports are read as they come, so that the child is not held up; it dies after a random number of them.
    std::vector<Report> told;
    const std::uint64_t lives_for = random.below(std::uint64_t{4} << random.below(9));
    bool killed = false;
    for (Report report; ::read(reports[0], &report, sizeof report) == static_cast<ssize_t>(sizeof report);) {
      told.push_back(report);
      if (!killed && told.size() > lives_for) {
        ASSERT_EQ(::kill(child, SIGKILL), 0);
        killed = true;
      }
    }
    ::close(reports[0]);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "status " << status;

    std::uint64_t promised = found_before;
    for (const Report& r : told) {
      ASSERT_NE(r.kind, Report::Kind::kFailed);
      if (r.kind != Report::Kind::kRecord) promised = std::max(promised, r.sequence);
    }
    {
      auto log = Log::open(url, options(GetParam()));
      ASSERT_TRUE(log.ok()) << log.status().message();
      const LogCursors at = (*log)->cursors();
      EXPECT_EQ(at.first.value, 0u);
      ASSERT_GE(at.durable.value, promised);
      auto verified = (*log)->verify(nullptr, nullptr);
      ASSERT_TRUE(verified.ok()) << verified.status().message();
      EXPECT_EQ(verified->damages, 0u);
      auto cursor = (*log)->scan(Sequence{0});
      ASSERT_TRUE(cursor.ok()) << cursor.status().message();
      std::vector<Report> found;
      std::array<std::uint64_t, 2> last{};
      for (;;) {
        auto record = (*cursor)->next();
        ASSERT_TRUE(record.ok()) << record.status().message();
        if (!*record) break;
        Report r;
        r.sequence = (*record)->sequence.value;
        ASSERT_EQ(r.sequence, found.size());
        ASSERT_TRUE(is_payload(as_text((*record)->bytes), r.producer, r.number)) << "sequence " << r.sequence;
        ASSERT_LT(r.producer, 2u);
        ASSERT_GE(r.number, last[r.producer]) << "a producer's records are out of order";
        last[r.producer] = r.number + 1;
        found.push_back(r);
      }
      ASSERT_EQ(found.size(), at.durable.value);
      for (std::size_t i = 0; i < records.size(); ++i)
        ASSERT_TRUE(found[i].producer == records[i].producer && found[i].number == records[i].number)
            << "sequence " << i;
      for (const Report& r : told) {
        if (r.kind != Report::Kind::kRecord) continue;
        next[r.producer] = std::max(next[r.producer], r.number + 1);
        if (r.sequence >= found.size()) continue;
        ASSERT_TRUE(found[r.sequence].producer == r.producer && found[r.sequence].number == r.number)
            << "sequence " << r.sequence;
      }
      // A number in flight at the kill may have been used without a word.
      for (std::uint32_t p = 0; p < 2; ++p) next[p] = std::max(next[p], last[p]) + 1;
      records = std::move(found);
    }
    if (follower > 0) {
      ::close(stop[1]);
      ASSERT_EQ(::waitpid(follower, &status, 0), follower);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
          << "the reader beside the writer failed, status " << status;
    } else {
      ::close(stop[1]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, KillTest, ::testing::Values(Durability::kSync, Durability::kBatch, Durability::kAsync),
                         [](const auto& mode) { return std::string(durability_name(mode.param)); });

}  // namespace
}  // namespace tier::testing
