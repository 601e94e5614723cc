/// EpochProtector: what a reader can reach is not reclaimed, and what it cannot reach is. The stress test marks a node as gone
/// where real code would free it; a reader that meets the mark has seen a reclaimed node.
#include "base/epoch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "tier/runtime.h"

namespace tier {
namespace {

TEST(EpochProtector, AGuardHoldsBackWhatIsRetiredAfterItEntered) {
  EpochProtector epochs;
  std::optional<EpochProtector::Guard> guard;
  guard.emplace(epochs);
  const std::uint64_t retired = epochs.retire();
  EXPECT_LE(epochs.safe_epoch(), retired);
  guard.reset();
  EXPECT_GT(epochs.safe_epoch(), retired);
}

TEST(EpochProtector, AGuardThatEntersLaterDoesNotHoldItBack) {
  EpochProtector epochs;
  const std::uint64_t retired = epochs.retire();
  EpochProtector::Guard guard(epochs);
  EXPECT_GT(epochs.safe_epoch(), retired);
}

TEST(EpochProtector, TheOldestGuardCounts) {
  EpochProtector epochs;
  std::optional<EpochProtector::Guard> old(std::in_place, epochs);
  const std::uint64_t first = epochs.retire();
  EpochProtector::Guard young(epochs);
  const std::uint64_t second = epochs.retire();
  EXPECT_LE(epochs.safe_epoch(), first);
  old.reset();
  EXPECT_GT(epochs.safe_epoch(), first);
  EXPECT_LE(epochs.safe_epoch(), second);
}

TEST(EpochProtector, OneThreadMayHoldManyGuards) {
  EpochProtector epochs;
  std::vector<std::unique_ptr<EpochProtector::Guard>> guards;
  for (std::size_t i = 0; i < EpochProtector::kSlots; ++i)
    guards.push_back(std::make_unique<EpochProtector::Guard>(epochs));
  const std::uint64_t retired = epochs.retire();
  guards.erase(guards.begin() + 1, guards.end());
  EXPECT_LE(epochs.safe_epoch(), retired);
  guards.clear();
  EXPECT_GT(epochs.safe_epoch(), retired);
}

TEST(EpochProtector, GuardsOfEndedThreadsAreReleased) {
  EpochProtector epochs;
  for (std::size_t i = 0; i < 2 * EpochProtector::kSlots; ++i)
    std::thread([&] { EpochProtector::Guard guard(epochs); }).join();
  const std::uint64_t retired = epochs.retire();
  EXPECT_GT(epochs.safe_epoch(), retired);
}

// E1, E2
TEST(EpochProtector, NoReaderSeesAReclaimedNode) {
  constexpr int kReaders = 3;
  constexpr std::uint64_t kVersions = 20'000;
  struct Node {
    std::atomic<std::uint64_t> version{0};  // 0: reclaimed
  };
  EpochProtector epochs;
  // A fixed pool: a reclaimed node is used again soon, so a late reader is caught.
  constexpr std::size_t kPool = 8;
  std::vector<std::unique_ptr<Node>> free;
  for (std::size_t i = 0; i < kPool; ++i) free.push_back(std::make_unique<Node>());
  std::unique_ptr<Node> first = std::move(free.back());
  free.pop_back();
  first->version.store(1, std::memory_order_relaxed);  // relaxed: no thread runs yet
  std::atomic<Node*> current{first.release()};
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> wrong{0};

  std::vector<std::thread> readers;
  for (int r = 0; r < kReaders; ++r) {
    readers.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) {  // relaxed: only ends the test
        EpochProtector::Guard guard(epochs);
        Node* node = current.load(std::memory_order_seq_cst);  // E1
        // relaxed: the guard, not the order, keeps the node's contents
        const std::uint64_t before = node->version.load(std::memory_order_relaxed);
        for (int spin = 0; spin < 20; ++spin) {
          if (before == 0 || node->version.load(std::memory_order_relaxed) != before)
            wrong.fetch_add(1, std::memory_order_relaxed);  // relaxed: joined below
        }
      }
    });
  }

  std::vector<std::pair<std::uint64_t, std::unique_ptr<Node>>> retired;
  for (std::uint64_t version = 2; version <= kVersions; ++version) {
    while (free.empty()) {
      const std::uint64_t safe = epochs.safe_epoch();
      for (auto& [epoch, node] : retired) {
        if (safe <= epoch) continue;
        node->version.store(0, std::memory_order_relaxed);
        free.push_back(std::move(node));
      }
      std::erase_if(retired, [](const auto& entry) { return entry.second == nullptr; });
      if (free.empty()) Runtime::system().parker->yield();
    }
    std::unique_ptr<Node> fresh = std::move(free.back());
    free.pop_back();
    fresh->version.store(version, std::memory_order_relaxed);  // relaxed: the exchange publishes it
    std::unique_ptr<Node> old(current.exchange(fresh.release(), std::memory_order_seq_cst));
    const std::uint64_t epoch = epochs.retire();
    retired.emplace_back(epoch, std::move(old));
  }
  stop.store(true, std::memory_order_relaxed);  // relaxed: only ends the test
  for (std::thread& reader : readers) reader.join();
  delete current.load(std::memory_order_relaxed);  // relaxed: nobody else is left
  EXPECT_EQ(wrong.load(), 0u);
}

}  // namespace
}  // namespace tier
