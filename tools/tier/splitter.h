/// Splitter: cuts an Input into records without copying them.
///
/// Shape       lines: LF ends a record and is dropped, everything else (CR, NUL, bytes that are no UTF-8) is kept; what
///             follows the last LF is a record too unless it is empty. nul: the same with NUL. length: each record
///             follows its size as four little-endian bytes.
/// Invariants  (P1) memory stays below the limit of a record and two pieces of input, whatever the input holds.
/// Outcomes    kTooLarge: a record over the limit, with its number, size and limit. kInvalid: the input ends inside a
///             length-prefixed record. kCancelled: interrupted. Records given before stay given.
/// Cost        one memchr over the input; a record that straddles two pieces is moved once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "input.h"

namespace tier::cli {

enum class Split : std::uint8_t { kLines, kNul, kLength };

class Splitter {
 public:
  Splitter(Input& input, Split split, std::uint64_t record_limit);

  /// The next record, valid until the next call; std::nullopt at the end of the input.
  Result<std::optional<ByteSpan>> next();
  /// Starts the input again; kUnsupported for a pipe.
  Status rewind();
  /// Bytes of input consumed, over all rounds.
  std::uint64_t consumed() const noexcept { return consumed_; }

 private:
  Result<std::optional<ByteSpan>> next_delimited(char delimiter);
  Result<std::optional<ByteSpan>> next_length_prefixed();
  /// Reads more behind what is there; false at the end of the input.
  Result<bool> fill();
  Status too_large(std::uint64_t size, bool at_least) const;
  /// The size of the record that starts at begin_ and does not fit, read on to its end (within reason).
  Result<std::optional<ByteSpan>> refuse_long(char delimiter);
  std::size_t available() const noexcept { return end_ - begin_; }

  Input& input_;
  Split split_;
  std::uint64_t limit_;
  std::size_t capacity_;
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool at_end_ = false;
  std::uint64_t record_ = 0;  // of this round, from 1
  std::uint64_t consumed_ = 0;
};

}  // namespace tier::cli
