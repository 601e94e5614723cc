/// Ring: claims, wrapping, modular arithmetic, batches, stubs, freezing and wake-ups.
/// Method: one thread drives each rule to its boundary; then producers and a consumer run at once and every byte is compared
/// (in the TSan build also every access).
#include "log/ring.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "log/format.h"
#include "log/log_fixture.h"

namespace tier {
namespace {

using testing::record_of;

constexpr std::uint32_t kAll = 1u << 30;

std::unique_ptr<Ring> make_ring(std::size_t size = 4096, std::uint64_t first = 0) {
  auto ring = Ring::create(size, first);
  EXPECT_TRUE(ring.ok()) << ring.status().message();
  return ring.ok() ? *std::move(ring) : nullptr;
}

/// Claims, copies and publishes one record; false when there is no room.
bool put(Ring& ring, std::string_view bytes, std::uint64_t* sequence = nullptr) {
  Ring::Claim claim;
  if (!ring.try_claim(1, static_cast<std::uint32_t>(bytes.size()), claim)) return false;
  std::memcpy(ring.bytes_at(claim.position), bytes.data(), bytes.size());
  const std::uint64_t full = ring.full_sequence(claim);
  ring.publish(full, claim.bytes, 0);
  if (sequence != nullptr) *sequence = full;
  return true;
}

std::string gathered_text(const Ring& ring, const Ring::Gathered& g) {
  return std::string(reinterpret_cast<const char*>(ring.gathered_bytes()), g.bytes);
}

TEST(Ring, ClaimsFillItToTheLastByteAndNoFurther) {
  auto ring = make_ring();
  Ring::Claim claim;
  ASSERT_TRUE(ring->try_claim(1, 4095, claim));
  EXPECT_FALSE(ring->try_claim(1, 2, claim));
  ASSERT_TRUE(ring->try_claim(1, 1, claim));
  EXPECT_EQ(claim.position, 4095u);
  EXPECT_FALSE(ring->try_claim(1, 1, claim));
  EXPECT_EQ(ring->ahead().bytes, 4096u);
  EXPECT_EQ(ring->ahead().records, 2u);
}

TEST(Ring, ClaimsFillItToTheLastSlotAndNoFurther) {
  auto ring = make_ring();
  Ring::Claim claim;
  for (std::uint32_t i = 0; i < ring->slots(); ++i) ASSERT_TRUE(ring->try_claim(1, 4, claim)) << i;
  EXPECT_FALSE(ring->try_claim(1, 4, claim));
  EXPECT_EQ(ring->claimed(), ring->slots());
}

TEST(Ring, ARefusedClaimChangesNothing) {
  auto ring = make_ring();
  Ring::Claim claim;
  EXPECT_FALSE(ring->try_claim(1, 4097, claim));
  EXPECT_FALSE(ring->try_claim(ring->slots() + 1, 4, claim));
  EXPECT_EQ(ring->claimed(), 0u);
  ASSERT_TRUE(ring->try_claim(1, 4096, claim));
  EXPECT_EQ(claim.position, 0u);
}

TEST(Ring, ReleasedSpaceCanBeClaimedAgain) {
  auto ring = make_ring();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(put(*ring, record_of(1, 3000)));
    EXPECT_FALSE(put(*ring, record_of(2, 2000)));
    ring->release(ring->gather(kAll));
    ASSERT_TRUE(put(*ring, record_of(2, 2000)));
    ring->release(ring->gather(kAll));
  }
}

TEST(Ring, ARecordOverTheEndIsOneRangeOfBytes) {
  auto ring = make_ring();
  ASSERT_TRUE(put(*ring, record_of(0, 4000)));
  ring->release(ring->gather(kAll));
  const std::string record = record_of(1, 1000);  // 96 bytes before the end, the rest at the beginning
  ASSERT_TRUE(put(*ring, record));
  EXPECT_EQ(gathered_text(*ring, ring->gather(kAll)), record);
}

TEST(Ring, OnlyThePublishedPrefixIsGathered) {
  auto ring = make_ring();
  Ring::Claim a, b;
  ASSERT_TRUE(ring->try_claim(1, 8, a));
  ASSERT_TRUE(ring->try_claim(1, 16, b));
  ring->publish(ring->full_sequence(b), 16, 0);
  EXPECT_EQ(ring->gather(kAll).records, 0u);
  ring->publish(ring->full_sequence(a), 8, 0);
  EXPECT_EQ(ring->gather(kAll).records, 2u);
  EXPECT_EQ(ring->gather(kAll).bytes, 24u);
}

TEST(Ring, AnEarlierLapsSlotsAreNotTakenForPublished) {
  auto ring = make_ring();
  for (int lap = 0; lap < 5; ++lap) {
    for (std::uint32_t i = 0; i < ring->slots(); ++i) ASSERT_TRUE(put(*ring, "abcd"));
    EXPECT_EQ(ring->gather(kAll).records, ring->slots());
    ring->release(ring->gather(kAll));
    Ring::Claim claim;
    ASSERT_TRUE(ring->try_claim(1, 4, claim));
    EXPECT_EQ(ring->gather(kAll).records, 0u) << "lap " << lap;
    ring->publish(ring->full_sequence(claim), 4, 0);
    ring->release(ring->gather(kAll));
  }
}

TEST(Ring, GatherStopsAtItsByteLimitButTakesOneRecordOfAnySize) {
  auto ring = make_ring();
  ASSERT_TRUE(put(*ring, record_of(0, 1000)));
  ASSERT_TRUE(put(*ring, record_of(1, 100)));
  ASSERT_TRUE(put(*ring, record_of(2, 100)));
  EXPECT_EQ(ring->gather(1).records, 1u);
  EXPECT_EQ(ring->gather(1099).records, 1u);
  EXPECT_EQ(ring->gather(1100).records, 2u);
  EXPECT_EQ(ring->gather(1200).records, 3u);
}

/// A batch of `sizes`, published from the last to the first down to `stop`.
void put_batch(Ring& ring, const std::vector<std::uint32_t>& sizes, std::size_t stop, Ring::Claim& claim) {
  std::uint32_t bytes = 0;
  for (const std::uint32_t s : sizes) bytes += s;
  ASSERT_TRUE(ring.try_claim(static_cast<std::uint32_t>(sizes.size()), bytes, claim));
  for (std::size_t i = sizes.size(); i-- > stop;)
    ring.publish(ring.full_sequence(claim) + i, sizes[i], i + 1 < sizes.size() ? Ring::kMore : 0);
}

TEST(Ring, ABatchIsNeverSplitByGather) {
  auto ring = make_ring();
  Ring::Claim claim;
  ASSERT_TRUE(put(*ring, record_of(0, 10)));
  put_batch(*ring, {10, 20, 30}, 0, claim);
  for (std::uint32_t most = 1; most < 70; ++most) {
    const std::uint32_t records = ring->gather(most).records;
    EXPECT_EQ(records, 1u) << most;
  }
  EXPECT_EQ(ring->gather(70).records, 4u);
  ring->release(ring->gather(1));
  EXPECT_EQ(ring->gather(1).records, 3u);  // alone it is taken whole, whatever its size
}

TEST(Ring, AHalfPublishedBatchIsNotGathered) {
  auto ring = make_ring();
  Ring::Claim claim;
  put_batch(*ring, {10, 20, 30}, 1, claim);
  EXPECT_EQ(ring->gather(kAll).records, 0u);
  ring->publish(ring->full_sequence(claim), 10, Ring::kMore);
  EXPECT_EQ(ring->gather(kAll).records, 3u);
}

TEST(Ring, ABatchThatFillsEverySlotIsGathered) {
  auto ring = make_ring();
  Ring::Claim claim;
  put_batch(*ring, std::vector<std::uint32_t>(ring->slots(), 4), 0, claim);
  EXPECT_EQ(ring->gather(1).records, ring->slots());
}

TEST(Ring, AStubIsABlockOfItsOwn) {
  auto ring = make_ring();
  const std::string large = record_of(7, 100'000);
  const ByteSpan parts[] = {as_bytes(large)};
  const RingStub stub{parts, 100'000, 3};
  const RingStub* pointer = &stub;
  ASSERT_TRUE(put(*ring, record_of(0, 10)));
  Ring::Claim claim;
  ASSERT_TRUE(ring->try_claim(3, sizeof pointer, claim));
  std::memcpy(ring->bytes_at(claim.position), &pointer, sizeof pointer);
  ring->publish(ring->full_sequence(claim), sizeof pointer, Ring::kStub);
  std::uint64_t after = 0;
  ASSERT_TRUE(put(*ring, record_of(4, 10), &after));
  EXPECT_EQ(after, 4u);

  Ring::Gathered g = ring->gather(kAll);
  EXPECT_EQ(g.records, 1u);
  EXPECT_EQ(g.stub, nullptr);
  ring->release(g);
  g = ring->gather(kAll);
  EXPECT_EQ(g.records, 3u);
  EXPECT_EQ(g.bytes, sizeof pointer);
  EXPECT_EQ(g.stub, &stub);
  ring->release(g);
  g = ring->gather(kAll);
  EXPECT_EQ(g.records, 1u);
  EXPECT_EQ(g.stub, nullptr);
  EXPECT_EQ(gathered_text(*ring, g), record_of(4, 10));
}

TEST(Ring, AfterFreezeNoClaimSucceedsButEarlierOnesCanPublish) {
  auto ring = make_ring();
  Ring::Claim claim, refused;
  ASSERT_TRUE(ring->try_claim(1, 8, claim));
  EXPECT_FALSE(ring->frozen());
  ring->freeze();
  EXPECT_TRUE(ring->frozen());
  EXPECT_FALSE(ring->try_claim(1, 8, refused));
  EXPECT_EQ(ring->claimed(), 1u);
  EXPECT_EQ(ring->ahead().records, 1u);
  ring->publish(ring->full_sequence(claim), 8, 0);
  EXPECT_EQ(ring->gather(kAll).records, 1u);
  ring->release(ring->gather(kAll));
  EXPECT_FALSE(ring->try_claim(1, 8, refused));
}

TEST(Ring, OnlyTheClaimThatCrossesTheArmedWordWakesAndOnlyOnce) {
  auto ring = make_ring();
  const auto claim_one = [&](std::uint32_t bytes) {
    Ring::Claim claim;
    EXPECT_TRUE(ring->try_claim(1, bytes, claim));
    return claim;
  };
  EXPECT_FALSE(ring->must_wake(claim_one(4)));  // not armed
  ring->arm(4, 1000);
  EXPECT_FALSE(ring->must_wake(claim_one(4)));
  EXPECT_FALSE(ring->must_wake(claim_one(4)));
  EXPECT_TRUE(ring->must_wake(claim_one(4)));  // the fourth record behind what was released
  EXPECT_TRUE(ring->disarm());
  EXPECT_FALSE(ring->disarm());
  EXPECT_FALSE(ring->must_wake(claim_one(4)));
  ring->arm(1000, 100);
  EXPECT_FALSE(ring->must_wake(claim_one(79)));  // 99 bytes
  EXPECT_TRUE(ring->must_wake(claim_one(1)));
}

class RingAt : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(RingAt, SequencesAreRightAcrossTheWordsWrap) {
  const std::uint64_t first = GetParam();
  auto ring = make_ring(4096, first);
  EXPECT_EQ(ring->claimed(), first);
  std::uint64_t expected = first;
  for (int i = 0; i < 40; ++i) {
    for (int j = 0; j < 5; ++j) {
      std::uint64_t sequence = 0;
      ASSERT_TRUE(put(*ring, record_of(expected, 11), &sequence));
      ASSERT_EQ(sequence, expected++);
      ASSERT_EQ(ring->claimed(), expected);
    }
    EXPECT_EQ(ring->ahead().records, 5u);
    const Ring::Gathered g = ring->gather(kAll);
    ASSERT_EQ(g.records, 5u);
    ring->release(g);
    EXPECT_EQ(ring->ahead().records, 0u);
  }
}

TEST_P(RingAt, SlotsFillAndWakesComeAcrossTheWordsWrap) {
  auto ring = make_ring(4096, GetParam());
  Ring::Claim claim;
  for (int lap = 0; lap < 3; ++lap) {
    ring->arm(ring->slots(), 4096);
    for (std::uint32_t i = 0; i < ring->slots(); ++i) {
      ASSERT_TRUE(ring->try_claim(1, 4, claim)) << i;
      ASSERT_EQ(ring->must_wake(claim), i + 1 == ring->slots()) << i;
      ring->publish(ring->full_sequence(claim), 4, 0);
    }
    ASSERT_FALSE(ring->try_claim(1, 4, claim));
    ring->release(ring->gather(kAll));
  }
}

INSTANTIATE_TEST_SUITE_P(Wraps, RingAt,
                         ::testing::Values(0u, (std::uint64_t{1} << 31) - 5, (std::uint64_t{1} << 31) - 64,
                                           (std::uint64_t{1} << 32) - 5, (std::uint64_t{3} << 31) - 100,
                                           (std::uint64_t{1} << 47) - 7));

TEST(Ring, PositionsAreRightBeyondFourGibibytes) {
  // Each claim is a quarter of the ring; only its first and last bytes are touched, so 5 GiB of positions cost little.
  constexpr std::size_t kSize = 1u << 20;
  constexpr std::uint32_t kClaim = kSize / 4;
  auto ring = make_ring(kSize, (std::uint64_t{1} << 31) - 5);
  std::uint64_t sequence = (std::uint64_t{1} << 31) - 5;
  const std::uint64_t claims = (std::uint64_t{5} << 30) / kClaim;
  for (std::uint64_t i = 0; i < claims; ++i) {
    Ring::Claim claim;
    const std::uint32_t bytes = kClaim - static_cast<std::uint32_t>(i % 7);
    ASSERT_TRUE(ring->try_claim(1, bytes, claim)) << i;
    std::byte* at = ring->bytes_at(claim.position);
    std::memcpy(at, &i, sizeof i);
    std::memcpy(at + bytes - sizeof i, &i, sizeof i);
    ASSERT_EQ(ring->full_sequence(claim), sequence);
    ring->publish(sequence, bytes, 0);
    ++sequence;
    if (i % 3 != 2) continue;
    const Ring::Gathered g = ring->gather(kAll);
    ASSERT_EQ(g.records, 3u);
    for (std::uint64_t k = 0, offset = 0; k < 3; ++k) {
      std::uint64_t head = 0, tail = 0;
      const std::uint32_t length = kClaim - static_cast<std::uint32_t>((i - 2 + k) % 7);
      std::memcpy(&head, ring->gathered_bytes() + offset, sizeof head);
      std::memcpy(&tail, ring->gathered_bytes() + offset + length - sizeof tail, sizeof tail);
      ASSERT_EQ(head, i - 2 + k);
      ASSERT_EQ(tail, i - 2 + k);
      offset += length;
    }
    ring->release(g);
  }
}

TEST(Ring, ManyProducersAndOneConsumerMoveEveryByte) {
  constexpr std::uint32_t kProducers = 4;
  constexpr std::uint32_t kEach = 20'000;
  auto ring = make_ring(1u << 16);
  std::vector<std::thread> producers;
  for (std::uint32_t p = 0; p < kProducers; ++p) {
    producers.emplace_back([&, p] {
      // {length, producer, number, bytes}: singles and batches of 1 to 4.
      for (std::uint32_t n = 0; n < kEach;) {
        const std::uint32_t batch = std::min(1 + (n * 7 + p) % 4, kEach - n);
        std::uint32_t sizes[4] = {};
        std::uint32_t bytes = 0;
        for (std::uint32_t i = 0; i < batch; ++i) bytes += sizes[i] = 12 + ((n + i) * 31 + p) % 300;
        Ring::Claim claim;
        while (!ring->try_claim(batch, bytes, claim)) std::this_thread::yield();
        std::byte* at = ring->bytes_at(claim.position);
        for (std::uint32_t i = 0; i < batch; ++i) {
          const std::uint32_t head[3] = {sizes[i], p, n + i};
          std::memcpy(at, head, sizeof head);
          std::memset(at + 12, static_cast<int>((p * 50 + n + i) & 0xff), sizes[i] - 12);
          at += sizes[i];
        }
        const std::uint64_t sequence = ring->full_sequence(claim);
        for (std::uint32_t i = batch; i-- > 0;)
          ring->publish(sequence + i, sizes[i], i + 1 < batch ? Ring::kMore : 0);
        n += batch;
      }
    });
  }
  std::uint32_t next[kProducers] = {};
  std::uint64_t taken = 0;
  std::uint64_t wrong = 0;
  while (taken < std::uint64_t{kProducers} * kEach) {
    const Ring::Gathered g = ring->gather(4096);
    if (g.records == 0) {
      std::this_thread::yield();
      continue;
    }
    const std::byte* at = ring->gathered_bytes();
    for (std::uint32_t i = 0; i < g.records; ++i) {
      std::uint32_t head[3];
      std::memcpy(head, at, sizeof head);
      ASSERT_LT(head[1], kProducers);
      ASSERT_EQ(head[2], next[head[1]]++);
      for (std::uint32_t b = 12; b < head[0]; ++b)
        wrong += at[b] != static_cast<std::byte>((head[1] * 50 + head[2]) & 0xff);
      at += head[0];
    }
    ASSERT_EQ(at, ring->gathered_bytes() + g.bytes);
    taken += g.records;
    ring->release(g);
  }
  for (std::thread& t : producers) t.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(ring->claimed(), taken);
}

TEST(Ring, NoWakeIsEverMissed) {
  // The consumer sleeps for ever unless the claim it armed for wakes it: a missed wake hangs the test.
  constexpr std::uint32_t kProducers = 3;
  constexpr std::uint32_t kEach = 30'000;
  auto ring = make_ring(1u << 14);
  Event woken(*Runtime::system().parker);
  std::vector<std::thread> producers;
  for (std::uint32_t p = 0; p < kProducers; ++p) {
    producers.emplace_back([&, p] {
      for (std::uint32_t n = 0; n < kEach; ++n) {
        Ring::Claim claim;
        const std::uint32_t bytes = 4 + (n + p) % 40;
        while (!ring->try_claim(1, bytes, claim)) std::this_thread::yield();
        ring->publish(ring->full_sequence(claim), bytes, 0);
        if (ring->must_wake(claim) && ring->disarm()) woken.signal();
        if (n % 64 == 0) std::this_thread::yield();
      }
    });
  }
  std::uint64_t taken = 0;
  std::uint64_t sleeps = 0;
  while (taken < std::uint64_t{kProducers} * kEach) {
    const std::uint32_t ticket = woken.ticket();
    const Ring::Gathered g = ring->gather(kAll);
    if (g.records != 0) {
      taken += g.records;
      ring->release(g);
      continue;
    }
    ring->arm(1, 1);
    if (ring->ahead().records != 0) {  // R5: it sees the claim, or the claim sees the armed word
      std::this_thread::yield();
      continue;
    }
    ++sleeps;
    woken.wait(ticket, Deadline::never());
  }
  for (std::thread& t : producers) t.join();
  ::testing::Test::RecordProperty("sleeps", std::to_string(sleeps));
}

}  // namespace
}  // namespace tier
