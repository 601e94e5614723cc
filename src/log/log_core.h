/// LogCore: the log itself. A map of its rooms:
///
///   options.cc      what open() accepts                       ring.h          claims and published records
///   open.cc         create, recover or follow a store         committer.cc    blocks, group commit, the background task
///   recovery.cc     finding the end, cutting a torn tail      cursor.cc       reading in order, waiting for more
///   producer.cc     append, append_batch, reserve             block_reader.h  finding and checking blocks
///   reading.cc      read, truncate_before, verify             hint.h          the page that followers in other processes read
///
/// One commit at a time (committing_), at most two syncs in flight, each covering what was committed before it began; the
/// completed prefix is acknowledged, one error poisons all (L6). Whoever waits and finds no commit running leads one.
///
/// Lock order  lead_mutex_ is held for bookkeeping only, never over I/O, waits or callbacks. See docs/concurrency.md.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/worker.h"
#include "log/block_reader.h"
#include "log/cursor.h"
#include "log/follower.h"
#include "log/format.h"
#include "log/hint.h"
#include "log/read_state.h"
#include "log/ring.h"
#include "tier/log.h"

namespace tier {

Status check_log_options(const LogOptions& options);

class LogCore final : public Log {
 public:
  static Result<std::unique_ptr<Log>> open(std::shared_ptr<FileSystem> fs, std::string_view path,
                                           const LogOptions& options);
  ~LogCore() override;

  Result<Sequence> append(ByteSpan record) override;
  Result<Sequence> append_durable(ByteSpan record) override;
  Result<Sequence> append_batch(std::span<const ByteSpan> records) override;
  Result<Reservation> reserve(std::size_t size) override;
  Status flush() override;
  Status wait_durable(Sequence end, Deadline until) override;
  void on_durable(DurableOp& op) override;
  Status read(Sequence sequence, std::string& into) override;
  Result<std::unique_ptr<Cursor>> scan(Sequence from, Sequence to, const CursorOptions& options) override;
  Status truncate_before(Sequence first) override;
  LogCursors cursors() const noexcept override;
  const LogRecovery& recovery() const noexcept override { return recovery_; }
  LogStatistics statistics() const override;
  const LogOptions& options() const noexcept override { return options_; }
  Engine& engine() noexcept override { return *state_->engine; }
  Result<LogVerification> verify(void (*report)(void* context, const LogDamage& damage), void* context) override;
  CloseReport close(Deadline until) override;

 private:
  friend class Reservation;

  /// One group commit's sync, from when it started until it is acknowledged in order.
  struct Sync {
    LogPosition covers;
    bool finished = false;
  };

  LogCore(Runtime& runtime, const LogOptions& options, std::shared_ptr<Engine> engine);

  // recovery.cc
  LogPosition start_of_scan(const LogPosition& first) const;
  Status find_end(const LogPosition& from, LogPosition& end, std::uint64_t& mark);
  Status examine_tail(const LogPosition& end, std::uint64_t mark);
  Status write_again(const LogPosition& from, const LogPosition& end, std::uint64_t mark);
  Status recover(const LogPosition& first);
  Status start_writing(const LogPosition& end);
  Status follow(const LogPosition& first);

  // reading.cc
  static Result<LogPosition> resume_after(BlockReader& reader, const LogPosition& broken, std::uint64_t& from,
                                          std::uint64_t limit, std::uint64_t visible, std::uint64_t segment_size);

  // producer.cc
  Status claim(std::uint32_t records, std::uint32_t bytes, Ring::Claim& out);
  Status claim_slowly(std::uint32_t records, std::uint32_t bytes, Ring::Claim& out);
  Result<std::uint64_t> append_one(ByteSpan record);
  Result<std::uint64_t> append_stub(RingStub& stub);
  void published(const Ring::Claim& claim) noexcept;
  void finish_reservation(Sequence sequence, MutableByteSpan bytes, bool abandoned) noexcept;
  Status too_large(std::uint64_t size, std::uint64_t limit, const char* what) const;
  Status refusal() const;

  // committer.cc
  Status commit_arrived();
  Status write_block(const Ring::Gathered& gathered);
  Status make_durable(std::uint64_t end, bool lead, Deadline until, bool closing = false);
  enum class Lead : std::uint8_t { kLed, kOthersLead, kNothingNew };
  Result<Lead> try_lead(std::uint64_t end, bool sync);
  Status run_sync(Sync& sync);
  void acknowledge(const LogPosition& durable);
  void persist_mark(const LogPosition& durable);
  void poison(Status cause) noexcept;
  Status poisoned() const;
  void update_hint() TIER_REQUIRES(lead_mutex_);
  void complete_waiting(DurableOp* list, Status status);
  static Status closed_before_durable();
  // The background task.
  static constexpr std::uint32_t kWantCommit = 1;
  static constexpr std::uint32_t kWantSync = 2;
  struct Trigger {
    std::uint32_t records;
    std::uint32_t bytes;
    Duration interval;
  };
  void run_committer();
  void wake_committer() noexcept { committer_event_.signal(); }
  void want(std::uint32_t what) noexcept;
  Trigger trigger() const noexcept;
  void sync_behind();
  void tidy_up();

  Runtime& runtime_;
  LogOptions options_;
  const bool read_only_;
  std::shared_ptr<ReadState> state_;
  LogRecovery recovery_;
  std::unique_ptr<Ring> ring_;
  std::uint32_t inline_most_ = 0;  // larger records go as stubs

  // The committer's own; guarded by committing_ (one holder at a time, handed over under lead_mutex_).
  LogPosition written_;            // end of the last block
  AppendLease pending_lease_;      // a block whose write failed for want of space, to be repeated as it is
  Ring::Gathered pending_;
  log_format::BlockHeader pending_header_{};

  mutable Mutex lead_mutex_;
  bool committing_ TIER_GUARDED_BY(lead_mutex_) = false;
  std::array<Sync, 2> syncs_ TIER_GUARDED_BY(lead_mutex_);  // sync number n is in [n % 2]
  std::uint64_t syncs_begun_ TIER_GUARDED_BY(lead_mutex_) = 0;
  std::uint64_t syncs_ended_ TIER_GUARDED_BY(lead_mutex_) = 0;  // acknowledged, or poisoned; at most two behind begun
  std::uint64_t sync_covers_ TIER_GUARDED_BY(lead_mutex_) = 0;  // sequence the last started sync covers
  Status poison_ TIER_GUARDED_BY(lead_mutex_);
  DurableOp* waiting_ TIER_GUARDED_BY(lead_mutex_) = nullptr;
  LogPosition marked_ TIER_GUARDED_BY(lead_mutex_);      // the last mark put
  std::atomic<bool> syncing_{false};                     // a sync is in flight: the next block takes a new page
  std::atomic<Code> commit_trouble_{Code::kOk};          // why the last commit could not write
  std::atomic<std::uint32_t> wanted_{0};                 // kWant bits for the background task

  Event space_;  // ring space was released
  Event committer_event_;
  std::unique_ptr<Task> committer_;
  /// kAsync: syncs while the committer goes on writing.
  struct SyncJob final : Worker::Job {
    explicit SyncJob(LogCore& log_in) noexcept : log(log_in) {}
    void run() override;
    LogCore& log;
  };
  SyncJob sync_job_{*this};
  Worker syncer_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> closed_{false};
  CloseReport close_report_;
  std::unique_ptr<HintWriter> hint_;

  Mutex read_mutex_;
  std::unique_ptr<LogCursor> reading_ TIER_GUARDED_BY(read_mutex_);  // of read(), kept where it stands
  Mutex truncate_mutex_;

  std::atomic<std::uint64_t> blocks_{0};
  std::atomic<std::uint64_t> block_bytes_{0};
  std::atomic<std::uint64_t> payload_bytes_{0};
  std::atomic<std::uint64_t> group_syncs_{0};
  std::atomic<std::uint64_t> full_waits_{0};
  std::uint64_t opened_at_sequence_ = 0;
};

}  // namespace tier
