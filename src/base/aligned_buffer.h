/// AlignedBuffer: owned bytes at an alignment, for direct I/O, cache lines and pages. Contents start undefined.
/// Outcomes    allocate() answers kOutOfMemory; nothing throws.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "tier/result.h"
#include "tier/types.h"

namespace tier {

class AlignedBuffer {
 public:
  AlignedBuffer() noexcept = default;

  /// `alignment` is a power of two.
  static Result<AlignedBuffer> allocate(std::size_t size, std::size_t alignment = 4096) {
    AlignedBuffer b;
    void* p = nullptr;
    if (size <= PTRDIFF_MAX - alignment) p = std::aligned_alloc(alignment, align_up(size == 0 ? 1 : size, alignment));
    if (p == nullptr)
      return fail(Code::kOutOfMemory, 0, "cannot allocate a buffer; lower the memory options", "%zu bytes", size);
    b.data_.reset(static_cast<std::byte*>(p));
    b.size_ = size;
    return b;
  }

  std::byte* data() noexcept { return data_.get(); }
  const std::byte* data() const noexcept { return data_.get(); }
  std::size_t size() const noexcept { return size_; }
  MutableByteSpan span() noexcept { return {data_.get(), size_}; }
  ByteSpan span() const noexcept { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* p) const noexcept { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace tier
