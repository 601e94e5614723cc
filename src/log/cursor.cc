#include "log/cursor.h"

#include <algorithm>

#include "base/assert.h"
#include "log/follower.h"

namespace tier {
namespace {

constexpr Duration kPollLeast = 1ms;  // following a writer in another process
constexpr Duration kPollMost = 20ms;

}  // namespace

LogCursor::LogCursor(std::shared_ptr<ReadState> state, Sequence from, Sequence to, const CursorOptions& options)
    : state_(std::move(state)), options_(options), reader_(*state_->engine), to_(to.value), sequence_(from.value) {}

Status LogCursor::damaged(const LogPosition& at, const char* what) const {
  return fail(Code::kCorruption, 0, what, "%s, sequence %llu",
              state_->engine->locate(Address{align_up(at.end, log_format::kBlockAlign)}).c_str(),
              static_cast<unsigned long long>(at.sequence));
}

Status LogCursor::damaged_frame() const {
  return damaged(next_, "the records do not fit their block; see tier log verify");
}

/// The next frame of the block in hand. Inlined, so that a record goes to its caller in registers: as a struct in memory it is
/// written in halves and read whole, which stalls the load (half of a scan's time).
[[gnu::always_inline]] inline LogCursor::Taken LogCursor::take(Raw& out) noexcept {
  while (sequence_ < block_end_ && sequence_ < to_) [[likely]] {
    // The block is checked, but not every checked block was framed by us: bounds are checked too.
    const std::byte* const end = block_.payload.data() + block_.payload.size();
    if (end - at_ < static_cast<std::ptrdiff_t>(log_format::kFramePrefix)) [[unlikely]] return Taken::kDamaged;
    const std::uint32_t word = log_format::load_u32(at_);
    const std::uint32_t length = word & ~log_format::kVoidBit;
    const std::byte* const payload = at_ + log_format::kFramePrefix;
    if (length > static_cast<std::uint64_t>(end - payload)) [[unlikely]] return Taken::kDamaged;
    at_ = payload + length;
    if (in_block_++ < sequence_) continue;  // before the one we look for
    out.record = {Sequence{sequence_++}, {payload, length}, block_.header.wall_ns};
    out.is_void = (word & log_format::kVoidBit) != 0;
    return Taken::kRecord;
  }
  return Taken::kBlockDone;
}

Result<bool> LogCursor::next_raw(Raw& out) {
  for (;;) {
    const Taken taken = take(out);
    if (taken == Taken::kRecord) [[likely]] return true;
    if (taken == Taken::kDamaged) return damaged_frame();
    TIER_TRY(const bool more, load_block());
    if (!more) return false;
  }
}

/// Takes the block that holds sequence_; false when that is not visible (yet) or beyond the range.
Result<bool> LogCursor::load_block() {
  if (sequence_ >= to_) return false;
  if (sequence_ >= visible().sequence()) {
    if (state_->follower == nullptr) return false;
    TIER_CHECK(state_->follower->step());
    if (sequence_ >= visible().sequence()) return false;
  }
  for (;;) {
    const std::uint64_t first = state_->first.sequence();
    if (sequence_ < first) return state_->given_up(sequence_);
    const Status s = take_block();
    if (s.ok()) return true;
    // Truncation may have taken away what we looked at: `first` moves before any byte goes. Another process tells us of it
    // through the manifest.
    if (state_->follower != nullptr) static_cast<void>(state_->follower->step());
    if (state_->first.sequence() == first) return s;
    located_ = false;
    reader_.forget();
  }
}

Status LogCursor::take_block() {
  block_end_ = 0;
  if (!located_) TIER_CHECK(step_over(sequence_));
  const auto payload = options_.verify ? BlockReader::Payload::kVerify : BlockReader::Payload::kRead;
  const std::uint64_t limit = visible().address();  // V1
  auto found = reader_.next(next_, limit, payload, block_);
  if (found.ok() && *found != BlockReader::Found::kBlock) {
    reader_.forget();  // perhaps read ahead before it was written
    found = reader_.next(next_, limit, payload, block_);
  }
  if (!found.ok()) {
    if (found.code() == Code::kTruncated || found.code() == Code::kNotFound)
      return damaged(next_, "a block below the durable mark is missing; see tier log verify");
    return found.status();
  }
  if (*found == BlockReader::Found::kDamaged)
    return damaged(next_, "a block's checksum does not match its records; see tier log verify");
  if (*found == BlockReader::Found::kNothing)
    return damaged(next_, "no valid block where one must be; see tier log verify");
  TIER_ASSERT(block_.header.first_sequence <= sequence_ && sequence_ < block_.after().sequence);  // never another record
  state_->index.note(block_.header.first_sequence, block_.header.address, next_.end, block_.header.epoch);
  next_ = block_.after();
  at_ = block_.payload.data();
  in_block_ = block_.header.first_sequence;
  block_end_ = next_.sequence;
  return {};
}

/// The best place to start walking headers from. Without an anchor near: bisect the segments by their first headers.
Result<LogPosition> LogCursor::nearest_anchor(std::uint64_t sequence) {
  const std::uint64_t segment = state_->engine->segment_size().value;
  LogPosition best = state_->first_position();
  if (const auto anchor = state_->index.find(sequence); anchor && anchor->sequence >= best.sequence)
    best = {anchor->end, anchor->sequence, anchor->epoch, 0};
  const std::uint64_t limit = visible().address();
  std::uint64_t low = best.end / segment;  // its first block is at or below `sequence`
  std::uint64_t high = limit == 0 ? 0 : (limit - 1) / segment;
  while (low < high) {
    const std::uint64_t middle = low + (high - low + 1) / 2;
    log_format::BlockHeader header;
    // A damaged first header says nothing: look at the next segment's.
    std::uint64_t readable = middle;
    bool found = false;
    for (; readable <= high; ++readable) {
      TIER_TRY(found, reader_.header_at(readable * segment, limit, header));
      if (found) break;
    }
    if (!found || header.first_sequence > sequence) {
      high = middle - 1;
      continue;
    }
    state_->index.note(header.first_sequence, header.address, header.predecessor, header.epoch);
    best = {header.predecessor, header.first_sequence, header.epoch, 0};
    low = readable;
  }
  return best;
}

/// Walks headers until the next block is the one that holds `sequence`.
Status LogCursor::step_over(std::uint64_t sequence) {
  TIER_TRY(next_, nearest_anchor(sequence));
  if (next_.sequence > sequence) return state_->given_up(sequence);  // truncated meanwhile: only later records are left
  const std::uint64_t limit = visible().address();
  Block block;
  for (;;) {
    TIER_TRY(const BlockReader::Found found, reader_.next(next_, limit, BlockReader::Payload::kSkip, block));
    if (found != BlockReader::Found::kBlock) {
      if (next_.sequence >= visible().sequence()) break;
      return damaged(next_, "no valid block where one must be; see tier log verify");
    }
    if (sequence < block.header.first_sequence + block.header.count) break;
    state_->index.note(block.header.first_sequence, block.header.address, next_.end, block.header.epoch);
    next_ = block.after();
  }
  located_ = true;
  return {};
}

Result<LogPosition> LogCursor::position_before(std::uint64_t sequence) {
  TIER_CHECK(step_over(sequence));
  located_ = false;
  block_end_ = 0;
  return next_;
}

Status LogCursor::seek(Sequence to) {
  sequence_ = to.value;
  if (block_end_ != 0 && sequence_ >= block_.header.first_sequence && sequence_ < block_end_) {
    at_ = block_.payload.data();
    in_block_ = block_.header.first_sequence;
    return {};
  }
  // In order is the common case: next_ already stands before the next block.
  if (!(located_ && block_end_ != 0 && sequence_ == block_end_)) located_ = false;
  block_end_ = 0;
  return {};
}

Result<std::optional<Record>> LogCursor::next() {
  for (;;) {
    Raw raw;
    const Taken taken = take(raw);
    if (taken == Taken::kRecord) [[likely]] {
      if (!raw.is_void) [[likely]] return std::optional<Record>(raw.record);
      continue;
    }
    if (taken == Taken::kDamaged) return damaged_frame();
    TIER_TRY(const bool more, load_block());
    if (!more) return std::optional<Record>();
  }
}

Result<Record> LogCursor::wait_next(Deadline until) {
  Duration poll = kPollLeast;
  for (;;) {
    const std::uint32_t ticket = state_->progress.ticket();
    TIER_TRY(const std::optional<Record> record, next());
    if (record) return *record;
    if (sequence_ >= to_) return Status(Code::kNotFound, "the cursor is at the end of its range");
    if (state_->closed.load(std::memory_order_acquire))  // [V3] pairs with close()
      return Status(Code::kClosing, "the log was closed while a cursor waited for more");
    if (state_->runtime.clock->passed(until)) return Status(Code::kTimedOut, "nothing new came in time; wait again");
    if (state_->follower == nullptr) {
      state_->progress.wait(ticket, until);
    } else {
      state_->progress.wait(ticket, std::min(until, state_->runtime.clock->in(poll)));
      poll = std::min(poll * 2, kPollMost);
    }
  }
}

}  // namespace tier
