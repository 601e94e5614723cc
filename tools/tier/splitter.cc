#include "splitter.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tier::cli {
namespace {
constexpr std::size_t kPiece = 1 << 20;                      // of input
constexpr std::uint64_t kMeasured = std::uint64_t{1} << 30;  // how far the end of a refused record is looked for
static_assert(std::endian::native == std::endian::little, "length prefixes are copied as they are");
}  // namespace

Splitter::Splitter(Input& input, Split split, std::uint64_t record_limit)
    : input_(input),
      split_(split),
      limit_(record_limit),
      capacity_(static_cast<std::size_t>(record_limit) + 2 * kPiece),
      buffer_(new std::byte[capacity_]) {}

Status Splitter::rewind() {
  TIER_CHECK(input_.rewind());
  begin_ = end_ = 0;
  at_end_ = false;
  record_ = 0;
  return {};
}

Result<std::optional<ByteSpan>> Splitter::next() {
  ++record_;
  switch (split_) {
    case Split::kLines: return next_delimited('\n');
    case Split::kNul: return next_delimited('\0');
    case Split::kLength: break;
  }
  return next_length_prefixed();
}

Result<bool> Splitter::fill() {
  if (at_end_) return false;
  if (capacity_ - end_ < kPiece) {  // P1: callers hold at most a record and its delimiter
    std::memmove(buffer_.get(), buffer_.get() + begin_, available());
    end_ -= begin_;
    begin_ = 0;
  }
  TIER_TRY(const std::size_t n, input_.read({buffer_.get() + end_, kPiece}));
  end_ += n;
  at_end_ = n == 0;
  return n != 0;
}

Result<std::optional<ByteSpan>> Splitter::next_delimited(char delimiter) {
  std::size_t searched = 0;
  for (;;) {
    const std::byte* from = buffer_.get() + begin_;
    const void* hit = std::memchr(from + searched, delimiter, available() - searched);
    if (hit != nullptr) {
      const std::size_t size = static_cast<std::size_t>(static_cast<const std::byte*>(hit) - from);
      if (size > limit_) return too_large(size, false);
      begin_ += size + 1;
      consumed_ += size + 1;
      return std::optional<ByteSpan>(ByteSpan(from, size));
    }
    searched = available();
    if (searched > limit_) return refuse_long(delimiter);
    TIER_TRY(const bool more, fill());
    if (more) continue;
    if (searched == 0) return std::optional<ByteSpan>();
    const ByteSpan last(buffer_.get() + begin_, searched);
    begin_ = end_;
    consumed_ += searched;
    return std::optional<ByteSpan>(last);
  }
}

Result<std::optional<ByteSpan>> Splitter::next_length_prefixed() {
  std::uint64_t wanted = sizeof(std::uint32_t);
  for (;;) {
    if (available() >= sizeof(std::uint32_t)) {
      std::uint32_t size = 0;
      std::memcpy(&size, buffer_.get() + begin_, sizeof size);
      if (size > limit_) return too_large(size, false);
      wanted = sizeof size + std::uint64_t{size};
      if (available() >= wanted) {
        const ByteSpan record(buffer_.get() + begin_ + sizeof size, size);
        begin_ += static_cast<std::size_t>(wanted);
        consumed_ += wanted;
        return std::optional<ByteSpan>(record);
      }
    }
    TIER_TRY(const bool more, fill());
    if (more) continue;
    if (available() == 0) return std::optional<ByteSpan>();
    return fail(Code::kInvalid, 0,
                "the input ends inside a record; --split length wants four bytes of size before each",
                "record %llu of %s has %zu of %llu bytes", static_cast<unsigned long long>(record_),
                input_.name().c_str(), available(), static_cast<unsigned long long>(wanted));
  }
}

Result<std::optional<ByteSpan>> Splitter::refuse_long(char delimiter) {
  std::uint64_t size = available();
  begin_ = end_;
  while (size < kMeasured) {
    begin_ = end_ = 0;  // what was seen of it is of no use any more
    TIER_TRY(const bool more, fill());
    if (!more) return too_large(size, false);
    const void* hit = std::memchr(buffer_.get(), delimiter, end_);
    if (hit != nullptr)
      return too_large(size + static_cast<std::size_t>(static_cast<const std::byte*>(hit) - buffer_.get()), false);
    size += end_;
  }
  return too_large(size, true);
}

Status Splitter::too_large(std::uint64_t size, bool at_least) const {
  return fail(Code::kTooLarge, 0,
              "a record is over the limit; raise it with --max-record, or cut the input differently",
              "%s %llu of %s has %s%llu bytes, the limit is %llu", split_ == Split::kLines ? "line" : "record",
              static_cast<unsigned long long>(record_), input_.name().c_str(), at_least ? "more than " : "",
              static_cast<unsigned long long>(size), static_cast<unsigned long long>(limit_));
}

}  // namespace tier::cli
