/// EngineCore: the engine over a SegmentStore.
///
/// Shape       Tail (claims) | SegmentTable (segments) | one worker that creates and reserves ahead | manifest in memory.
/// Invariants  (N1)-(N7) of tier/engine.h.
///             (C1) below tail_.limit() every segment from begin on is registered, open and has its space reserved; so what a
///                  claim got is written without looking at the worker.
///             (C2) a claimed range lies at or above durable until it is committed, so neither reclaim_head (<= durable) nor
///                  reclaim_tail (no append in flight) can remove its segment: appends need no guard and no reference.
///             (C3) everybody else finds segments under an epoch guard; before I/O the guard is exchanged for a reference.
/// Threads     any. Lock order: admin_ > managed_sync_ > sync_gate_ > grow_ > open_ > mark_ ; prepare_mutex_, poison_mutex_
///             and the table's are leaves.
/// Files       engine_open.cc, engine_append.cc (claims), engine_io.cc (read, write, view), engine_sync.cc, engine_grow.cc
///             (the worker), engine_reclaim.cc, engine_marks.cc, engine_core.cc (the rest).
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/worker.h"
#include "engine/format.h"
#include "engine/segment.h"
#include "engine/segment_store.h"
#include "engine/segment_table.h"
#include "engine/tail.h"
#include "tier/engine.h"

namespace tier {

class EngineCore final : public Engine {
 public:
  EngineCore(std::unique_ptr<SegmentStore> store, std::string path, const EngineOptions& options, Runtime& runtime);
  ~EngineCore() override;
  /// Attaches and recovers; once, before anything else.
  Status start();

  Result<Address> allocate(Bytes n) override;
  Result<Address> append(ByteSpan bytes) override;
  Result<AppendLease> claim(Bytes n, const ClaimOptions& options) override;
  Status write(Address at, ByteSpan bytes) override;
  Status read(Address at, MutableByteSpan into) override;
  Result<View> view(Address at, Bytes n) override;
  Status sync(Address up_to) override;
  Status sync() override { return sync(Address{Address::kMax}); }
  Tails tails() const noexcept override;
  Status reclaim_head(Address to) override;
  Status reclaim_tail(Address to) override;
  Status put_mark(const Mark& mark) override;
  Result<Mark> mark_in(Address at) override;
  Status put_owner_data(ByteSpan bytes) override;
  ByteSpan owner_data() const noexcept override;
  Status close(std::uint64_t value) override;
  Status refresh() override;
  const EngineRecovery& recovered() const noexcept override { return recovered_; }
  Bytes segment_size() const noexcept override { return Bytes{segment_size_}; }
  std::uint32_t epoch() const noexcept override { return epoch_.load(std::memory_order_relaxed); }  // relaxed: a number
  std::uint64_t store_id() const noexcept override { return store_id_; }
  EngineStatistics statistics() const override;
  FileSystem& file_system() noexcept override { return store_->file_system(); }
  const std::string& path() const noexcept override { return path_; }
  std::string locate(Address at) const override;

  // What leases and views call.
  Status lease_write(std::uint64_t at, std::span<const ByteSpan> parts);
  void lease_commit(std::uint64_t ticket, std::uint64_t end) noexcept;

 private:
  /// Why a verb is refused; bits, 0: everything is answered.
  enum Refusal : std::uint32_t { kRecovering = 1, kReadOnlyOpen = 2, kPoisonedState = 4, kClosedState = 8 };
  /// One reference on a segment.
  struct Pinned {
    Segment* segment = nullptr;
    Pinned() noexcept = default;
    explicit Pinned(Segment* s) noexcept : segment(s) {}
    Pinned(Pinned&& other) noexcept : segment(std::exchange(other.segment, nullptr)) {}
    Pinned& operator=(Pinned&& other) noexcept {
      std::swap(segment, other.segment);
      return *this;
    }
    ~Pinned() {
      if (segment != nullptr) segment->release();
    }
    Segment* operator->() const noexcept { return segment; }
  };

  // engine_core.cc
  /// A refusal of verbs that change something.
  Status check_writable() const {
    const std::uint32_t r = refusal_.load(std::memory_order_acquire);  // [C1] pairs with the release that ends recovery
    return r == 0 ? Status{} : refused(r);
  }
  Status check_open() const {
    const std::uint32_t r = refusal_.load(std::memory_order_acquire);  // [C1]
    return (r & kClosedState) == 0 ? Status{} : refused(r);
  }
  [[gnu::cold]] Status refused(std::uint32_t refusal) const;
  /// N4. Returns `cause`.
  [[gnu::cold]] Status poison(Status cause);
  /// Poisons if `s` says that a sync failed inside the store.
  Status checked(Status s) { return s.code() == Code::kPoisoned ? poison(s) : s; }
  /// Changes the manifest durably; admin_ is held.
  template <class Change>
  Status update_manifest(Change change) {
    Manifest next = manifest_;
    change(next);
    TIER_CHECK(checked(store_->swap_manifest(manifest_.generation, next)));
    manifest_ = next;
    return {};
  }
  /// Waits until no claim is out; the tail is frozen.
  bool wait_quiet(Deadline until) noexcept;
  void release_store() noexcept;
  Deadline claim_deadline(Deadline until) const noexcept;

  // engine_open.cc
  /// What the directory holds, judged by the manifest.
  struct Survey {
    std::uint64_t first = 0;  ///< number of the first segment
    std::uint64_t end = 0;    ///< address of the end of the last one
    std::uint64_t tail = 0;   ///< as far as it is known
    bool has_mark = false;
    Mark mark;
    std::vector<Pinned> opened;  ///< the newest segments
  };
  Result<Survey> survey_segments();
  Result<Survey> survey_once();
  Status adopt(Survey& survey);
  Status missing_segment(std::uint64_t index) const;
  Status later_epoch(std::uint64_t index, std::uint32_t epoch) const;
  Status refresh_begin();
  void place_tails(std::uint64_t tail) noexcept;

  // engine_grow.cc
  struct PrepareJob final : Worker::Job {
    explicit PrepareJob(EngineCore& e) noexcept : engine(e) {}
    void run() override { engine.prepare(); }
    EngineCore& engine;
  };
  void prepare();
  Status grow(std::uint64_t wanted);
  Status grow_ahead() TIER_REQUIRES(grow_);
  Status extend(std::uint64_t target, std::uint64_t wanted) TIER_REQUIRES(grow_);
  Status add_segment(std::uint64_t index, std::uint64_t reserve, std::uint64_t least) TIER_REQUIRES(grow_);
  Status secure(Segment& segment, std::uint64_t to, std::uint64_t least) TIER_REQUIRES(grow_);
  Status write_zeros(Segment& segment, std::uint64_t from, std::uint64_t to);
  void set_refill() noexcept TIER_REQUIRES(grow_);
  Status wait_for_space(std::uint64_t end, Deadline until);
  void ask_refill() noexcept;

  // engine_append.cc
  Status claim_range(std::uint64_t n, const ClaimOptions& options, ClaimedRange& range);
  [[gnu::noinline]] Status wait_to_claim(ClaimOutcome outcome, std::uint64_t end, Deadline until);

  // engine_io.cc
  /// Under a guard or for a claimed range: nullptr if it is not there or not open.
  Segment* resident(std::uint64_t at) const noexcept { return table_.find(at >> segment_shift_); }
  /// The segment that holds `at`, open, with a reference.
  Result<Pinned> pin(std::uint64_t index);
  Status open_segment(Segment& segment);
  Status write_segment(Segment& segment, std::uint64_t offset, std::span<const ByteSpan> parts);
  Status check_range(std::uint64_t at, std::uint64_t n) const;
  std::uint64_t readable_end() const noexcept;

  // engine_sync.cc
  void mark_dirty(Segment& segment) noexcept;
  Status sync_once(std::uint64_t up_to);
  Status sync_files(std::vector<Pinned>& dirty, std::uint64_t target);
  void take_dirty(std::vector<Pinned>& dirty);
  Status sync_segment(Segment& segment);

  // engine_reclaim.cc
  Status cut_tail(std::uint64_t to) TIER_REQUIRES(grow_);
  Status erase_above(std::uint64_t to);
  Status remove_segments_below(std::uint64_t index);

  // engine_marks.cc
  Status load_marks(Segment& segment) TIER_REQUIRES(mark_);
  Status write_mark_to(Segment& segment, const Mark& mark);
  Status drop_marks_above(Segment& segment, std::uint64_t to);
  bool believable(const StoredMark& mark, std::uint64_t index) const noexcept;
  Result<Pinned> pin_mark_home(std::uint64_t address);

  const std::unique_ptr<SegmentStore> store_;
  const std::string path_;
  const EngineOptions options_;
  const std::string kind_;
  Runtime& runtime_;
  const bool durable_store_;
  std::uint64_t store_id_ = 0;  ///< with segment_size_, set by start() and never again
  std::uint64_t segment_size_ = 0;
  unsigned segment_shift_ = 0;

  alignas(kCacheLine) std::atomic<std::uint32_t> refusal_{kRecovering};
  std::atomic<std::uint32_t> epoch_{0};
  std::atomic<std::uint64_t> begin_{0};
  std::atomic<std::uint64_t> refill_at_{~std::uint64_t{0}};  ///< a claim that ends here or later wakes the worker
  std::atomic<std::uint64_t> read_limit_{0};                 ///< end of what is read while recovering or read-only
  alignas(kCacheLine) std::atomic<std::uint64_t> durable_{0};
  BasicTail<> tail_;
  std::atomic<std::uint32_t> publish_waiters_{0};
  Event published_;

  SegmentTable table_;
  Mutex open_;  ///< opening a registered segment

  Mutex admin_;
  Manifest manifest_;  ///< written under admin_
  EngineRecovery recovered_;
  std::uint64_t removed_below_ = 0;  ///< segments with a lower number are gone; admin_

  Worker worker_;
  PrepareJob prepare_job_{*this};
  Mutex grow_;
  std::uint64_t segments_end_ TIER_GUARDED_BY(grow_) = 0;  ///< end of the last segment
  Mutex prepare_mutex_;
  std::uint64_t wanted_ TIER_GUARDED_BY(prepare_mutex_) = 0;
  std::uint64_t runs_begun_ TIER_GUARDED_BY(prepare_mutex_) = 0;
  std::uint64_t runs_ended_ TIER_GUARDED_BY(prepare_mutex_) = 0;
  Status last_run_ TIER_GUARDED_BY(prepare_mutex_);
  Event prepared_;

  Mutex managed_sync_;  ///< one sync at a time under TailPolicy::kManaged: its mark must be durable before the next one
  Mutex sync_gate_;     ///< numbers syncs in the order in which they take the dirty set
  std::uint64_t syncs_begun_ TIER_GUARDED_BY(sync_gate_) = 0;
  std::atomic<std::uint64_t> syncs_ended_{0};
  Event sync_ended_;
  std::atomic<Segment*> dirty_{nullptr};
  Mutex mark_;
  mutable Mutex poison_mutex_;
  Status poison_ TIER_GUARDED_BY(poison_mutex_);

  std::atomic<std::uint64_t> sync_count_{0};
  std::atomic<std::uint64_t> prepared_bytes_{0};
  std::atomic<std::uint64_t> claim_waits_{0};
  std::uint64_t tail_at_open_ = 0;
};

}  // namespace tier
