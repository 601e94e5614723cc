/// The worker's side of the tail: segments are created and space is reserved ahead of it.
///
/// Shape       allocated ... limit (space is secured) ... segments_end_ (files exist); refill_at_ lies before the limit.
/// Invariants  (P1) the limit is raised only over space that is registered, open and reserved (C1).
///             (P2) a run that fails answers every waiter that asked before it ended, and forgets what they wanted: the next
///                  one that asks tries again, so a full disk heals.
#include <algorithm>
#include <memory>
#include <new>

#include "base/assert.h"
#include "engine/engine_core.h"

namespace tier {
namespace {

constexpr std::uint64_t kSpaceUnit = 4096;
constexpr std::size_t kZeroBytes = 1 << 20;
alignas(4096) constexpr std::byte zero_bytes[kZeroBytes] = {};

}  // namespace

void EngineCore::ask_refill() noexcept {
  // relaxed: whoever takes the mark submits; a lost race only means that somebody else does.
  if (refill_at_.exchange(~std::uint64_t{0}, std::memory_order_relaxed) != ~std::uint64_t{0})
    worker_.submit(prepare_job_);
}

void EngineCore::prepare() {
  std::uint64_t wanted = 0;
  {
    MutexLock lock(prepare_mutex_);
    ++runs_begun_;
    wanted = wanted_;
  }
  const Status s = checked(grow(wanted));
  {
    MutexLock lock(prepare_mutex_);
    runs_ended_ = runs_begun_;
    last_run_ = s;
    if (!s.ok() || tail_.limit() >= wanted_) wanted_ = 0;  // P2
  }
  prepared_.signal();
  // relaxed: as in claim_range(); a claim that passed the mark before it was set is seen here.
  if (s.ok() && tail_.allocated() >= refill_at_.load(std::memory_order_relaxed)) ask_refill();
}

Status EngineCore::wait_for_space(std::uint64_t end, Deadline until) {
  if (end >= Address::kMax || (end - 1) >> segment_shift_ >= kSegmentsMax) {
    return fail(Code::kTooLarge, 0, "the address space is used up; use larger segments or another store",
                "store '%s' up to %llu", path_.c_str(), static_cast<unsigned long long>(end));
  }
  claim_waits_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a statistic
  for (;;) {
    std::uint64_t run = 0;
    {
      MutexLock lock(prepare_mutex_);
      wanted_ = std::max(wanted_, end);
      run = runs_begun_ + 1;
    }
    if (!worker_.submit(prepare_job_)) return Status(Code::kClosing, "the engine is being closed; open it again");
    for (;;) {
      const std::uint32_t ticket = prepared_.ticket();
      if (tail_.limit() >= end) return {};
      TIER_CHECK(check_writable());
      {
        MutexLock lock(prepare_mutex_);
        if (runs_ended_ >= run) {
          if (!last_run_.ok()) return last_run_;
          break;
        }
      }
      if (runtime_.clock->passed(until)) {
        return fail(Code::kTimedOut, 0, "a segment was not ready in time; wait longer or check the disk", "file '%s'",
                    store_->name_of((end - 1) >> segment_shift_).c_str());
      }
      prepared_.wait(ticket, until);
    }
  }
}

Status EngineCore::grow(std::uint64_t wanted) {
  MutexLock lock(grow_);
  TIER_CHECK(check_writable());  // under the lock: a cut that failed halfway leaves a table that nothing may grow on
  table_.sweep();
  const std::uint64_t limit = tail_.limit();
  if (wanted > limit && store_->file_system().capabilities().has(Capability::kAllocate)) {
    // Refused before a file is made for it, when it cannot fit anyway.
    const auto space = store_->file_system().space();
    if (space.ok() && wanted - limit > space->available) {
      return fail(Code::kDiskFull, 0, "the file system is full; free some space", "store '%s': %llu bytes more, %llu left",
                  path_.c_str(), static_cast<unsigned long long>(wanted - limit),
                  static_cast<unsigned long long>(space->available));
    }
  }
  TIER_CHECK(extend(wanted, wanted));
  // What somebody waits for is there. Want of space further ahead is nobody's failure yet: the claim that needs it asks again.
  const Status ahead = grow_ahead();
  if (ahead.code() == Code::kDiskFull) {
    refill_at_.store(~std::uint64_t{0}, std::memory_order_relaxed);  // relaxed: see claim_range()
    return {};
  }
  TIER_CHECK(ahead);
  set_refill();
  return {};
}

Status EngineCore::grow_ahead() {
  const std::uint64_t allocated = tail_.allocated();
  const std::uint64_t tail_end = align_up(allocated, segment_size_);
  if (options_.prepared_segments != 0 && tail_end - allocated <= segment_size_ / 5) {
    const std::uint64_t end = tail_end + options_.prepared_segments * segment_size_;
    while (segments_end_ < end && segments_end_ >> segment_shift_ < kSegmentsMax) {
      TIER_CHECK(add_segment(segments_end_ >> segment_shift_, std::min(segment_size_, options_.allocate_ahead.value), 0));
    }
  }
  return extend(std::min(allocated + options_.allocate_ahead.value, segments_end_), 0);
}

/// Raises the limit to `target`; of that, space up to `wanted` is enough where the disk has no more.
Status EngineCore::extend(std::uint64_t target, std::uint64_t wanted) {
  for (std::uint64_t limit = tail_.limit(); limit < target;) {
    const std::uint64_t start = align_down(limit, segment_size_);
    const std::uint64_t to = std::min(segment_size_, target - start);
    const std::uint64_t least = wanted > start ? std::min(segment_size_, wanted - start) : 0;
    if (start == segments_end_) {
      const std::uint64_t first = std::min(segment_size_, std::max(to, options_.allocate_ahead.value));
      TIER_CHECK(add_segment(start >> segment_shift_, first, least));
    }
    Segment* segment = table_.find(start >> segment_shift_);  // the tail's segments are removed only under grow_
    TIER_ASSERT(segment != nullptr && segment->file() != nullptr);
    if (start + segment->reserved <= limit) TIER_CHECK(secure(*segment, to, least));
    limit = start + segment->reserved;
    tail_.raise_limit(limit);  // P1
    prepared_.signal();
  }
  return {};
}

Status EngineCore::add_segment(std::uint64_t index, std::uint64_t reserve, std::uint64_t least) {
  reserve = std::min(segment_size_, align_up(reserve, kSpaceUnit));
  least = std::min(segment_size_, align_up(least, kSpaceUnit));
  const std::uint64_t salt = runtime_.random->next();
  Pinned segment(new (std::nothrow) Segment(index));
  if (segment.segment == nullptr)
    return Status(Code::kOutOfMemory, "cannot allocate a segment; lower the memory options");
  const auto create = [&](std::uint64_t bytes) -> Status {
    TIER_TRY(auto file, store_->create(index, epoch(), salt, bytes));
    segment->set_file(std::move(file));
    segment->reserved = bytes;
    return {};
  };
  Status s = create(reserve);
  if (s.code() == Code::kDiskFull && least != 0 && least < reserve) s = create(least);
  TIER_CHECK(s);
  segment->marks.loaded = true;  // a new file has none
  if (options_.zero_ahead) TIER_CHECK(write_zeros(*segment.segment, 0, segment->reserved));
  segment->acquire();  // the table's own
  TIER_CHECK(table_.insert(segment.segment));
  segments_end_ = (index + 1) << segment_shift_;
  return {};
}

Status EngineCore::secure(Segment& segment, std::uint64_t to, std::uint64_t least) {
  const std::uint64_t from = segment.reserved;
  to = std::min(segment_size_, align_up(to, kSpaceUnit));
  least = std::min(segment_size_, align_up(least, kSpaceUnit));
  Status s = segment.file()->reserve(from, to - from);
  if (s.code() == Code::kDiskFull && least > from && least < to) {
    to = least;
    s = segment.file()->reserve(from, to - from);
  }
  if (!s.ok()) return s;
  segment.metadata_dirty.store(true, std::memory_order_release);  // [D3] the next sync of the file covers it
  TIER_POINT("engine/grow/reserved");
  if (options_.zero_ahead) {
    TIER_CHECK(write_zeros(segment, from, to));
  } else if (segment.file()->write_through()) {
    // No later sync of this file is asked for, so the space is made durable here.
    if (const Status synced = sync_segment(segment); !synced.ok()) return poison(synced);
  } else {
    mark_dirty(segment);  // what is allocated there and never written must read zero after a power cut, too
  }
  segment.reserved = to;
  return {};
}

Status EngineCore::write_zeros(Segment& segment, std::uint64_t from, std::uint64_t to) {
  while (from < to) {
    const ByteSpan part(zero_bytes, std::min<std::uint64_t>(kZeroBytes, to - from));
    TIER_CHECK(segment.file()->write(from, std::span(&part, 1)));
    from += part.size();
    prepared_bytes_.fetch_add(part.size(), std::memory_order_relaxed);  // relaxed: a statistic
  }
  if (const Status s = sync_segment(segment); !s.ok()) return poison(s);
  TIER_POINT("engine/grow/zeroed");
  return {};
}

void EngineCore::set_refill() noexcept {
  const std::uint64_t allocated = tail_.allocated();
  const std::uint64_t limit = tail_.limit();
  std::uint64_t at = ~std::uint64_t{0};
  if (limit < segments_end_) at = limit - std::min(limit, options_.allocate_ahead.value / 2);
  if (options_.prepared_segments != 0 && segments_end_ >> segment_shift_ < kSegmentsMax) {
    // Where the last fifth begins: of this segment while too few are prepared behind it, else of the next one.
    const std::uint64_t tail_end = align_up(allocated, segment_size_);
    const bool enough = segments_end_ >= tail_end + options_.prepared_segments * segment_size_;
    at = std::min(at, tail_end + (enough ? segment_size_ : 0) - std::min(tail_end, segment_size_ / 5));
  }
  refill_at_.store(at, std::memory_order_relaxed);  // relaxed: see claim_range()
}

}  // namespace tier
