#include "fs/mem_bytes.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/assert.h"

namespace tier {
namespace {

constexpr std::uint64_t kSmallest = 64 << 10;
constexpr std::uint64_t kHugePage = 2 << 20;

/// `size` bytes of address space without memory behind them, at a huge page's boundary where one fits.
std::byte* reserve_space(std::uint64_t size) noexcept {
  const std::uint64_t slack = size >= kHugePage ? kHugePage : 0;
  void* p = ::mmap(nullptr, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  auto* base = static_cast<std::byte*>(p);
  if (slack != 0) {
    const auto before =
        align_up(reinterpret_cast<std::uintptr_t>(base), kHugePage) - reinterpret_cast<std::uintptr_t>(base);
    if (before != 0) ::munmap(base, before);
    base += before;
    if (before != slack) ::munmap(base + size, slack - before);
    ::madvise(base, size, MADV_HUGEPAGE);  // advice: a kernel without huge pages refuses it
  }
  return base;
}

Status out_of_space(std::uint64_t size) {
  return fail(Code::kOutOfMemory, errno, "cannot reserve memory for the file; close files or lower the sizes",
              "mem file of %llu bytes", static_cast<unsigned long long>(size));
}

}  // namespace

bool MemQuota::take(std::uint64_t bytes) noexcept {
  std::uint64_t used = used_.load(std::memory_order_relaxed);
  for (;;) {
    if (limit_ != 0 && (used > limit_ || bytes > limit_ - used)) return false;
    if (used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed, std::memory_order_relaxed))
      return true;
  }
}

MemBytes::MemBytes(Parker& parker, std::shared_ptr<MemQuota> quota) noexcept
    : quota_(std::move(quota)), mutex_(parker), charging_(parker) {}

MemBytes::~MemBytes() {
  TIER_ASSERT(held_.empty());  // B1: a File gives its mappings back before it lets go of the bytes
  for (const Chunk& c : chunks_) ::munmap(c.base, c.size);
  for (std::uint64_t i = 0; i < block_count_; ++i) delete blocks_[i].load(std::memory_order_relaxed);  // the last user
  quota_->give(charged_pages_.load(std::memory_order_relaxed) * kMemPage);
}

/// Calls step(pointer, size) for each contiguous piece of a range that is reserved.
template <class Step>
void MemBytes::walk(std::uint64_t offset, std::uint64_t length, const Step& step) const {
  auto chunk = chunks_.begin();
  if (chunks_.size() > 1)
    chunk = std::prev(std::upper_bound(chunks_.begin(), chunks_.end(), offset,
                                       [](std::uint64_t at, const Chunk& c) { return at < c.start; }));
  for (; length > 0; ++chunk) {
    const std::uint64_t within = offset - chunk->start;
    const std::uint64_t n = std::min(length, chunk->size - within);
    step(chunk->base + within, static_cast<std::size_t>(n));
    offset += n;
    length -= n;
  }
}

std::size_t MemBytes::read(std::uint64_t offset, MutableByteSpan into) {
  SharedLock lock(mutex_);
  const std::uint64_t size = this->size();
  if (offset >= size || into.empty()) return 0;
  const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), size - offset));
  std::byte* to = into.data();
  const std::uint64_t backed = offset < reserved_ ? std::min<std::uint64_t>(wanted, reserved_ - offset) : 0;
  walk(offset, backed, [&to](const std::byte* from, std::size_t n) {
    std::memcpy(to, from, n);
    to += n;
  });
  std::memset(to, 0, wanted - static_cast<std::size_t>(backed));  // a size without bytes yet: a hole
  return wanted;
}

Status MemBytes::write(std::uint64_t offset, std::span<const ByteSpan> parts) {
  std::uint64_t total = 0;
  for (const ByteSpan part : parts) total += part.size();
  if (total == 0) return {};
  const std::uint64_t end = offset + total;
  for (;;) {
    {
      SharedLock lock(mutex_);
      if (end <= reserved_) {
        TIER_CHECK(charge(offset, total));
        for (const ByteSpan part : parts) {
          const std::byte* from = part.data();
          walk(offset, part.size(), [&from](std::byte* to, std::size_t n) {
            std::memcpy(to, from, n);
            from += n;
          });
          offset += part.size();
        }
        extend(end);
        return {};
      }
    }
    ExclusiveLock lock(mutex_);
    TIER_CHECK(reserve(end));
  }
}

Status MemBytes::allocate(std::uint64_t offset, std::uint64_t length) {
  if (length == 0) return {};
  ExclusiveLock lock(mutex_);
  TIER_CHECK(reserve(offset + length));
  TIER_CHECK(charge(offset, length));
  extend(offset + length);
  return {};
}

void MemBytes::punch(std::uint64_t offset, std::uint64_t length) {
  ExclusiveLock lock(mutex_);
  std::uint64_t end = offset + length;
  if (end >= size()) end = align_up(size(), kMemPage);  // nothing lies behind the last byte: its page goes too
  end = std::min(end, reserved_);
  if (offset < end) clear(offset, end);
}

Status MemBytes::truncate(std::uint64_t size) {
  ExclusiveLock lock(mutex_);
  for (const std::uint64_t end : held_)
    if (size < end)
      return fail(Code::kBusy, 0, "the file cannot shrink below a mapping that is held; close its holder first",
                  "mem file, size %llu, mapped up to %llu", static_cast<unsigned long long>(size),
                  static_cast<unsigned long long>(end));
  const std::uint64_t before = this->size();
  // Everything up to the end of the last page goes, allocated or mapped or not (B2).
  if (size < before) clear(size, std::min(align_up(before, kMemPage), reserved_));
  size_.store(size, std::memory_order_release);  // [B4]
  return {};
}

Result<MutableByteSpan> MemBytes::map(std::uint64_t offset, std::uint64_t length, bool for_writing) {
  ExclusiveLock lock(mutex_);
  const std::uint64_t end = offset + length;
  TIER_CHECK(reserve(end));
  std::byte* base = nullptr;
  walk(offset, 1, [&base](std::byte* p, std::size_t) { base = p; });
  for (const Chunk& c : chunks_)
    if (offset >= c.start && offset < c.start + c.size && end > c.start + c.size)
      return fail(
          Code::kUnsupported, 0,
          "the range lies in two chunks, for the file grew while it was mapped; map it in two parts, or allocate "
          "the whole file before its first mapping",
          "mem file at %llu, %llu bytes, boundary %llu", static_cast<unsigned long long>(offset),
          static_cast<unsigned long long>(length), static_cast<unsigned long long>(c.start + c.size));
  if (for_writing) TIER_CHECK(charge(offset, length));
  held_.push_back(end);
  return MutableByteSpan(base, static_cast<std::size_t>(length));
}

void MemBytes::unmap(std::uint64_t held_end) {
  ExclusiveLock lock(mutex_);
  const auto found = std::find(held_.begin(), held_.end(), held_end);
  TIER_ASSERT(found != held_.end());
  held_.erase(found);
}

/// Address space for everything below `end`. Under the exclusive lock.
Status MemBytes::reserve(std::uint64_t end) {
  if (end <= reserved_) return {};
  TIER_ASSERT(end <= kMost);  // checked by the File, where the message has the path
  const std::uint64_t wanted = std::max(kSmallest, std::bit_ceil(end));
  const std::uint64_t block_bytes = ChargeBlock::kPages * kMemPage;
  const std::uint64_t blocks = (wanted + block_bytes - 1) / block_bytes;
  if (blocks > block_count_) {
    std::unique_ptr<std::atomic<ChargeBlock*>[]> larger(new (std::nothrow) std::atomic<ChargeBlock*>[blocks] {});
    if (larger == nullptr) return out_of_space(wanted);
    // relaxed: the exclusive lock orders it.
    for (std::uint64_t i = 0; i < block_count_; ++i)
      larger[i].store(blocks_[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
    blocks_ = std::move(larger);
    block_count_ = blocks;
  }

  if (chunks_.size() == 1 && held_.empty()) {
    // The target is reserved first and moved onto, so that it starts at a huge page's boundary.
    Chunk& only = chunks_.front();
    std::byte* target = reserve_space(wanted);
    if (target == nullptr) return out_of_space(wanted);
    if (::mremap(only.base, only.size, wanted, MREMAP_MAYMOVE | MREMAP_FIXED, target) == MAP_FAILED) {
      const Status s = out_of_space(wanted);
      ::munmap(target, wanted);
      return s;
    }
    if (wanted >= kHugePage) ::madvise(target, wanted, MADV_HUGEPAGE);  // the moved part brought its own advice
    only = {0, wanted, target};
  } else if (!chunks_.empty() &&
             ::mremap(chunks_.back().base, chunks_.back().size, wanted - chunks_.back().start, 0) != MAP_FAILED) {
    chunks_.back().size = wanted - chunks_.back().start;  // B1: grew where it lies
  } else {
    const std::uint64_t size = wanted - reserved_;
    std::byte* base = reserve_space(size);
    if (base == nullptr) return out_of_space(wanted);
    chunks_.push_back({reserved_, size, base});
  }
  reserved_ = wanted;
  return {};
}

bool MemBytes::charged(std::uint64_t page) const noexcept {
  // [B5] acquire: pairs with the release in charge().
  const ChargeBlock* block = blocks_[page / ChargeBlock::kPages].load(std::memory_order_acquire);
  if (block == nullptr) return false;
  const std::uint64_t in_block = page % ChargeBlock::kPages;
  // relaxed: whoever reads a set bit needs nothing else that its setter did.
  return (block->words[in_block / 64].load(std::memory_order_relaxed) >> (in_block % 64) & 1) != 0;
}

/// Takes the range's pages from the quota, all or none (B3). Under the shared lock at least; the range is reserved.
Status MemBytes::charge(std::uint64_t offset, std::uint64_t length) {
  const std::uint64_t first = offset / kMemPage;
  const std::uint64_t end = (offset + length - 1) / kMemPage + 1;
  std::uint64_t page = first;
  while (page < end && charged(page)) ++page;
  if (page == end) return {};

  MutexLock lock(charging_);
  std::uint64_t fresh = 0;
  for (std::uint64_t p = page; p < end; ++p) fresh += charged(p) ? 0 : 1;
  for (std::uint64_t b = page / ChargeBlock::kPages; b <= (end - 1) / ChargeBlock::kPages; ++b) {
    if (blocks_[b].load(std::memory_order_relaxed) != nullptr) continue;  // relaxed: set under this lock only
    auto* block = new (std::nothrow) ChargeBlock;
    if (block == nullptr) return out_of_space(offset + length);
    blocks_[b].store(block, std::memory_order_release);  // [B5]
  }
  if (!quota_->take(fresh * kMemPage))
    return fail(Code::kDiskFull, 0, "the memory file system's quota is used up; remove files or raise the quota",
                "mem file at %llu, %llu bytes, %llu of %llu used", static_cast<unsigned long long>(offset),
                static_cast<unsigned long long>(length), static_cast<unsigned long long>(quota_->used()),
                static_cast<unsigned long long>(quota_->limit()));
  for (std::uint64_t p = page; p < end; ++p) {
    ChargeBlock* block = blocks_[p / ChargeBlock::kPages].load(std::memory_order_relaxed);
    const std::uint64_t in_block = p % ChargeBlock::kPages;
    block->words[in_block / 64].fetch_or(std::uint64_t{1} << (in_block % 64), std::memory_order_relaxed);
  }
  charged_pages_.fetch_add(fresh, std::memory_order_relaxed);
  return {};
}

/// Uncharges whole pages. Under the exclusive lock.
void MemBytes::give_back(std::uint64_t first_page, std::uint64_t end_page) {
  std::uint64_t given = 0;
  for (std::uint64_t p = first_page; p < end_page; ++p) {
    ChargeBlock* block = blocks_[p / ChargeBlock::kPages].load(std::memory_order_relaxed);
    if (block == nullptr) {
      p += ChargeBlock::kPages - 1 - p % ChargeBlock::kPages;
      continue;
    }
    const std::uint64_t in_block = p % ChargeBlock::kPages;
    const std::uint64_t bit = std::uint64_t{1} << (in_block % 64);
    if ((block->words[in_block / 64].fetch_and(~bit, std::memory_order_relaxed) & bit) != 0) ++given;
  }
  charged_pages_.fetch_sub(given, std::memory_order_relaxed);
  quota_->give(given * kMemPage);
}

/// Makes [offset, end) read zero and gives its whole pages back. Under the exclusive lock; the range is reserved.
void MemBytes::clear(std::uint64_t offset, std::uint64_t end) {
  const std::uint64_t first = align_up(offset, kMemPage);
  const std::uint64_t last = align_down(end, kMemPage);
  const auto zero = [this](std::uint64_t from, std::uint64_t to) {
    // A page that nobody charged is a hole already; touching it would cost memory.
    if (from < to && charged(from / kMemPage))
      walk(from, to - from, [](std::byte* p, std::size_t n) { std::memset(p, 0, n); });
  };
  if (first > last) {  // within one page
    zero(offset, end);
    return;
  }
  zero(offset, first);
  zero(last, end);
  if (first == last) return;
  walk(first, last - first, [](std::byte* p, std::size_t n) {
    // A host that locks its memory (mlockall) keeps the pages; then they are zeroed where they are.
    if (::madvise(p, n, MADV_DONTNEED) != 0) std::memset(p, 0, n);
  });
  give_back(first / kMemPage, last / kMemPage);
}

void MemBytes::extend(std::uint64_t end) noexcept {
  std::uint64_t seen = size_.load(std::memory_order_relaxed);  // relaxed: the exchange below decides
  while (seen < end &&
         !size_.compare_exchange_weak(seen, end, std::memory_order_release, std::memory_order_relaxed)) {  // [B4]
  }
}

}  // namespace tier
