#include "log/follower.h"

#include <algorithm>

#include "log/hint.h"
#include "log/manifest.h"

namespace tier {
namespace {

/// Beside a writer that truncates faster than we read, so many times in a row.
constexpr int kAttempts = 64;

}  // namespace

Follower::Follower(ReadState& state, const LogPosition& from)
    : state_(state), mutex_(*state.runtime.parker), reader_(*state.engine), seen_(from), safe_(from), mark_(from.sequence) {}

Status Follower::step() {
  MutexLock lock(mutex_);
  for (int attempt = 1;; ++attempt) {
    const Status s = walk();
    // Given up between the manifest and the bytes: the manifest now says where to go on.
    if (s.code() != Code::kTruncated || attempt == kAttempts) return s;
  }
}

Status Follower::walk() {
  Engine& engine = *state_.engine;
  TIER_CHECK(engine.refresh());
  TIER_TRY(const bool alive, engine.file_system().locked(join_path(engine.path(), "LOCK")));
  writer_alive_.store(alive, std::memory_order_relaxed);  // relaxed: information
  if (engine.epoch() != epoch_) {
    // Another writer has recovered: what it cut was never durable, so walk again from what was.
    epoch_ = engine.epoch();
    seen_ = safe_;
    above_.clear();
    state_.index.clear();
  }
  LogPosition first;
  TIER_CHECK(parse_manifest(engine, first));
  if (first.sequence > state_.first.sequence()) {
    state_.set_first(first);
    state_.index.drop_below(first.end);
    if (seen_.sequence < first.sequence) {
      seen_ = safe_ = first;
      above_.clear();
    }
  }
  // The hint is read before the blocks: what it calls durable is then found by the walk.
  const auto hint = alive ? read_hint(engine.file_system(), engine.path(), engine.store_id(), engine.epoch())
                          : std::nullopt;
  if (const auto mark = engine.mark_in(Address{seen_.end}); mark.ok()) mark_ = std::max(mark_, mark->value);

  reader_.forget();
  Block block;
  const std::uint64_t limit = engine.tails().allocated.value;
  for (;;) {
    TIER_TRY(const BlockReader::Found found, reader_.next(seen_, limit, BlockReader::Payload::kVerify, block));
    if (found != BlockReader::Found::kBlock) break;  // the end, or a block that is being written
    state_.index.note(block.header.first_sequence, block.header.address, seen_.end, block.header.epoch);
    mark_ = std::max(mark_, block.header.durable_mark);
    seen_ = block.after();
    above_.push_back(seen_);
  }
  if (hint) mark_ = std::max(mark_, hint->durable);
  state_.committed.set(seen_);
  const std::uint64_t durable = alive ? std::min(mark_, seen_.sequence) : seen_.sequence;
  if (durable > state_.durable.sequence()) state_.durable.set({seen_.end, durable, 0, 0});
  for (; !above_.empty() && above_.front().sequence <= durable; above_.pop_front()) safe_ = above_.front();
  if (!alive && mark_ > seen_.sequence)
    return fail(Code::kCorruption, 0, "records below the durable mark cannot be read; see tier log verify",
                "%s, sequence %llu, durable mark %llu", engine.locate(Address{seen_.end}).c_str(),
                static_cast<unsigned long long>(seen_.sequence), static_cast<unsigned long long>(mark_));
  return {};
}

}  // namespace tier
