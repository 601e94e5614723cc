/// SimImage: the bytes of one file as one observer sees them, cheap to copy.
///
/// Shape       a size and a sorted list of 4 KiB pages, shared copy-on-write. A page that is not listed is a hole: it
///             reads zero and costs no space; one listed without bytes is space that reads zero.
/// Invariants  (P1) bytes may lie beyond the size: a crash decides about sectors and sizes apart. clip() drops them.
/// Threads     none; images that share pages may belong to different threads.
/// Cost        copy: a pointer a page. First write to a shared page: 4 KiB copied.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tier/types.h"

namespace tier::testing {

/// What a disk writes as one: old or new, never a mixture.
inline constexpr std::uint64_t kSimSector = 512;
/// What space is given out in.
inline constexpr std::uint64_t kSimPage = 4096;

class SimImage {
 public:
  std::uint64_t size() const noexcept { return size_; }
  void set_size(std::uint64_t size) noexcept { size_ = size; }
  /// Bytes of space.
  std::uint64_t allocated() const noexcept { return pages_.size() * kSimPage; }
  /// Pages of space that reserve() of the range would add.
  std::uint64_t missing_pages(std::uint64_t offset, std::uint64_t length) const noexcept;

  /// Whatever the size: holes give zeros.
  void read(std::uint64_t offset, MutableByteSpan into) const noexcept;
  /// Changes bytes and space, not the size (P1).
  void write(std::uint64_t offset, ByteSpan from);
  /// Zeros; whole pages become holes.
  void zero(std::uint64_t offset, std::uint64_t length);
  void reserve(std::uint64_t offset, std::uint64_t length);
  /// Sets the size; what lies beyond it is gone.
  void cut(std::uint64_t size);
  void clip() { cut(size_); }

  /// Sector number `sector` as it is in `from`.
  void copy_sector(std::uint64_t sector, const SimImage& from);
  bool has_page(std::uint64_t page_idx) const noexcept { return find(page_idx) != nullptr; }
  /// The bytes of a page, or nullptr where it reads zero.
  const std::byte* page(std::uint64_t page_idx) const noexcept;
  /// The listed pages, in order.
  std::size_t page_count() const noexcept { return pages_.size(); }
  std::uint64_t page_number(std::size_t idx) const noexcept { return pages_[idx].number; }

 private:
  struct Page {
    std::atomic<std::uint32_t> references{1};
    std::byte bytes[kSimPage];
  };
  /// A shared page, or none.
  class Ref {
   public:
    Ref() noexcept = default;
    explicit Ref(Page* page) noexcept : page_(page) {}
    Ref(const Ref& other) noexcept : page_(other.page_) {
      // relaxed: the copy is made from a reference that keeps the page.
      if (page_ != nullptr) page_->references.fetch_add(1, std::memory_order_relaxed);
    }
    Ref(Ref&& other) noexcept : page_(std::exchange(other.page_, nullptr)) {}
    Ref& operator=(Ref other) noexcept {
      std::swap(page_, other.page_);
      return *this;
    }
    ~Ref() {
      // [P2] what other holders read is done before the last one frees it.
      if (page_ != nullptr && page_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete page_;
    }
    const Page* get() const noexcept { return page_; }
    Page* mine();

   private:
    Page* page_ = nullptr;
  };
  struct Entry {
    std::uint64_t number;
    Ref page;
  };

  std::size_t lower_bound(std::uint64_t page_idx) const noexcept;
  const Entry* find(std::uint64_t page_idx) const noexcept;
  Entry& make(std::uint64_t page_idx);

  std::uint64_t size_ = 0;
  std::vector<Entry> pages_;
};

}  // namespace tier::testing
