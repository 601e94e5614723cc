/// Segment: one slice of the address space in memory: its open file, who uses it, and what a sync still owes it.
///
/// Shape       registered (a file with this number exists) -> open (file and mapping are set) -> removed (not in the table).
/// Invariants  (G1) the table holds one reference, each I/O and View another; the last one dropped closes the file. A
///                  reference is taken under an epoch guard, and the table drops its own only when no guard can see it.
///             (G2) `dirty` is set after a write returned and cleared before a sync of the file starts; so a write is
///                  covered by the sync that cleared it or is in the next dirty set.
///             (G3) of the two mark slots, the one that holds the newest synced mark is not written.
/// Threads     any; `reserved` belongs to whoever holds the engine's grow mutex, the marks to its mark mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "engine/segment_store.h"

namespace tier {

class Segment {
 public:
  explicit Segment(std::uint64_t index) noexcept : index_(index) {}
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  std::uint64_t index() const noexcept { return index_; }

  /// nullptr until opened.
  SegmentFile* file() const noexcept { return file_.load(std::memory_order_acquire); }  // [G1] pairs with set_file()
  /// The data where it is mapped; nullptr elsewhere, and until opened.
  std::byte* data() const noexcept { return data_.load(std::memory_order_acquire); }  // [G1]
  void set_file(std::unique_ptr<SegmentFile> file) noexcept {
    owned_ = std::move(file);
    data_.store(owned_->mapping().data(), std::memory_order_release);  // [G1] first: a file seen open has its mapping set
    file_.store(owned_.get(), std::memory_order_release);              // [G1]
  }

  void acquire() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }  // relaxed: a guard or reference is held
  void release() noexcept {
    // [G2] acq_rel: what every user did is done before the file closes.
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  std::atomic<std::uint32_t> views{0};
  std::atomic<bool> dirty{false};
  /// Size or space changed since the last sync: the next one covers metadata too.
  std::atomic<bool> metadata_dirty{false};
  std::atomic<bool> removed{false};
  Segment* next_dirty = nullptr;  ///< written by whoever set `dirty`

  std::uint64_t reserved = 0;  ///< data bytes whose space is secured

  struct MarkState {
    StoredMark newest;
    unsigned newest_slot = 0;
    bool newest_synced = true;  ///< nothing to lose when there is none
    bool loaded = false;
  };
  MarkState marks;

 private:
  ~Segment() = default;

  const std::uint64_t index_;
  std::atomic<std::uint32_t> references_{1};
  std::atomic<SegmentFile*> file_{nullptr};
  std::atomic<std::byte*> data_{nullptr};
  std::unique_ptr<SegmentFile> owned_;
};

}  // namespace tier
