/// Ring: where producers put records and the committer finds them.
///
/// Shape       bytes    a ring mapped twice in a row (base/ring_memory.h); frames lie as they will on disk
///             claim    one word {frozen:1, sequence:31, position:32}, moved by one compare-exchange
///             limit    one word {sequence, position} that claims may not pass, moved by the committer
///             slots    one word a record {lap:32, flags:4, bytes:28}: published when the lap is this one's
///             wake     one word {armed:1, sequence, position}: the claim that crosses it wakes the committer
/// Invariants  (R1) a claim lies wholly below limit: nothing that is not yet written out is overwritten.
///             (R2) a slot is published after its bytes are complete; the committer takes only the contiguous prefix.
///             (R3) the slots of a batch are published from the last to the first: whoever sees the first sees all.
///             (R4) after freeze() no claim succeeds; the ones before it can still publish.
///             (R5) either the claim sees the armed wake word, or whoever armed it sees the claim (both sequentially
///                  consistent), so no wake is missed.
/// Threads     claim, publish: any, lock-free. gather, release, arm: the committer (one at a time).
/// Units       positions in bytes modulo 2^32, sequences modulo 2^31; a ring is at most 64 MiB and 2^20 slots, so modular
///             distances are exact. The word would have to come round to the same value while a producer sleeps between its
///             load and its exchange, and be full then, to mislead it: 2^31 records and a multiple of 2^32 bytes exactly.
/// Cost        one exchange, two loads, the copy, one store. Frames are found through slots, never parsed from payload bytes,
///             so nothing has to be zeroed behind the committer.
/// Source      Aeron (claim, copy, publish); MySQL 8 (link buffer).
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "base/assert.h"
#include "base/epoch.h"
#include "base/ring_memory.h"
#include "tier/result.h"
#include "tier/types.h"

namespace tier {

/// A record (or batch) too large for the ring: the slot points here, the owner waits until it is written.
struct RingStub {
  std::span<const ByteSpan> parts;  ///< frames, as they will lie on disk
  std::uint32_t bytes = 0;
  std::uint32_t count = 0;
};

template <template <class> class Atom = std::atomic>
class BasicRing {
 public:
  static constexpr std::uint64_t kFrozen = std::uint64_t{1} << 63;
  static constexpr std::uint32_t kSequenceMask = 0x7fff'ffffu;
  // Slot flags.
  static constexpr std::uint32_t kMore = 1u << 28;  ///< the next record belongs to the same batch
  static constexpr std::uint32_t kStub = 1u << 29;  ///< the bytes are a pointer to a RingStub
  static constexpr std::uint32_t kBytesMask = (1u << 28) - 1;

  /// What a successful claim owns.
  struct Claim {
    std::uint32_t position = 0;
    std::uint32_t sequence = 0;  // modulo 2^31
    std::uint32_t bytes = 0;
    std::uint32_t records = 0;
  };

  /// The published prefix that makes the next block.
  struct Gathered {
    std::uint32_t records = 0;
    std::uint32_t bytes = 0;         // ring bytes to release
    const RingStub* stub = nullptr;  // instead of ring bytes
  };

  static Result<std::unique_ptr<BasicRing>> create(std::size_t bytes, std::uint64_t first_sequence) {
    TIER_TRY(RingMemory memory, RingMemory::create(bytes));
    std::unique_ptr<BasicRing> ring(new BasicRing(std::move(memory), first_sequence));
    return ring;
  }

  std::uint32_t size() const noexcept { return size_; }
  /// Takes the ring's page faults; on a background task.
  void populate() const noexcept { memory_.populate(); }
  std::uint32_t slots() const noexcept { return slot_mask_ + 1; }

  // Producers ---------------------------------------------------------------------------------------------------------

  /// False when there is no room now or the ring is frozen.
  bool try_claim(std::uint32_t records, std::uint32_t bytes, Claim& out) noexcept {
    std::uint64_t seen = claim_.load(std::memory_order_relaxed);  // relaxed: the exchange decides
    for (;;) {
      // [G1] acquire: what the committer read before it raised the limit is read; pairs with release().
      const std::uint64_t limit = limit_.load(std::memory_order_acquire);
      const auto position = static_cast<std::uint32_t>(seen);
      const auto sequence = static_cast<std::uint32_t>(seen >> 32);
      const auto room = static_cast<std::int32_t>(static_cast<std::uint32_t>(limit) - position);
      if (room < static_cast<std::int32_t>(bytes) || difference(limit >> 32, sequence) < static_cast<std::int32_t>(records) ||
          (seen & kFrozen) != 0) [[unlikely]]
        return false;  // R1, R4
      // R5: sequentially consistent, with the load in must_wake().
      if (claim_.compare_exchange_weak(seen, pack(sequence + records, position + bytes), std::memory_order_seq_cst,
                                       std::memory_order_relaxed)) [[likely]] {
        out = {position, sequence & kSequenceMask, bytes, records};
        return true;
      }
    }
  }

  std::byte* bytes_at(std::uint32_t position) const noexcept { return data_ + (position & (size_ - 1)); }

  /// The claim's first sequence in full: it lies within one ring above what was released.
  std::uint64_t full_sequence(const Claim& claim) const noexcept {
    // relaxed: stored before the limit that let the claim pass, so at most one ring old.
    const std::uint64_t base = released_sequence_.load(std::memory_order_relaxed);
    return base + ((claim.sequence - static_cast<std::uint32_t>(base)) & kSequenceMask);
  }

  /// R2. `offset` counts records within the claim; a batch publishes from its last to its first (R3).
  void publish(std::uint64_t sequence, std::uint32_t bytes, std::uint32_t flags) noexcept {
    // [G2] release: the record's bytes; pairs with gather().
    slots_[sequence & slot_mask_].store(lap_of(sequence) << 32 | flags | bytes, std::memory_order_release);
  }

  /// After publishing: whether this claim crossed the armed wake word (then call disarm() and wake).
  bool must_wake(const Claim& claim) const noexcept {
    const std::uint64_t wake = wake_.load(std::memory_order_seq_cst);  // R5
    return (wake & kFrozen) != 0 && crosses(wake, claim.sequence + claim.records, claim.position + claim.bytes);
  }
  /// True for the one caller that took the armed word away.
  bool disarm() noexcept { return (wake_.exchange(0, std::memory_order_seq_cst) & kFrozen) != 0; }

  // The committer (whoever commits now: gather, release; its background task: arm, ahead) ------------------------------

  /// Measures the published prefix behind what was released, up to `bytes_most` and always at least one record or batch.
  Gathered gather(std::uint32_t bytes_most) const noexcept {
    Gathered whole, all;
    for (std::uint64_t s = consumed_sequence_;; ++s) {
      const std::uint64_t slot = slots_[s & slot_mask_].load(std::memory_order_acquire);  // [G2]
      if (slot >> 32 != lap_of(s) || all.records > slot_mask_) break;                     // R2
      const auto word = static_cast<std::uint32_t>(slot);
      const std::uint32_t bytes = word & kBytesMask;
      if ((word & kStub) != 0) {
        if (whole.records != 0) break;  // a stub is a block of its own
        const RingStub* stub = nullptr;
        std::memcpy(&stub, bytes_at(static_cast<std::uint32_t>(consumed_position_)), sizeof stub);
        return {stub->count, bytes, stub};
      }
      if (whole.records != 0 && all.bytes + bytes > bytes_most) break;
      ++all.records;
      all.bytes += bytes;
      if ((word & kMore) == 0) whole = all;  // never the first half of a batch
    }
    return whole;
  }
  const std::byte* gathered_bytes() const noexcept { return bytes_at(static_cast<std::uint32_t>(consumed_position_)); }

  /// Gives the gathered prefix back to the producers.
  void release(const Gathered& gathered) noexcept {
    consumed_sequence_ += gathered.records;
    consumed_position_ += gathered.bytes;
    publish_limit();
  }

  /// Claims beyond this many more records or bytes wake the committer. 1 record means any claim.
  void arm(std::uint32_t records, std::uint32_t bytes) noexcept {
    const std::uint64_t limit = limit_.load(std::memory_order_acquire);
    const std::uint64_t at = pack(static_cast<std::uint32_t>(limit >> 32) - slots() + records,
                                  static_cast<std::uint32_t>(limit) - size_ + bytes);
    wake_.store(at | kFrozen, std::memory_order_seq_cst);  // R5
  }

  struct Ahead {
    std::uint32_t records = 0;
    std::uint32_t bytes = 0;
  };
  /// Claimed but not released.
  Ahead ahead() const noexcept {
    const std::uint64_t limit = limit_.load(std::memory_order_acquire);
    const std::uint64_t claim = claim_.load(std::memory_order_seq_cst);  // R5
    return {(static_cast<std::uint32_t>(claim >> 32) - static_cast<std::uint32_t>(limit >> 32) + slots()) & kSequenceMask,
            static_cast<std::uint32_t>(claim) - static_cast<std::uint32_t>(limit) + size_};
  }

  // Anybody -----------------------------------------------------------------------------------------------------------

  /// One past the last claimed sequence.
  std::uint64_t claimed() const noexcept {
    const std::uint64_t base = released_sequence_.load(std::memory_order_acquire);
    const std::uint64_t claim = claim_.load(std::memory_order_acquire);
    return base + ((static_cast<std::uint32_t>(claim >> 32) - static_cast<std::uint32_t>(base)) & kSequenceMask);
  }
  bool frozen() const noexcept { return (claim_.load(std::memory_order_acquire) & kFrozen) != 0; }
  void freeze() noexcept { claim_.fetch_or(kFrozen, std::memory_order_seq_cst); }  // R4

 private:
  BasicRing(RingMemory memory, std::uint64_t first_sequence)
      : memory_(std::move(memory)), data_(memory_.data()), size_(static_cast<std::uint32_t>(memory_.size())) {
    const std::uint32_t slots = std::clamp(size_ / 64, 64u, 1u << 20);
    slot_mask_ = slots - 1;
    slot_shift_ = std::countr_zero(slots);
    slots_ = std::make_unique<Atom<std::uint64_t>[]>(slots);
    // A fresh slot is of the lap before, so it is not published. relaxed: before anybody sees it
    const std::uint64_t fresh = ((lap_of(first_sequence) - 1) & 0xffff'ffffu) << 32;
    for (std::uint32_t i = 0; i < slots; ++i) slots_[i].store(fresh, std::memory_order_relaxed);
    consumed_sequence_ = first_sequence;
    claim_.store(pack(static_cast<std::uint32_t>(first_sequence), 0), std::memory_order_relaxed);  // likewise
    publish_limit();
  }

  static std::uint64_t pack(std::uint32_t sequence, std::uint32_t position) noexcept {
    return std::uint64_t{sequence & kSequenceMask} << 32 | position;
  }
  /// a - b for sequences modulo 2^31.
  static std::int32_t difference(std::uint64_t a, std::uint32_t b) noexcept {
    return static_cast<std::int32_t>((static_cast<std::uint32_t>(a) - b) << 1) >> 1;
  }
  static bool crosses(std::uint64_t wake, std::uint32_t sequence, std::uint32_t position) noexcept {
    return static_cast<std::int32_t>(position - static_cast<std::uint32_t>(wake)) >= 0 ||
           difference(sequence, static_cast<std::uint32_t>(wake >> 32)) >= 0;
  }
  std::uint64_t lap_of(std::uint64_t sequence) const noexcept { return (sequence >> slot_shift_) & 0xffff'ffffu; }
  void publish_limit() noexcept {
    released_sequence_.store(consumed_sequence_, std::memory_order_release);
    limit_.store(pack(static_cast<std::uint32_t>(consumed_sequence_) + slots(),
                      static_cast<std::uint32_t>(consumed_position_) + size_),
                 std::memory_order_release);  // [G1]
  }

  RingMemory memory_;
  std::byte* data_;
  std::uint32_t size_;
  std::uint32_t slot_mask_ = 0;
  int slot_shift_ = 0;
  std::unique_ptr<Atom<std::uint64_t>[]> slots_;

  alignas(kCacheLine) Atom<std::uint64_t> claim_{0};  // producers write
  alignas(kCacheLine) Atom<std::uint64_t> limit_{0};  // the committer writes, producers read
  Atom<std::uint64_t> released_sequence_{0};
  Atom<std::uint64_t> wake_{0};
  alignas(kCacheLine) std::uint64_t consumed_sequence_ = 0;  // the committer's own
  std::uint64_t consumed_position_ = 0;
};

using Ring = BasicRing<>;

}  // namespace tier
