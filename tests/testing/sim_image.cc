#include "testing/sim_image.h"

#include <algorithm>
#include <cstring>

namespace tier::testing {
namespace {

/// Calls `part(page, offset in it, offset in the range, bytes)` for every page that a range touches.
template <class Part>
void for_pages(std::uint64_t offset, std::uint64_t length, Part part) {
  for (std::uint64_t done = 0; done < length;) {
    const std::uint64_t at = offset + done;
    const std::uint64_t within = at % kSimPage;
    const std::uint64_t n = std::min(length - done, kSimPage - within);
    part(at / kSimPage, static_cast<std::size_t>(within), static_cast<std::size_t>(done), static_cast<std::size_t>(n));
    done += n;
  }
}

}  // namespace

SimImage::Page* SimImage::Ref::mine() {
  // [P2] acquire: sole ownership seen here includes what the last other holder did.
  if (page_ != nullptr && page_->references.load(std::memory_order_acquire) == 1) return page_;
  Page* copy = new Page;
  if (page_ != nullptr)
    std::memcpy(copy->bytes, page_->bytes, kSimPage);
  else
    std::memset(copy->bytes, 0, kSimPage);
  *this = Ref(copy);
  return page_;
}

std::size_t SimImage::lower_bound(std::uint64_t page_idx) const noexcept {
  // Files without holes, the usual ones, find page i at i.
  if (page_idx < pages_.size() && pages_[static_cast<std::size_t>(page_idx)].number == page_idx)
    return static_cast<std::size_t>(page_idx);
  const auto it = std::lower_bound(pages_.begin(), pages_.end(), page_idx,
                                   [](const Entry& e, std::uint64_t number) { return e.number < number; });
  return static_cast<std::size_t>(it - pages_.begin());
}

const SimImage::Entry* SimImage::find(std::uint64_t page_idx) const noexcept {
  const std::size_t i = lower_bound(page_idx);
  return i < pages_.size() && pages_[i].number == page_idx ? &pages_[i] : nullptr;
}

SimImage::Entry& SimImage::make(std::uint64_t page_idx) {
  const std::size_t i = lower_bound(page_idx);
  if (i == pages_.size() || pages_[i].number != page_idx)
    pages_.insert(pages_.begin() + static_cast<std::ptrdiff_t>(i), Entry{page_idx, Ref()});
  return pages_[i];
}

const std::byte* SimImage::page(std::uint64_t page_idx) const noexcept {
  const Entry* e = find(page_idx);
  return e == nullptr || e->page.get() == nullptr ? nullptr : e->page.get()->bytes;
}

std::uint64_t SimImage::missing_pages(std::uint64_t offset, std::uint64_t length) const noexcept {
  if (length == 0) return 0;
  const std::uint64_t first = offset / kSimPage;
  const std::uint64_t end = (offset + length - 1) / kSimPage + 1;
  return (end - first) - (lower_bound(end) - lower_bound(first));
}

void SimImage::read(std::uint64_t offset, MutableByteSpan into) const noexcept {
  for_pages(offset, into.size(), [&](std::uint64_t number, std::size_t within, std::size_t done, std::size_t n) {
    if (const std::byte* bytes = page(number); bytes != nullptr)
      std::memcpy(into.data() + done, bytes + within, n);
    else
      std::memset(into.data() + done, 0, n);
  });
}

void SimImage::write(std::uint64_t offset, ByteSpan from) {
  for_pages(offset, from.size(), [&](std::uint64_t number, std::size_t within, std::size_t done, std::size_t n) {
    std::memcpy(make(number).page.mine()->bytes + within, from.data() + done, n);
  });
}

void SimImage::zero(std::uint64_t offset, std::uint64_t length) {
  if (length == 0 || pages_.empty()) return;
  const std::uint64_t end = offset + length;
  // Whole pages in one go; then the ragged ends.
  const std::size_t first = lower_bound(offset / kSimPage + (offset % kSimPage == 0 ? 0 : 1));
  const std::size_t last = lower_bound(end / kSimPage);
  if (first < last)
    pages_.erase(pages_.begin() + static_cast<std::ptrdiff_t>(first),
                 pages_.begin() + static_cast<std::ptrdiff_t>(last));
  const auto blank = [&](std::uint64_t begin, std::uint64_t stop) {
    if (begin >= stop || page(begin / kSimPage) == nullptr) return;
    std::memset(make(begin / kSimPage).page.mine()->bytes + begin % kSimPage, 0,
                static_cast<std::size_t>(stop - begin));
  };
  if (offset % kSimPage != 0) blank(offset, std::min(end, align_up(offset, kSimPage)));
  if (end % kSimPage != 0) blank(std::max(offset, align_down(end, kSimPage)), end);
}

void SimImage::reserve(std::uint64_t offset, std::uint64_t length) {
  for_pages(offset, length, [&](std::uint64_t number, std::size_t, std::size_t, std::size_t) { make(number); });
}

void SimImage::cut(std::uint64_t size) {
  size_ = size;
  if (pages_.empty()) return;
  const std::uint64_t end = (pages_.back().number + 1) * kSimPage;
  if (end > size) zero(size, end - size);
}

void SimImage::copy_sector(std::uint64_t sector, const SimImage& from) {
  const std::uint64_t offset = sector * kSimSector;
  const std::uint64_t number = offset / kSimPage;
  const std::byte* source = from.page(number);
  if (source == nullptr) {
    // Zeros; space where the source has space.
    if (page(number) != nullptr)
      std::memset(make(number).page.mine()->bytes + offset % kSimPage, 0, kSimSector);
    else if (from.has_page(number))
      make(number);
    return;
  }
  const std::byte* held = page(number);
  if (held == source) return;
  if (held != nullptr && std::memcmp(held + offset % kSimPage, source + offset % kSimPage, kSimSector) == 0) return;
  std::memcpy(make(number).page.mine()->bytes + offset % kSimPage, source + offset % kSimPage, kSimSector);
}

}  // namespace tier::testing
