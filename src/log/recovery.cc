/// Finding the end of a log after a stop, and cutting what lies above it.
///
/// 1. Start where something durable says a block boundary is: the clean close, else the newest mark, else the first record.
/// 2. Walk the blocks that chain from there (B1 to B4, payloads checked). The first that does not ends the log.
/// 3. If that is below a durable mark (of the start, or carried by any block seen, or by a block found further up), records
///    that were acknowledged are damaged: kCorruption with the place (L5). Else what lies above was never acknowledged.
/// 4. The engine takes the tail back: higher epoch and tail durable, everything above erased, what was kept synced.
/// 5. What no durable mark covers is written again and synced: it may be in the cache only, marked clean by a sync that
///    failed in the life before, and then no sync would ever write it. Only then is anything served. Each step may be
///    repeated after a crash in it.
#include <algorithm>

#include "base/aligned_buffer.h"
#include "log/log_core.h"
#include "log/manifest.h"
#include "log/probe.h"

namespace tier {
namespace {

/// Further up than this nothing can lie that is not durable: async syncs every 32 MiB, and a ring is at most 64 MiB.
constexpr std::uint64_t kProbeMost = 128u << 20;
/// Nor behind so much of nothing: acknowledged blocks do not vanish by the megabyte in any fault that is provided for.
constexpr std::uint64_t kZerosMost = 8u << 20;
constexpr std::uint64_t kRewriteChunk = 256u << 10;

}  // namespace

LogPosition LogCore::start_of_scan(const LogPosition& first) const {
  const EngineRecovery& found = state_->engine->recovered();
  LogPosition from = first;
  const auto consider = [&](const Mark& mark) {
    if (mark.address.value >= from.end && mark.value >= from.sequence)
      from = {mark.address.value, mark.value, mark.epoch, 0};
  };
  if (found.has_mark) consider(found.mark);
  if (found.clean) consider(found.clean_mark);
  return from;
}

Status LogCore::find_end(const LogPosition& from, LogPosition& end, std::uint64_t& mark) {
  BlockReader reader(*state_->engine);
  const std::uint64_t limit = state_->engine->recovered().end_of_segments.value;
  end = from;
  mark = from.sequence;
  Block block;
  for (;;) {
    TIER_TRY(const BlockReader::Found found, reader.next(end, limit, BlockReader::Payload::kVerify, block));
    if (found == BlockReader::Found::kDamaged) mark = std::max(mark, block.header.durable_mark);
    if (found != BlockReader::Found::kBlock) return {};
    mark = std::max(mark, block.header.durable_mark);
    state_->index.note(block.header.first_sequence, block.header.address, end.end, block.header.epoch);
    end = block.after();
  }
}

Status LogCore::examine_tail(const LogPosition& end, std::uint64_t mark) {
  BlockReader reader(*state_->engine);
  const std::uint64_t segment = state_->engine->segment_size().value;
  const std::uint64_t limit = std::min(state_->engine->recovered().end_of_segments.value, end.end + kProbeMost);
  std::uint64_t at = end.end;
  std::uint64_t cut_end = end.end;
  while (at < limit) {
    TIER_TRY(const Probe probe, probe_header(reader, at, limit, segment, kZerosMost));
    cut_end = std::max(cut_end, probe.nonzero_end);
    if (!probe.found) break;
    mark = std::max(mark, probe.header.durable_mark);
    recovery_.cut_records += probe.header.count;
    at = probe.address + sizeof probe.header + probe.header.payload_bytes;
    cut_end = std::max(cut_end, at);
  }
  if (end.sequence < mark)
    return fail(Code::kCorruption, 0,
                "records that were acknowledged cannot be read; nothing was changed: run tier log verify, restore a copy",
                "%s, sequence %llu, durable mark %llu", state_->engine->locate(Address{end.end}).c_str(),
                static_cast<unsigned long long>(end.sequence), static_cast<unsigned long long>(mark));
  recovery_.cut_bytes = cut_end - end.end;
  return {};
}

/// Writes the blocks from `mark` on again, as they are, and syncs them.
Status LogCore::write_again(const LogPosition& from, const LogPosition& end, std::uint64_t mark) {
  Engine& engine = *state_->engine;
  BlockReader reader(engine);
  LogPosition at = from;
  Block block;
  while (at.sequence < mark) {  // a mark lies between two blocks
    TIER_TRY(const BlockReader::Found found, reader.next(at, end.end, BlockReader::Payload::kSkip, block));
    if (found != BlockReader::Found::kBlock) break;
    at = block.after();
  }
  if (at.end >= end.end) return {};
  TIER_TRY(AlignedBuffer buffer, AlignedBuffer::allocate(kRewriteChunk));
  for (std::uint64_t address = at.end; address < end.end; address += kRewriteChunk) {
    const MutableByteSpan chunk = buffer.span().first(std::min(kRewriteChunk, end.end - address));
    TIER_CHECK(engine.read(Address{address}, chunk));
    TIER_CHECK(engine.write(Address{address}, chunk));
  }
  return engine.sync(Address{end.end});
}

Status LogCore::recover(const LogPosition& first) {
  Engine& engine = *state_->engine;
  const EngineRecovery& found = engine.recovered();
  const LogPosition from = start_of_scan(first);
  LogPosition end;
  std::uint64_t mark = 0;
  TIER_CHECK(find_end(from, end, mark));
  recovery_.clean = found.clean && end.end == found.clean_mark.address.value;
  recovery_.scanned_bytes = end.end - from.end;
  if (!recovery_.clean && !found.created) TIER_CHECK(examine_tail(end, TIER_BUG("log_ignore_durable_mark") ? 0 : mark));

  TIER_CHECK(engine.reclaim_tail(Address{end.end}));
  if (found.created || engine.owner_data().empty()) TIER_CHECK(store_manifest(engine, first));
  if (!recovery_.clean && !TIER_BUG("log_trust_the_cache")) TIER_CHECK(write_again(from, end, mark));
  end.epoch = engine.epoch();

  state_->set_first(first);
  state_->durable.set(end);
  state_->committed.set(end);
  recovery_.created = found.created;
  recovery_.from = Sequence{first.sequence};
  recovery_.to = Sequence{end.sequence};
  recovery_.segments = engine.statistics().segments;
  recovery_.epoch = engine.epoch();
  return start_writing(end);
}

Status LogCore::start_writing(const LogPosition& end) {
  TIER_TRY(ring_, Ring::create(static_cast<std::size_t>(options_.ring_size.value), end.sequence));
  // A quarter of the ring at most, so that no single record can hold up everybody else's.
  inline_most_ = static_cast<std::uint32_t>(
      std::min(options_.max_record.value, options_.ring_size.value / 4 - log_format::kFramePrefix));
  written_ = end;
  opened_at_sequence_ = end.sequence;
  {
    MutexLock lock(lead_mutex_);
    sync_covers_ = end.sequence;
  }
  TIER_TRY(hint_, HintWriter::open(state_->engine->file_system(), state_->engine->path()));
  {
    MutexLock lock(lead_mutex_);
    update_hint();
  }
  TIER_CHECK(syncer_.start());
  TIER_TRY(committer_, runtime_.executor->start("tier-commit", [this] { run_committer(); }));
  return {};
}

/// Read-only: nothing is cut, nothing written; the end is what can be read now, and moves with a writer.
Status LogCore::follow(const LogPosition& first) {
  state_->set_first(first);
  const LogPosition from = start_of_scan(first);
  state_->durable.set(from);
  state_->committed.set(from);
  state_->follower = std::make_unique<Follower>(*state_, from);
  TIER_CHECK(state_->follower->step());
  recovery_.clean = state_->engine->recovered().clean;
  recovery_.from = Sequence{first.sequence};
  recovery_.to = Sequence{state_->committed.sequence()};
  recovery_.scanned_bytes = state_->committed.address() - from.end;
  recovery_.segments = state_->engine->statistics().segments;
  recovery_.epoch = state_->engine->epoch();
  return {};
}

}  // namespace tier
