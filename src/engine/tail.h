/// Tail: how ranges of the address space are claimed and published, without a lock.
///
/// Shape       claim word {ticket:16, address:48} | published word {ticket:16, address:48} | ring of 4,096 publications
///             {ticket:16, end:48}, one for each ticket that is out; limit: claims must end at or below it.
///             published.address = committed <= claim.address = allocated <= limit
/// Invariants  (L1) a claim moves the claim word from {t, a} to {t+1, end} after it saw end <= limit and slot t free, so a
///                  failed claim changes nothing.
///             (L2) published moves from {t, a} to {t+1, end of t}: over the contiguous prefix only.
///             (L3) tickets that are out are fewer than the ring's slots, so no slot serves two of them. What an earlier lap
///                  left in a slot ends at or below published.address, or names another ticket.
///             (L4) while frozen the claim word's address is kFrozen, which no claim passes.
/// Threads     try_claim, publish, reads: any. freeze, thaw, raise_limit: one at a time.
/// Cost        alone: one exchange to claim, one to publish. Out of order: one store to a slot more.
/// Source      the link buffer of MySQL 8's redo log. Differs: tickets, so that a slot is named by order, not by address.
///
///   word       who moves it            from -> to
///   claim      try_claim               {t, a} -> {t+1, end}
///              freeze / thaw           {t, a} -> {t, kFrozen} -> {t+1, new tail}
///   published  publish                 {t, a} -> {t+1, end of t}
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/assert.h"
#include "base/epoch.h"
#include "tier/types.h"

namespace tier {

enum class ClaimOutcome : std::uint8_t { kClaimed, kNoSpace, kRingFull, kFrozen };

struct ClaimedRange {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t ticket = 0;
};

template <template <class> class Atom = std::atomic>
class BasicTail {
 public:
  static constexpr std::uint64_t kSlots = 4096;

  BasicTail() noexcept { forget_publications(); }

  std::uint64_t committed() const noexcept {
    return address_of(published_.load(std::memory_order_acquire));  // [L1] what was written below is seen
  }
  std::uint64_t allocated() const noexcept {
    const std::uint64_t a = address_of(claim_.load(std::memory_order_acquire));  // [L2]
    return a == kFrozen ? frozen_at_.load(std::memory_order_relaxed) : a;        // relaxed: [L2] covers it
  }
  std::uint64_t limit() const noexcept { return limit_.load(std::memory_order_acquire); }  // [L3]
  /// Segments below are registered and their space is reserved.
  void raise_limit(std::uint64_t to) noexcept { limit_.store(to, std::memory_order_release); }  // [L3] see try_claim()

  /// On kNoSpace `range.end` is where the claim would have ended.
  ClaimOutcome try_claim(std::uint64_t n, std::uint32_t alignment, bool one_segment, std::uint64_t segment_size,
                         ClaimedRange& range) noexcept {
    std::uint64_t seen = claim_.load(std::memory_order_relaxed);  // relaxed: the exchange decides
    for (;;) {
      const std::uint64_t address = address_of(seen);
      if (address == kFrozen) return ClaimOutcome::kFrozen;  // L4
      range.start = align_up(address, alignment);
      if (one_segment && align_down(range.start, segment_size) != align_down(range.start + n - 1, segment_size))
        range.start = align_up(align_up(range.start, segment_size), alignment);
      range.end = range.start + n;
      range.ticket = ticket_of(seen);
      if (range.end > limit_.load(std::memory_order_acquire)) return ClaimOutcome::kNoSpace;  // [L3] L1
      // acquire: [L1] slot t is free only after its last owner is published.
      const std::uint64_t out = distance(ticket_of(published_.load(std::memory_order_acquire)), range.ticket);
      if (out >= kSlots) {  // L3; a published ticket beyond ours says that `seen` is old
        const std::uint64_t again = claim_.load(std::memory_order_relaxed);
        if (again == seen) return ClaimOutcome::kRingFull;
        seen = again;
        continue;
      }
      // [L2] release: whoever reads the tail sees what its claimer did before; acquire: the claimer sees the thaw.
      if (claim_.compare_exchange_weak(seen, pack(range.ticket + 1, range.end), std::memory_order_acq_rel,
                                       std::memory_order_relaxed))
        return ClaimOutcome::kClaimed;
    }
  }

  /// True if `committed` moved. Sequentially consistent throughout: of two publishers, either the later one finds its turn
  /// come, or the earlier one finds the later one's slot filled.
  bool publish(std::uint64_t ticket, std::uint64_t end) noexcept {
    std::uint64_t seen = published_.load(std::memory_order_seq_cst);
    bool moved = false;
    if (ticket_of(seen) == ticket) {
      moved = published_.compare_exchange_strong(seen, pack(ticket + 1, end), std::memory_order_seq_cst);  // [L1] L2
      TIER_ASSERT(moved);  // nobody but the holder of this ticket may move it on
    } else {
      slot(ticket).store(pack(ticket, end), std::memory_order_seq_cst);
    }
    for (;;) {
      seen = published_.load(std::memory_order_seq_cst);
      const std::uint64_t next = slot(ticket_of(seen)).load(std::memory_order_seq_cst);
      if (ticket_of(next) != ticket_of(seen) || address_of(next) <= address_of(seen)) return moved;  // L3
      if (published_.compare_exchange_strong(seen, pack(ticket_of(seen) + 1, address_of(next)),
                                             std::memory_order_seq_cst))  // [L1] L2
        moved = true;
    }
  }

  bool ring_full() const noexcept {
    const std::uint64_t published = published_.load(std::memory_order_seq_cst);  // first: it may only be older
    return distance(ticket_of(published), ticket_of(claim_.load(std::memory_order_seq_cst))) >= kSlots;
  }
  /// No claim is out.
  bool quiet() const noexcept {
    const std::uint64_t claimed = claim_.load(std::memory_order_seq_cst);
    return ticket_of(claimed) == ticket_of(published_.load(std::memory_order_seq_cst));
  }
  bool frozen() const noexcept { return address_of(claim_.load(std::memory_order_acquire)) == kFrozen; }

  /// Lets no claim pass from here on; those that are out may still publish.
  void freeze() noexcept {
    std::uint64_t seen = claim_.load(std::memory_order_relaxed);  // relaxed: the exchange decides
    do {
      if (address_of(seen) == kFrozen) return;
      frozen_at_.store(address_of(seen), std::memory_order_relaxed);  // [L2] published by the exchange
    } while (!claim_.compare_exchange_weak(seen, pack(ticket_of(seen), kFrozen), std::memory_order_acq_rel,
                                           std::memory_order_relaxed));
  }
  /// Undoes freeze(): claims go on where they were.
  void thaw() noexcept {
    const std::uint64_t seen = claim_.load(std::memory_order_relaxed);  // relaxed: frozen, only the freezer writes
    if (address_of(seen) == kFrozen)
      claim_.store(pack(ticket_of(seen), frozen_at_.load(std::memory_order_relaxed)), std::memory_order_release);  // [L2]
  }
  /// Frozen and quiet: puts both tails at `to`, still frozen.
  void rewind(std::uint64_t to) noexcept {
    TIER_ASSERT(frozen() && quiet());
    // A new ticket, so that an exchange begun before the freeze cannot succeed. L1
    const std::uint64_t ticket = ticket_of(claim_.load(std::memory_order_relaxed)) + 1;  // relaxed: ours alone
    forget_publications();
    frozen_at_.store(to, std::memory_order_relaxed);                         // [L2]
    published_.store(pack(ticket, to), std::memory_order_seq_cst);           // [L1]
    claim_.store(pack(ticket, kFrozen), std::memory_order_seq_cst);          // [L2]
  }

 private:
  static constexpr std::uint64_t kFrozen = Address::kMax;
  static constexpr std::uint64_t pack(std::uint64_t ticket, std::uint64_t address) noexcept {
    return (ticket << Address::kBits) | address;
  }
  static constexpr std::uint64_t address_of(std::uint64_t word) noexcept { return word & Address::kMax; }
  static constexpr std::uint64_t ticket_of(std::uint64_t word) noexcept { return word >> Address::kBits; }
  /// Tickets count modulo 2^16: how far `to` is ahead of `from`.
  static constexpr std::uint64_t distance(std::uint64_t from, std::uint64_t to) noexcept { return (to - from) & 0xffff; }

  /// Neighbours in order lie on different cache lines: eight slots share one, and the next ticket's is 512 slots away.
  Atom<std::uint64_t>& slot(std::uint64_t ticket) noexcept {
    const std::uint64_t i = ticket % kSlots;
    return ring_[(i % 8) * (kSlots / 8) + i / 8];
  }
  void forget_publications() noexcept {
    for (Atom<std::uint64_t>& s : ring_) s.store(0, std::memory_order_relaxed);  // relaxed: nobody publishes now
  }

  alignas(kCacheLine) Atom<std::uint64_t> claim_{kFrozen};
  Atom<std::uint64_t> frozen_at_{0};
  alignas(kCacheLine) Atom<std::uint64_t> published_{0};
  alignas(kCacheLine) Atom<std::uint64_t> limit_{0};
  alignas(kCacheLine) std::array<Atom<std::uint64_t>, kSlots> ring_;
};

}  // namespace tier
