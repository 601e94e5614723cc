/// Blocks, group commit and the background task.
///
/// Life of a group commit: whoever leads takes committing_, turns the published prefix into blocks (write_block), gives
/// committing_ back, and syncs what was committed by then; meanwhile the next leader may commit, and start the second sync.
/// Syncs are acknowledged in the order they began (L6).
#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "log/log_core.h"

namespace tier {
namespace {

using log_format::BlockHeader;

constexpr std::uint32_t kBlockBytes = 256u << 10;      // what one block takes from the ring at most, a large record aside
constexpr std::uint64_t kMarkEvery = 8u << 20;         // recovery scans about this much
constexpr std::uint64_t kUnsyncedMost = 32u << 20;     // kAsync: a sync starts at the latest
constexpr Duration kIdle = 100ms;                      // then an idle log makes durable what is left, and its mark
constexpr Duration kAsyncWrite = 1ms;                  // kAsync: what has arrived is written out after this
constexpr Duration kUnpublished = 50us;                // a producer is between claim and publish
constexpr Duration kDiskFullRetry = 50ms;

}  // namespace

Status LogCore::commit_arrived() {
  const std::uint64_t target = ring_->claimed();
  const auto most = static_cast<std::uint32_t>(std::min<std::uint64_t>(kBlockBytes, options_.segment_size.value / 4));
  while (written_.sequence < target) {
    const Ring::Gathered gathered = pending_lease_.active() ? pending_ : ring_->gather(most);
    if (gathered.records == 0) break;  // claimed, not published yet
    const Status s = write_block(gathered);
    commit_trouble_.store(s.code(), std::memory_order_relaxed);  // relaxed: for messages only
    if (s.ok()) continue;
    // Want of space heals: the ring keeps the records, the same block is tried again. Anything else is for good.
    if (s.code() != Code::kDiskFull && s.code() != Code::kTimedOut) {
      poison(s);
      return poisoned();
    }
    return s;
  }
  return {};
}

Status LogCore::write_block(const Ring::Gathered& gathered) {
  const ByteSpan ring_bytes{ring_->gathered_bytes(), gathered.bytes};
  const std::span<const ByteSpan> payload =
      gathered.stub != nullptr ? gathered.stub->parts : std::span<const ByteSpan>(&ring_bytes, 1);
  const std::uint32_t payload_bytes = gathered.stub != nullptr ? gathered.stub->bytes : gathered.bytes;

  if (!pending_lease_.active()) {
    // A page that a sync is writing out now is left alone: the block starts on the next one.
    // [C1] acquire pairs with the stores in try_lead() and run_sync().
    const bool new_page = options_.align == BlockAlign::kPage || syncing_.load(std::memory_order_acquire);
    TIER_TRY(pending_lease_, engine().claim(Bytes{sizeof(BlockHeader) + payload_bytes},
                                            {.alignment = new_page ? log_format::kPage : log_format::kBlockAlign,
                                             .one_segment = true}));
    pending_ = gathered;
    std::uint32_t crc = 0;
    for (const ByteSpan& part : payload) crc = crc32c_extend(crc, part);
    BlockHeader& h = pending_header_;
    h = BlockHeader{};
    h.magic = log_format::kBlockMagic;
    h.version = log_format::kVersion;
    h.kind = log_format::BlockKind::kRecords;
    h.epoch = written_.epoch;
    h.store_id = engine().store_id();
    h.address = pending_lease_.address().value;
    h.first_sequence = written_.sequence;
    h.durable_mark = TIER_BUG("log_mark_runs_ahead") ? written_.sequence + gathered.records : state_->durable.sequence();
    h.predecessor = written_.end;
    h.predecessor_crc = written_.crc;
    h.count = gathered.records;
    h.payload_bytes = payload_bytes;
    h.payload_crc = crc32c_mask(crc);
    h.wall_ns = runtime_.clock->wall_ns();
    log_format::seal_header(h);
  }

  if (TIER_BUG("log_release_before_write")) ring_->release(gathered);
  const ByteSpan header{reinterpret_cast<const std::byte*>(&pending_header_), sizeof pending_header_};
  if (gathered.stub == nullptr) {
    const ByteSpan parts[] = {header, ring_bytes};
    TIER_CHECK(pending_lease_.write(Bytes{0}, parts));
  } else {
    const ByteSpan first[] = {header};
    TIER_CHECK(pending_lease_.write(Bytes{0}, first));
    TIER_CHECK(pending_lease_.write(Bytes{sizeof(BlockHeader)}, payload));
  }
  pending_lease_.commit();

  state_->index.note(written_.sequence, pending_header_.address, written_.end, pending_header_.epoch);
  written_ = {pending_header_.address + sizeof(BlockHeader) + payload_bytes, written_.sequence + gathered.records,
              written_.epoch, pending_header_.header_crc};
  state_->committed.set(written_);
  if (TIER_BUG("log_mark_what_is_written")) persist_mark(written_);
  if (!TIER_BUG("log_release_before_write")) ring_->release(gathered);
  // relaxed: statistics.
  blocks_.fetch_add(1, std::memory_order_relaxed);
  block_bytes_.fetch_add(sizeof(BlockHeader) + payload_bytes, std::memory_order_relaxed);
  payload_bytes_.fetch_add(payload_bytes - std::uint64_t{gathered.records} * log_format::kFramePrefix,
                           std::memory_order_relaxed);
  space_.signal();
  {
    MutexLock lock(lead_mutex_);
    update_hint();
  }
  state_->progress.signal();
  return {};
}

Result<LogCore::Lead> LogCore::try_lead(std::uint64_t end, bool sync) {
  {
    MutexLock lock(lead_mutex_);
    if (!poison_.ok()) return poison_;
    if (committing_) return Lead::kOthersLead;
    if (sync && (syncs_begun_ - syncs_ended_ == syncs_.size() || sync_covers_ >= end)) return Lead::kOthersLead;
    committing_ = true;
  }
  const Status committed = commit_arrived();
  Sync* mine = nullptr;
  bool covered = false;
  {
    MutexLock lock(lead_mutex_);
    committing_ = false;
    if (sync && poison_.ok() && written_.sequence > sync_covers_) {
      mine = &syncs_[syncs_begun_++ % syncs_.size()];
      *mine = {written_, false};
      sync_covers_ = written_.sequence;
      syncing_.store(true, std::memory_order_release);  // [C1]
    }
    covered = sync ? sync_covers_ >= end : written_.sequence >= end;
  }
  state_->progress.signal();
  if (mine != nullptr) TIER_CHECK(run_sync(*mine));
  TIER_CHECK(committed);
  return covered || mine != nullptr ? Lead::kLed : Lead::kNothingNew;
}

Status LogCore::run_sync(Sync& sync) {
  if (TIER_BUG("log_acknowledge_before_sync")) acknowledge(sync.covers);
  const Status s = TIER_BUG("log_skip_sync") ? Status{} : engine().sync(Address{sync.covers.end});
  group_syncs_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a statistic
  if (!s.ok() && !TIER_BUG("log_ignore_sync_error")) poison(s);
  LogPosition durable;
  bool moved = false;
  {
    MutexLock lock(lead_mutex_);
    sync.finished = true;
    if (TIER_BUG("log_acknowledge_written")) sync.covers = written_;
    while (syncs_ended_ != syncs_begun_ && syncs_[syncs_ended_ % syncs_.size()].finished) {
      durable = syncs_[syncs_ended_++ % syncs_.size()].covers;
      moved = poison_.ok();
    }
    syncing_.store(syncs_ended_ != syncs_begun_, std::memory_order_release);  // [C1]
  }
  if (!moved) {
    state_->progress.signal();
    return poisoned();
  }
  acknowledge(durable);
  return {};
}

/// `durable` moved: tell everybody.
void LogCore::acknowledge(const LogPosition& durable) {
  DurableOp* satisfied = nullptr;
  bool mark = false;
  {
    MutexLock lock(lead_mutex_);
    // Two syncs may have finished together; the later prefix may be acknowledged first.
    if (durable.sequence > state_->durable.sequence()) state_->durable.set(durable);
    for (DurableOp** link = &waiting_; *link != nullptr;) {
      DurableOp* op = *link;
      if (op->sequence.value <= durable.sequence) {
        *link = op->next;
        op->next = satisfied;
        satisfied = op;
      } else {
        link = &op->next;
      }
    }
    update_hint();
    const std::uint64_t every = std::min(kMarkEvery, options_.segment_size.value / 4);
    mark = durable.end >= marked_.end + every || durable.end / options_.segment_size.value !=
                                                     marked_.end / options_.segment_size.value;
  }
  state_->progress.signal();
  complete_waiting(satisfied, {});
  if (mark) persist_mark(durable);
}

/// Notes a durable point between two blocks, from which recovery may start; durable itself with the segment's next sync.
void LogCore::persist_mark(const LogPosition& durable) {
  if (durable.end % options_.segment_size.value == 0) return;  // belongs to a segment that may not exist yet
  {
    MutexLock lock(lead_mutex_);
    if (durable.end <= marked_.end && marked_.sequence != 0) return;
    marked_ = durable;
  }
  if (const Status s = engine().put_mark({Address{durable.end}, durable.sequence, durable.epoch});
      !s.ok() && s.code() != Code::kDiskFull && s.code() != Code::kTruncated)
    poison(s);
}

Status LogCore::make_durable(std::uint64_t end, bool lead, Deadline until, bool closing) {
  for (;;) {
    const std::uint32_t ticket = state_->progress.ticket();
    if (state_->durable.sequence() >= end) return {};
    TIER_CHECK(poisoned());
    Lead led = Lead::kOthersLead;
    if (lead) {
      const auto result = try_lead(end, true);
      if (!result.ok()) return state_->durable.sequence() >= end ? Status{} : result.status();
      led = *result;
      if (led == Lead::kLed) continue;
    } else if (commit_trouble_.load(std::memory_order_relaxed) == Code::kDiskFull) {  // relaxed: rechecked each turn
      return fail(Code::kDiskFull, 0, "the disk is full; free some space, the log then goes on by itself", "log '%s'",
                  engine().path().c_str());
    }
    if (!closing && stopping_.load(std::memory_order_acquire)) return refusal();  // [C4]
    if (runtime_.clock->passed(until))
      return fail(Code::kTimedOut, 0, "not durable yet; wait again", "log '%s', durable %llu, wanted %llu",
                  engine().path().c_str(), static_cast<unsigned long long>(state_->durable.sequence()),
                  static_cast<unsigned long long>(end));
    if (led == Lead::kNothingNew)
      runtime_.parker->sleep(kUnpublished);
    else
      state_->progress.wait(ticket, until);
  }
}

Status LogCore::flush() {
  if (read_only_) return refusal();
  return make_durable(ring_->claimed(), true, runtime_.clock->in(options_.queue_full_timeout));
}

Status LogCore::wait_durable(Sequence end, Deadline until) {
  if (read_only_) return refusal();
  if (end.value > ring_->claimed())
    return fail(Code::kInvalid, 0, "that sequence was not handed out yet", "wanted %llu, claimed %llu",
                static_cast<unsigned long long>(end.value), static_cast<unsigned long long>(ring_->claimed()));
  return make_durable(end.value, options_.durability != Durability::kBatch, until);
}

void LogCore::on_durable(DurableOp& op) {
  Status status = read_only_ ? refusal() : Status{};
  op.next = nullptr;
  if (status.ok()) {
    MutexLock lock(lead_mutex_);
    if (state_->durable.sequence() < op.sequence.value) {
      status = poison_;
      if (status.ok() && stopping_.load(std::memory_order_acquire))  // [C4] close() answers only those before it
        status = closed_before_durable();
      if (status.ok()) {
        op.next = waiting_;
        waiting_ = &op;
        if (options_.durability != Durability::kBatch) want(kWantSync);
        return;  // from here on it may be done and gone
      }
    }
  }
  op.done(op, status);
}

Status LogCore::closed_before_durable() {
  return Status(Code::kClosing, "the log was closed before the record was durable");
}

void LogCore::complete_waiting(DurableOp* list, Status status) {
  while (list != nullptr) {
    DurableOp* op = list;
    list = op->next;  // before done(): the operation is its owner's again
    op->next = nullptr;
    op->done(*op, status);
  }
}

void LogCore::poison(Status cause) noexcept {
  DurableOp* waiting = nullptr;
  Status status;
  {
    MutexLock lock(lead_mutex_);
    if (poison_.ok())
      poison_ = cause.as(Code::kPoisoned, "a write or sync failed, nothing more is acknowledged; reopen the log");
    status = poison_;
    std::swap(waiting, waiting_);
  }
  ring_->freeze();
  space_.signal();
  state_->progress.signal();
  wake_committer();
  complete_waiting(waiting, status);
}

Status LogCore::poisoned() const {
  MutexLock lock(lead_mutex_);
  return poison_;
}

void LogCore::update_hint() {
  if (hint_ == nullptr) return;
  HintPage page{};
  page.store_id = engine().store_id();
  page.epoch = engine().epoch();
  page.committed = state_->committed.sequence();
  page.durable = state_->durable.sequence();
  page.durable_end = state_->durable.address();
  hint_->write(page);
}

// The background task ---------------------------------------------------------------------------------------------------

void LogCore::want(std::uint32_t what) noexcept {
  // [C2] release: what is wanted is visible to the committer that takes the bit.
  wanted_.fetch_or(what, std::memory_order_release);
  wake_committer();
}

void LogCore::run_committer() {
  ring_->populate();
  Deadline due = Deadline::never();    // when what is outstanding is written (and synced)
  Deadline quiet = Deadline::never();  // when an idle log tidies up
  std::uint64_t seen = state_->durable.sequence();
  while (!stopping_.load(std::memory_order_acquire)) {
    const std::uint32_t ticket = committer_event_.ticket();
    const std::uint32_t progress = state_->progress.ticket();
    const std::uint32_t wanted = wanted_.exchange(0, std::memory_order_acquire);  // [C2]
    if (!poisoned().ok()) {
      committer_event_.wait(ticket, Deadline::never());
      continue;
    }
    const std::uint64_t claimed = ring_->claimed();
    const std::uint64_t durable = state_->durable.sequence();
    if (claimed != seen) {
      seen = claimed;
      quiet = runtime_.clock->in(kIdle);
    }
    const bool unwritten = state_->committed.sequence() < claimed;

    // Everything written, nobody asks: tidy up after a while, then sleep until the next claim.
    if (!unwritten && wanted == 0 && (durable == claimed || options_.durability == Durability::kAsync)) {
      due = Deadline::never();
      if (quiet != Deadline::never() && runtime_.clock->passed(quiet)) {
        quiet = Deadline::never();
        tidy_up();
        continue;
      }
      ring_->arm(1, 1);
      if (ring_->claimed() != claimed) continue;  // R5
      committer_event_.wait(ticket, quiet);
      continue;
    }

    const Trigger trigger = this->trigger();
    if (due == Deadline::never()) due = runtime_.clock->in(trigger.interval);
    const Ring::Ahead ahead = ring_->ahead();
    const bool now = wanted != 0 || ahead.records >= trigger.records || ahead.bytes >= trigger.bytes ||
                     runtime_.clock->passed(due);
    if (!now) {
      ring_->arm(trigger.records, trigger.bytes);
      const Ring::Ahead again = ring_->ahead();  // R5
      if (again.records < trigger.records && again.bytes < trigger.bytes)
        committer_event_.wait(ticket, due);
      continue;
    }
    due = runtime_.clock->in(trigger.interval);  // for what arrives from here on

    const bool sync = options_.durability != Durability::kAsync || (wanted & kWantSync) != 0;
    const auto led = try_lead(claimed, sync);
    if (!led.ok()) {
      if (led.code() == Code::kDiskFull || led.code() == Code::kTimedOut) {
        committer_event_.wait(ticket, runtime_.clock->in(kDiskFullRetry));
        wanted_.fetch_or(wanted | kWantCommit, std::memory_order_relaxed);  // relaxed: only this task takes them
      }
      continue;
    }
    if (*led == Lead::kOthersLead) {
      state_->progress.wait(progress, due);
      wanted_.fetch_or(wanted & kWantSync, std::memory_order_relaxed);  // relaxed: likewise
    } else if (*led == Lead::kNothingNew) {
      committer_event_.wait(ticket, runtime_.clock->in(kUnpublished));
    }
    if (!sync) sync_behind();
  }
}

LogCore::Trigger LogCore::trigger() const noexcept {
  if (options_.durability == Durability::kBatch)
    return {options_.batch_records, static_cast<std::uint32_t>(options_.batch_bytes.value), options_.batch_interval};
  // kAsync: large blocks, soon. kSync: producers lead themselves; this task only helps a full ring.
  return {ring_->slots() / 8, ring_->size() / 8, options_.durability == Durability::kAsync ? kAsyncWrite : kIdle};
}

/// kAsync: durability follows at a distance, on another task, so that writing goes on.
void LogCore::sync_behind() {
  const std::uint64_t most = std::min(kUnsyncedMost, options_.segment_size.value);
  if (state_->committed.address() - state_->durable.address() >= most) syncer_.submit(sync_job_);
}

void LogCore::SyncJob::run() {
  // A failure has poisoned the log and told everybody; want of space is the committer's to repeat.
  static_cast<void>(log.make_durable(log.state_->committed.sequence(), true, log.runtime_.clock->in(kIdle)));
}

/// An idle log leaves nothing to guess: all durable, and a mark that says so.
void LogCore::tidy_up() {
  const std::uint64_t claimed = ring_->claimed();
  if (state_->durable.sequence() < claimed && !make_durable(claimed, true, runtime_.clock->in(kIdle)).ok()) return;
  Sync* mine = nullptr;
  {
    MutexLock lock(lead_mutex_);
    if (committing_ || syncs_ended_ != syncs_begun_ || written_.sequence != state_->durable.sequence() ||
        written_.sequence == marked_.sequence)
      return;
    // A group commit that covers nothing new: the next block keeps off the page that this one writes out.
    mine = &syncs_[syncs_begun_++ % syncs_.size()];
    *mine = {written_, false};
    syncing_.store(true, std::memory_order_release);  // [C1]
  }
  persist_mark(mine->covers);
  static_cast<void>(run_sync(*mine));  // a failure has poisoned the log and told everybody
}

}  // namespace tier
