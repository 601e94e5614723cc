/// Many producers, a tailing cursor and truncation at once: every record comes back once, in its producer's order, with its
/// bytes, under dense sequences. The TSan build runs the same.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "log/log_fixture.h"

namespace tier {
namespace {

using namespace testing;

struct Load {
  Durability durability;
  int producers;
  std::uint32_t each;
};

void PrintTo(const Load& load, std::ostream* out) {
  *out << durability_name(load.durability) << '/' << load.producers << " producers";
}

/// {producer, number} and then bytes that follow from both.
std::string made(std::uint32_t producer, std::uint32_t number) {
  std::size_t size = 8 + (number * 37 + producer * 11) % 400;
  if (number % 97 == 50) size = 40'000;  // a stub
  std::string bytes = record_of(producer * 1'000'003u + number, size);
  std::memcpy(bytes.data(), &producer, 4);
  std::memcpy(bytes.data() + 4, &number, 4);
  return bytes;
}

class Concurrent : public ::testing::TestWithParam<Load> {};
INSTANTIATE_TEST_SUITE_P(Loads, Concurrent,
                         ::testing::Values(Load{Durability::kAsync, 2, 3000}, Load{Durability::kAsync, 8, 800},
                                           Load{Durability::kBatch, 4, 1500}, Load{Durability::kSync, 2, 300},
                                           Load{Durability::kSync, 8, 150}));

TEST_P(Concurrent, EveryProducersRecordsComeBackInItsOrder) {
  const Load load = GetParam();
  LogOptions options = plain_log(load.durability);
  options.allow_small_segments = true;
  options.segment_size = Bytes{256u << 10};
  options.max_record = Bytes{64u << 10};
  options.ring_size = Bytes{64u << 10};  // 16,380 bytes and more go as stubs
  options.batch_bytes = Bytes{8u << 10};
  options.batch_interval = 1ms;
  auto fs = memory();
  auto log = open_log(fs, options);
  ASSERT_NE(log, nullptr);
  std::atomic<std::uint64_t> voids{0};
  std::atomic<int> failures{0};
  std::vector<std::thread> producers;
  for (int p = 0; p < load.producers; ++p) {
    producers.emplace_back([&, p] {
      const auto me = static_cast<std::uint32_t>(p);
      std::uint64_t last = 0;
      for (std::uint32_t n = 0; n < load.each;) {
        Result<Sequence> sequence = Sequence{0};
        switch ((n + me) % 5) {
          case 0: {  // a batch of up to three
            std::string r[3];
            std::vector<ByteSpan> spans;
            for (std::uint32_t i = 0; i < 3 && n + i < load.each; ++i) spans.push_back(as_bytes(r[i] = made(me, n + i)));
            sequence = log->append_batch(spans);
            n += static_cast<std::uint32_t>(spans.size());
            break;
          }
          case 1: {  // filled in place; now and then one is abandoned first
            const std::string r = made(me, n);
            if (r.size() > 16'000) {
              sequence = log->append(r);
              ++n;
              break;
            }
            if (n % 50 == 1) {
              if (auto dropped = log->reserve(33); dropped.ok()) voids.fetch_add(1);
            }
            auto reservation = log->reserve(r.size());
            if (!reservation.ok()) {
              sequence = reservation.status();
              break;
            }
            std::memcpy(reservation->bytes().data(), r.data(), r.size());
            sequence = reservation->sequence();
            reservation->publish();
            ++n;
            break;
          }
          case 2:
            sequence = n % 40 == 2 ? log->append_durable(as_bytes(made(me, n))) : log->append(made(me, n));
            ++n;
            break;
          default:
            sequence = log->append(made(me, n));
            ++n;
        }
        if (!sequence.ok() || (sequence->value <= last && last != 0)) {
          failures.fetch_add(1);
          ADD_FAILURE() << sequence.status().message();
          return;
        }
        last = sequence->value;
      }
    });
  }
  // The reader follows from the first record and truncates far behind itself.
  const std::uint64_t wanted = std::uint64_t{static_cast<std::uint32_t>(load.producers)} * load.each;
  std::vector<std::uint32_t> next(static_cast<std::size_t>(load.producers), 0);
  auto cursor = log->scan(Sequence{0});
  ASSERT_OK(cursor);
  std::uint64_t sequence = 0;
  for (std::uint64_t taken = 0; taken < wanted && failures.load() == 0; ++taken) {
    auto record = (*cursor)->wait_next(Deadline::never());
    ASSERT_OK(record);
    ASSERT_GE(record->sequence.value, sequence);  // voids are passed over
    sequence = record->sequence.value + 1;
    std::uint32_t head[2];
    ASSERT_GE(record->bytes.size(), sizeof head);
    std::memcpy(head, record->bytes.data(), sizeof head);
    ASSERT_LT(head[0], next.size());
    ASSERT_EQ(head[1], next[head[0]]++);
    ASSERT_TRUE(as_text(record->bytes) == made(head[0], head[1]));
    if (taken % 1000 == 999 && sequence > 2000) {
      ASSERT_OK(log->truncate_before(Sequence{sequence - 2000}));
    }
  }
  for (std::thread& t : producers) t.join();
  ASSERT_EQ(failures.load(), 0);
  ASSERT_OK(log->flush());
  EXPECT_EQ(log->cursors().durable.value, wanted + voids.load());
  log->close();
  cursor->reset();  // what it holds keeps its segment, and the segment's lock
  log.reset();
  log = open_log(fs, options);
  ASSERT_NE(log, nullptr);
  EXPECT_EQ(log->recovery().to.value, wanted + voids.load());
  auto verified = log->verify(nullptr, nullptr);
  ASSERT_OK(verified);
  EXPECT_EQ(verified->damages, 0u);
}

TEST(ConcurrentWaits, EveryWaiterIsToldWhileSyncsOverlap) {
  auto log = open_log(memory(), plain_log(Durability::kBatch));
  ASSERT_NE(log, nullptr);
  std::atomic<std::uint64_t> done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<DurableOp> ops(200);
      std::atomic<std::uint64_t> mine{0};
      std::pair<std::atomic<std::uint64_t>*, std::atomic<std::uint64_t>*> counts{&done, &mine};
      for (std::size_t i = 0; i < ops.size(); ++i) {
        auto sequence = log->append(record_of(i, 64));
        ASSERT_OK(sequence);
        ops[i].sequence = *sequence + 1;
        ops[i].context = &counts;
        ops[i].done = [](DurableOp& op, Status s) {
          EXPECT_TRUE(s.ok());
          auto* c = static_cast<std::pair<std::atomic<std::uint64_t>*, std::atomic<std::uint64_t>*>*>(op.context);
          c->first->fetch_add(1);
          c->second->fetch_add(1);
        };
        log->on_durable(ops[i]);
        if (t == 0 && i % 20 == 0) {
          ASSERT_OK(log->flush());
        }
        if (t == 1 && i % 30 == 0) {
          ASSERT_OK(log->wait_durable(*sequence + 1));
        }
      }
      while (mine.load() < ops.size()) std::this_thread::yield();
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(done.load(), 800u);
}

}  // namespace
}  // namespace tier
