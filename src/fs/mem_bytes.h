/// MemBytes: the bytes of one file of `mem:`, sparse, in anonymous memory.
///
/// Shape       chunks of address space, each reserved without memory behind it; pages appear when they are written.
///             There is one chunk, doubled and moved by mremap, until a mapping is handed out; then it grows in place
///             or by further chunks, because what was handed out must not move.
/// Invariants  (B1) no chunk moves while a mapping is held.
///             (B2) memory at and above size() reads zero.
///             (B3) a page that was written, allocated or mapped for writing is charged to the quota once, until it is
///                  punched or truncated away. (A store through a mapping into a page punched later is not seen.)
/// Threads     any. Shared: read and write below what is reserved. Exclusive: growth, punch, truncate, map.
/// Cost        read, write: a shared lock, a look at the charge bits, one memcpy a chunk.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "tier/fs.h"

namespace tier {

inline constexpr std::uint64_t kMemPage = 4096;

/// The bytes that all files of one file system may hold.
class MemQuota {
 public:
  explicit MemQuota(std::uint64_t limit) noexcept : limit_(limit) {}
  bool take(std::uint64_t bytes) noexcept;
  // relaxed, here and in take(): a counter that orders nothing; the lock of the file orders its bytes.
  void give(std::uint64_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  std::uint64_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  std::uint64_t limit() const noexcept { return limit_; }

 private:
  const std::uint64_t limit_;  // 0: none
  std::atomic<std::uint64_t> used_{0};
};

class MemBytes {
 public:
  /// The largest file: address space, not memory, bounds it.
  static constexpr std::uint64_t kMost = std::uint64_t{1} << 40;

  MemBytes(Parker& parker, std::shared_ptr<MemQuota> quota) noexcept;
  ~MemBytes();
  MemBytes(const MemBytes&) = delete;
  MemBytes& operator=(const MemBytes&) = delete;

  std::size_t read(std::uint64_t offset, MutableByteSpan into);
  Status write(std::uint64_t offset, std::span<const ByteSpan> parts);
  Status allocate(std::uint64_t offset, std::uint64_t length);
  void punch(std::uint64_t offset, std::uint64_t length);
  Status truncate(std::uint64_t size);
  /// [B4] acquire: pairs with the release of the writer that extended it, so the bytes below are seen.
  std::uint64_t size() const noexcept { return size_.load(std::memory_order_acquire); }
  std::uint64_t allocated() const noexcept { return charged_pages_.load(std::memory_order_relaxed) * kMemPage; }

  /// Hands out a range and holds everything below its end in place until unmap(offset + length).
  Result<MutableByteSpan> map(std::uint64_t offset, std::uint64_t length, bool for_writing);
  void unmap(std::uint64_t held_end);

 private:
  struct Chunk {
    std::uint64_t start = 0;
    std::uint64_t size = 0;
    std::byte* base = nullptr;
  };
  /// One bit a page, 4,096 pages; made when the first of them is charged.
  struct ChargeBlock {
    static constexpr std::uint64_t kPages = 4096;
    std::array<std::atomic<std::uint64_t>, kPages / 64> words{};
  };

  template <class Step>
  void walk(std::uint64_t offset, std::uint64_t length, const Step& step) const;
  Status reserve(std::uint64_t end);
  Status charge(std::uint64_t offset, std::uint64_t length);
  bool charged(std::uint64_t page) const noexcept;
  void give_back(std::uint64_t first_page, std::uint64_t end_page);
  void clear(std::uint64_t offset, std::uint64_t end);
  void extend(std::uint64_t end) noexcept;

  std::shared_ptr<MemQuota> quota_;
  SharedMutex mutex_;
  Mutex charging_;
  std::vector<Chunk> chunks_;
  std::uint64_t reserved_ = 0;
  std::unique_ptr<std::atomic<ChargeBlock*>[]> blocks_;
  std::uint64_t block_count_ = 0;
  std::vector<std::uint64_t> held_;  // ends of the mappings handed out
  std::atomic<std::uint64_t> size_{0};
  std::atomic<std::uint64_t> charged_pages_{0};
};

}  // namespace tier
