/// Reading by sequence, truncation, verification, numbers.
#include <algorithm>

#include "base/assert.h"
#include "log/cursor.h"
#include "log/log_core.h"
#include "log/manifest.h"
#include "log/probe.h"

namespace tier {
namespace {

/// Whether the frames fill the block's payload exactly; nullptr if they do.
const char* check_frames(const Block& block) noexcept {
  std::uint64_t at = 0;
  for (std::uint32_t i = 0; i < block.header.count; ++i) {
    if (block.payload.size() - at < log_format::kFramePrefix) return "a block ends inside a record";
    const std::uint64_t length = log_format::load_u32(block.payload.data() + at) & ~log_format::kVoidBit;
    at += log_format::kFramePrefix;
    if (length > block.payload.size() - at) return "a record is longer than its block";
    at += length;
  }
  return at == block.payload.size() ? nullptr : "a block holds more than its records";
}

}  // namespace

Status LogCore::read(Sequence sequence, std::string& into) {
  MutexLock lock(read_mutex_);
  if (sequence.value < state_->first.sequence()) return state_->given_up(sequence.value);  // the block in hand may be older
  if (reading_ == nullptr)
    reading_ = std::make_unique<LogCursor>(state_, sequence, Sequence{~std::uint64_t{0}}, CursorOptions{});
  TIER_CHECK(reading_->seek(sequence));
  LogCursor::Raw raw;
  const auto found = reading_->next_raw(raw);
  if (!found.ok()) {
    reading_.reset();  // it stands somewhere unknown
    return found.status();
  }
  if (!*found)
    return fail(Code::kNotFound, 0, "no durable record with that sequence (yet)", "sequence %llu, durable up to %llu",
                static_cast<unsigned long long>(sequence.value),
                static_cast<unsigned long long>(state_->durable.sequence()));
  if (raw.is_void)
    return fail(Code::kVoid, 0, "the record was abandoned by its producer", "sequence %llu",
                static_cast<unsigned long long>(sequence.value));
  into.assign(as_text(raw.record.bytes));
  return {};
}

Result<std::unique_ptr<Cursor>> LogCore::scan(Sequence from, Sequence to, const CursorOptions& options) {
  if (to < from)
    return fail(Code::kInvalid, 0, "a range ends before it begins", "from %llu to %llu",
                static_cast<unsigned long long>(from.value), static_cast<unsigned long long>(to.value));
  if (from.value < state_->first.sequence()) return state_->given_up(from.value);
  return std::unique_ptr<Cursor>(std::make_unique<LogCursor>(state_, from, to, options));
}

Status LogCore::truncate_before(Sequence first) {
  if (read_only_) return refusal();
  if (closed_.load(std::memory_order_acquire)) return refusal();  // [C3]
  TIER_CHECK(poisoned());
  MutexLock lock(truncate_mutex_);
  const std::uint64_t durable = state_->durable.sequence();
  const std::uint64_t wanted = std::min(first.value, durable);
  if (wanted <= state_->first.sequence()) return {};
  LogCursor walker(state_, Sequence{wanted}, Sequence{~std::uint64_t{0}}, {});
  TIER_TRY(const LogPosition position, walker.position_before(wanted));
  if (position.sequence <= state_->first.sequence()) return {};
  // The manifest first: after a crash in between, the records are gone and their space returns at the next truncation.
  if (TIER_BUG("log_reclaim_before_manifest")) TIER_CHECK(engine().reclaim_head(Address{position.end}));
  TIER_CHECK(store_manifest(engine(), position));
  state_->set_first(position);
  state_->index.drop_below(position.end);
  return engine().reclaim_head(Address{position.end});
}

LogCursors LogCore::cursors() const noexcept {
  LogCursors c;
  c.first = Sequence{state_->first.sequence()};
  c.durable = Sequence{state_->durable.sequence()};
  c.committed = Sequence{std::max(state_->committed.sequence(), c.durable.value)};
  c.claimed = ring_ != nullptr ? Sequence{std::max(ring_->claimed(), c.committed.value)} : c.committed;
  return c;
}

LogStatistics LogCore::statistics() const {
  LogStatistics s;
  // relaxed: statistics.
  if (ring_ != nullptr) s.appends = ring_->claimed() - opened_at_sequence_;
  s.append_bytes = payload_bytes_.load(std::memory_order_relaxed);
  s.blocks = blocks_.load(std::memory_order_relaxed);
  s.block_bytes = block_bytes_.load(std::memory_order_relaxed);
  s.syncs = group_syncs_.load(std::memory_order_relaxed);
  s.queue_full_waits = full_waits_.load(std::memory_order_relaxed);
  s.engine = state_->engine->statistics();
  return s;
}

Result<LogVerification> LogCore::verify(void (*report)(void* context, const LogDamage& damage), void* context) {
  if (state_->follower != nullptr) {
    const Status s = state_->follower->step();
    if (!s.ok() && s.code() != Code::kCorruption) return s;  // damage is what we are here to report
  }
  LogVerification result;
  LogPosition at = state_->first_position();
  result.from = result.to = Sequence{at.sequence};
  BlockReader reader(engine());
  const std::uint64_t visible = state_->durable.sequence();
  const std::uint64_t limit = state_->durable.address();
  Block block;
  std::uint64_t searched = 0;  // no block below is looked for again, whatever headers with good checksums claim
  while (at.sequence < visible) {
    auto found = reader.next(at, limit, BlockReader::Payload::kVerify, block);
    const bool unreadable = !found.ok();
    if (unreadable && (found.code() == Code::kUnsupported || found.code() == Code::kClosing)) return found.status();
    if (!unreadable && *found == BlockReader::Found::kBlock) {
      const char* framing = check_frames(block);
      if (framing == nullptr) {
        ++result.blocks;
        result.records += block.header.count;
        result.bytes += block.payload.size() - std::uint64_t{block.header.count} * log_format::kFramePrefix;
        at = block.after();
        result.to = Sequence{at.sequence};
        continue;
      }
    }
    // Damage: go on at the next block that continues the log.
    LogDamage damage;
    damage.from = Sequence{at.sequence};
    damage.what = unreadable ? found.status().message()
                  : *found == BlockReader::Found::kNothing ? "no valid block where one must be"
                  : *found == BlockReader::Found::kDamaged ? "the records do not match the block's checksum"
                                                           : "the records do not fill their block";
    const std::uint64_t begin = align_up(at.end, log_format::kBlockAlign);
    const bool header_known = !unreadable && *found != BlockReader::Found::kNothing;
    searched = std::max(searched, header_known ? block.end() : begin + log_format::kBlockAlign);
    TIER_TRY(const LogPosition resumed,
             resume_after(reader, at, searched, limit, visible, options_.segment_size.value));
    damage.to = Sequence{resumed.sequence};
    damage.file = engine().locate(Address{begin});
    damage.offset = begin;
    damage.length = std::max(resumed.end, begin) - begin;
    ++result.damages;
    if (report != nullptr) report(context, damage);
    at = resumed;
    result.to = Sequence{at.sequence};
  }
  return result;
}

/// The position before the next block that continues the log at or above `from`, which is moved behind its header; the
/// visible end if there is none.
Result<LogPosition> LogCore::resume_after(BlockReader& reader, const LogPosition& broken, std::uint64_t& from,
                                          std::uint64_t limit, std::uint64_t visible, std::uint64_t segment) {
  while (from < limit) {
    auto probe = probe_header(reader, from, limit, segment);
    if (!probe.ok()) {  // this segment cannot be read: the next one perhaps can
      from = align_down(from, segment) + segment;
      continue;
    }
    if (!probe->found) break;
    const log_format::BlockHeader& h = probe->header;
    from = probe->address + log_format::kBlockAlign;
    if (h.first_sequence >= broken.sequence && h.epoch >= broken.epoch)
      return LogPosition{h.predecessor, h.first_sequence, h.epoch, 0};
  }
  return LogPosition{limit, visible, broken.epoch, 0};
}

}  // namespace tier
