/// EpochProtector: readers that hold no lock, and a way to know when none of them can still see what was unlinked.
///
/// Shape       a global epoch counter and a fixed array of slots, each on its own cache line. A guard claims a slot and
///             stores the epoch it entered at; safe_epoch() is the smallest one in use.
/// Invariants  (E1) a guard's epoch is globally visible before it loads any protected pointer (sequentially consistent).
///             (E2) what was unlinked before retire() returned e is unreachable to all guards once safe_epoch() > e;
///                  the unlinking store and the protected load are sequentially consistent, or follow one that is.
/// Threads     any, up to 128 guards at once; one more spins. A guard is not held across a wait, I/O or a user's callback,
///             so a slot frees by itself.
/// Cost        enter: one uncontended exchange on the thread's usual slot; leave: one store. No allocation.
/// Source      FASTER (SIGMOD'18) section 2.3; slots are claimed per guard, not per thread, so fibers and exits need no hook.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/assert.h"

namespace tier {

/// What two variables written by different threads must be apart.
inline constexpr std::size_t kCacheLine = 64;

template <template <class> class Atom = std::atomic>
class BasicEpochProtector {
 public:
  static constexpr std::size_t kSlots = 128;

  class Guard {
   public:
    explicit Guard(BasicEpochProtector& epochs) noexcept : slot_(epochs.enter()) {}
    ~Guard() { slot_->store(kFree, std::memory_order_release); }  // [E3] pairs with safe_epoch()'s load
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    Atom<std::uint64_t>* slot_;
  };

  /// Call after unlinking: the epoch that must be passed before what was unlinked may go. Also moves the epoch on.
  std::uint64_t retire() noexcept { return epoch_.fetch_add(1, std::memory_order_seq_cst); }  // E2

  /// Every guard alive entered at this epoch or later.
  std::uint64_t safe_epoch() const noexcept {
    std::uint64_t safe = epoch_.load(std::memory_order_seq_cst);
    for (const Slot& slot : slots_) {
      const std::uint64_t e = slot.epoch.load(std::memory_order_seq_cst);  // E1, [E3]
      if (e != kFree && e < safe) safe = e;
    }
    return safe;
  }

 private:
  static constexpr std::uint64_t kFree = 0;
  struct alignas(kCacheLine) Slot {
    Atom<std::uint64_t> epoch{kFree};
  };

  Atom<std::uint64_t>* enter() noexcept {
    static thread_local std::size_t usual = next_usual();
    for (std::size_t i = 0;; ++i) {
      Atom<std::uint64_t>& slot = slots_[(usual + i) % kSlots].epoch;
      std::uint64_t expected = kFree;
      if (slot.load(std::memory_order_relaxed) != kFree) continue;  // relaxed: the exchange decides
      if (!slot.compare_exchange_strong(expected, epoch_.load(std::memory_order_seq_cst), std::memory_order_seq_cst))
        continue;
      // The epoch may have moved between its load and the claim; the older value is only more cautious. E1
      usual = (usual + i) % kSlots;
      return &slot;
    }
  }

  static std::size_t next_usual() noexcept {
    static std::atomic<std::size_t> next{0};
    return next.fetch_add(1, std::memory_order_relaxed) % kSlots;  // relaxed: only spreads threads over slots
  }

  alignas(kCacheLine) Atom<std::uint64_t> epoch_{1};
  std::array<Slot, kSlots> slots_;
};

using EpochProtector = BasicEpochProtector<>;

}  // namespace tier
