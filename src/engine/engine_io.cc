/// Reads, overwrites and views.
#include <cstring>
#include <new>

#include "base/assert.h"
#include "engine/engine_core.h"

namespace tier {
namespace {

/// Copies up to this size are made under an epoch guard; longer ones hold a reference instead.
constexpr std::uint64_t kGuardedCopy = 64 << 10;

void unpin_view(void* pin) noexcept {
  if (pin == nullptr) return;
  Segment* segment = static_cast<Segment*>(pin);
  segment->views.fetch_sub(1, std::memory_order_release);  // [V1] pairs with reclaim_head()
  segment->release();
}

void copy_parts(std::byte* to, std::span<const ByteSpan> parts) noexcept {
  for (const ByteSpan part : parts) {
    if (part.empty()) continue;
    std::memcpy(to, part.data(), part.size());
    to += part.size();
  }
}

}  // namespace

View::View(View&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})), pin_(std::exchange(other.pin_, nullptr)), copy_(std::move(other.copy_)) {}

View& View::operator=(View&& other) noexcept {
  if (this == &other) return *this;
  unpin_view(pin_);
  bytes_ = std::exchange(other.bytes_, {});
  pin_ = std::exchange(other.pin_, nullptr);
  copy_ = std::move(other.copy_);
  return *this;
}

View::~View() { unpin_view(pin_); }

std::uint64_t EngineCore::readable_end() const noexcept {
  const std::uint32_t r = refusal_.load(std::memory_order_acquire);  // [C1]
  return (r & (kRecovering | kReadOnlyOpen)) != 0 ? read_limit_.load(std::memory_order_acquire)  // [R2]
                                                  : tail_.committed();
}

Status EngineCore::check_range(std::uint64_t at, std::uint64_t n) const {
  if (at < begin_.load(std::memory_order_acquire)) {  // [R1]
    return fail(Code::kTruncated, 0, "the address was given up by truncation; read from begin on", "address %llu, begin %llu",
                static_cast<unsigned long long>(at),
                static_cast<unsigned long long>(begin_.load(std::memory_order_relaxed)));
  }
  const std::uint64_t end = readable_end();
  if (at <= end && n <= end - at) return {};
  return fail(Code::kNotFound, 0, "the range is not committed (yet); read below the tail", "%llu bytes at address %llu, end %llu",
              static_cast<unsigned long long>(n), static_cast<unsigned long long>(at), static_cast<unsigned long long>(end));
}

Status EngineCore::open_segment(Segment& segment) {
  MutexLock lock(open_);
  if (segment.file() != nullptr) return {};
  TIER_CHECK(check_open());
  auto opened = store_->open(segment.index(), !options_.read_only);
  if (opened.code() == Code::kNotFound && !options_.read_only)
    return opened.status().as(Code::kCorruption, "a segment is missing; restore the file from a copy");
  TIER_TRY(auto file, std::move(opened));
  if (!options_.read_only && file->identity().epoch > epoch()) return later_epoch(segment.index(), file->identity().epoch);
  segment.set_file(std::move(file));
  // An owner before us may have overwritten it and never synced: what is read here is part of the next sync.
  if (!options_.read_only && !recovered_.clean) mark_dirty(segment);
  return {};
}

Result<EngineCore::Pinned> EngineCore::pin(std::uint64_t index) {
  Pinned pinned;
  {
    EpochProtector::Guard guard(table_.epochs());
    Segment* segment = table_.find(index);
    if (segment != nullptr) {
      segment->acquire();  // G1
      pinned.segment = segment;
    }
  }
  if (pinned.segment == nullptr) {
    return fail(Code::kTruncated, 0, "the segment was given up; read from begin on", "file '%s'",
                store_->name_of(index).c_str());
  }
  if (pinned->file() == nullptr) TIER_CHECK(open_segment(*pinned.segment));
  return pinned;
}

Status EngineCore::read(Address address, MutableByteSpan into) {
  TIER_CHECK(check_open());
  if (into.empty()) return {};
  TIER_CHECK(check_range(address.value, into.size()));
  std::uint64_t at = address.value;
  while (!into.empty()) {
    const std::uint64_t offset = at & (segment_size_ - 1);
    const MutableByteSpan part = into.first(std::min<std::uint64_t>(into.size(), segment_size_ - offset));
    at += part.size();
    into = into.subspan(part.size());
    if (part.size() <= kGuardedCopy) {
      EpochProtector::Guard guard(table_.epochs());
      const Segment* segment = resident(at - part.size());
      const std::byte* data = segment != nullptr ? segment->data() : nullptr;
      if (data != nullptr) {
        std::memcpy(part.data(), data + offset, part.size());
        continue;
      }
    }
    const std::uint64_t index = (at - part.size()) >> segment_shift_;
    auto pinned = pin(index);
    if (pinned.code() == Code::kNotFound) {  // read-only: the owner may have given it up, the manifest says
      TIER_CHECK(refresh_begin());
      TIER_CHECK(check_range(address.value, 0));
      return pinned.status().as(Code::kCorruption, "a segment is missing; restore the file from a copy");
    }
    if (!pinned.ok()) return pinned.status();
    if (const std::byte* data = (*pinned)->data(); data != nullptr) std::memcpy(part.data(), data + offset, part.size());
    else TIER_CHECK((*pinned)->file()->read(offset, part));
  }
  // What was given up meanwhile may have been punched already.
  if (address.value < begin_.load(std::memory_order_seq_cst)) return check_range(address.value, 0);  // [R1]
  return {};
}

Result<View> EngineCore::view(Address address, Bytes n) {
  TIER_CHECK(check_open());
  TIER_CHECK(check_range(address.value, n.value));
  View view;
  if (n.value == 0) return view;
  const std::uint64_t offset = address.value & (segment_size_ - 1);
  if (n.value <= segment_size_ - offset) {
    auto pinned = pin(address.value >> segment_shift_);
    if (pinned.ok() && (*pinned)->data() != nullptr) {
      Segment* segment = std::exchange(pinned->segment, nullptr);
      view.pin_ = segment;
      // Sequentially consistent: either reclaim_head() sees the view and punches nothing, or we see the new begin. [V1]
      segment->views.fetch_add(1, std::memory_order_seq_cst);
      if (address.value < begin_.load(std::memory_order_seq_cst)) return check_range(address.value, 0);
      view.bytes_ = {segment->data() + offset, n.value};
      return view;
    }
  }
  view.copy_.reset(new (std::nothrow) std::byte[n.value]);
  if (view.copy_ == nullptr) {
    return fail(Code::kOutOfMemory, 0, "cannot allocate a view; view less at once", "%llu bytes",
                static_cast<unsigned long long>(n.value));
  }
  TIER_CHECK(read(address, {view.copy_.get(), n.value}));
  view.bytes_ = {view.copy_.get(), n.value};
  return view;
}

Status EngineCore::write_segment(Segment& segment, std::uint64_t offset, std::span<const ByteSpan> parts) {
  if (std::byte* data = segment.data(); data != nullptr) copy_parts(data + offset, parts);
  else TIER_CHECK(segment.file()->write(offset, parts));
  mark_dirty(segment);  // G2: after it returned
  return {};
}

Status EngineCore::write(Address address, ByteSpan bytes) {
  TIER_CHECK(check_writable());
  if (bytes.empty()) return {};
  std::uint64_t at = address.value;
  if (at < begin_.load(std::memory_order_acquire)) return check_range(at, 0);  // [R1]
  if (const std::uint64_t end = tail_.allocated(); at > end || bytes.size() > end - at) {
    return fail(Code::kNotFound, 0, "the range is not allocated; allocate it first", "%zu bytes at address %llu, end %llu",
                bytes.size(), static_cast<unsigned long long>(at), static_cast<unsigned long long>(end));
  }
  while (!bytes.empty()) {
    const std::uint64_t offset = at & (segment_size_ - 1);
    const ByteSpan part = bytes.first(std::min<std::uint64_t>(bytes.size(), segment_size_ - offset));
    const std::uint64_t index = at >> segment_shift_;
    at += part.size();
    bytes = bytes.subspan(part.size());
    if (part.size() <= kGuardedCopy) {
      EpochProtector::Guard guard(table_.epochs());
      Segment* segment = table_.find(index);
      if (segment != nullptr && segment->data() != nullptr) {
        std::memcpy(segment->data() + offset, part.data(), part.size());
        mark_dirty(*segment);
        continue;
      }
    }
    TIER_TRY(Pinned pinned, pin(index));
    TIER_CHECK(write_segment(*pinned.segment, offset, std::span(&part, 1)));
  }
  return {};
}

}  // namespace tier
