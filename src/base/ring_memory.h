/// RingMemory: bytes mapped twice in a row, so that what runs over the end of the ring continues at its beginning and no
/// record is ever split.
/// Invariants  (R0) data()[i] and data()[i + size()] are the same byte, for i < size().
/// Outcomes    create() answers kOutOfMemory (address space, memory) or kInvalid (size not a multiple of the page).
#pragma once

#include <cstddef>
#include <utility>

#include "tier/result.h"
#include "tier/types.h"

namespace tier {

class RingMemory {
 public:
  RingMemory() noexcept = default;
  RingMemory(RingMemory&& other) noexcept { swap(other); }
  RingMemory& operator=(RingMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~RingMemory();

  /// `size` is a power of two and a multiple of the page size.
  static Result<RingMemory> create(std::size_t size);
  /// Takes the page faults that the first users would: milliseconds, so on a background task. Contents stay.
  void populate() const noexcept;

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }

 private:
  void swap(RingMemory& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tier
