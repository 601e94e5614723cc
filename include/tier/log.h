/// Log: an append log. Producers copy a record into a ring and get its Sequence; one of those who wait, or a background
/// committer, writes what has arrived as a block and makes it durable for all.
///
/// Shape       claimed records in the ring | blocks written to the engine | blocks made durable
///             first <= durable <= committed <= claimed: first is the oldest kept, each cursor is one past its last.
/// Invariants  (L1) sequences start at 0 and are dense; a record keeps its sequence for ever.
///             (L2) an acknowledged durable record survives any crash; what was not acknowledged is whole or absent, and after
///                  a crash the log is a prefix of what was appended: no gap, nothing invented.
///             (L3) a batch is in one block under one checksum: all of it or none of it.
///             (L4) readers see durable records only, unless they ask for committed ones.
///             (L5) damage below the durable mark is kCorruption with the place named; a torn tail above it is cut and reported.
///             (L6) after a failed sync nothing more is acknowledged until the log is opened anew (kPoisoned).
/// Threads     append*, flush, wait_durable, read, cursors(): any. A Cursor belongs to one thread at a time. close and the
///             destructor: nobody else inside.
/// Durability  kSync: append returns when its record is durable. kBatch: within batch_bytes, batch_records or
///             batch_interval a sync starts that covers all that has arrived. kAsync: written in the background, durable by
///             flush(), wait_durable() or at the latest every 32 MiB or segment.
/// Errors      kQueueFull, kNotFound, kTruncated, kVoid, kTooLarge (size and limit), kTimedOut, kDiskFull (heals when space
///             returns), kIo, kClosing, kPoisoned, kCorruption (file, offset, sequence), kLocked, kNotReady, kInvalid.
/// Cost        append in kBatch and kAsync: one exchange, one copy, one store; no allocation, no lock, no system call but the
///             one that wakes a sleeping committer. 4 bytes a record on disk, and a header of 96 a block.
/// Source      Aeron (ring, publication), MySQL 8 (link buffer), FASTER (epochs); group commit led by a waiter as in LevelDB.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tier/engine.h"
#include "tier/fs.h"
#include "tier/result.h"
#include "tier/runtime.h"
#include "tier/types.h"

namespace tier {

enum class Durability : std::uint8_t { kSync, kBatch, kAsync };
const char* durability_name(Durability d) noexcept;

enum class QueueFull : std::uint8_t {
  kBlock,  ///< append waits up to queue_full_timeout, then answers kQueueFull
  kFail,   ///< append answers kQueueFull at once
};

enum class BlockAlign : std::uint8_t {
  kPacked,  ///< blocks follow each other; assumes that rewriting a sector's identical bytes cannot destroy them
  kPage,    ///< every block starts on a page of its own: no assumption, more space
};

struct LogOptions {
  /// Creates the log where there is none; its directory is the last path component of the URL.
  Create create = Create::kIfMissing;
  /// Opens beside a running writer, writes nothing.
  bool read_only = false;
  Durability durability = Durability::kBatch;
  Bytes batch_bytes{256u << 10};                        ///< 4 KiB to ring_size / 4
  std::uint32_t batch_records = 1024;                   ///< 1 to 2^20
  Duration batch_interval = std::chrono::milliseconds(10);  ///< 100 us to 60 s
  /// What producers may be ahead of the committer. A power of two, 64 KiB to 64 MiB; down to 4 KiB with allow_small_segments.
  Bytes ring_size{16u << 20};
  /// The largest record, and the largest batch. At most a quarter of segment_size; 0: 1 MiB, or that quarter if it is less.
  Bytes max_record{0};
  QueueFull queue_full = QueueFull::kBlock;
  Duration queue_full_timeout = std::chrono::seconds(30);
  BlockAlign align = BlockAlign::kPacked;
  /// One anchor of the in-memory index every so many records; 16 to 2^20. Blocks never hold fewer anchors than one.
  std::uint32_t index_stride = 1024;
  // Of the engine below; segment_size only matters to a log that is created.
  Bytes segment_size{256u << 20};
  bool allow_small_segments = false;
  FileMode mode = FileMode::kBuffered;
  Runtime* runtime = nullptr;  ///< nullptr: Runtime::system()
};

/// What opening found and did.
struct LogRecovery {
  bool created = false;
  bool clean = false;             ///< the last writer closed it
  Sequence from;                  ///< first sequence
  Sequence to;                    ///< one past the last sequence
  std::uint64_t scanned_bytes = 0;  ///< read to find the end
  std::uint64_t cut_bytes = 0;    ///< erased above the end: blocks that were never acknowledged
  std::uint64_t cut_records = 0;  ///< records in them, as far as their headers could be read
  std::uint64_t segments = 0;
  std::uint32_t epoch = 0;        ///< of this open
  std::uint64_t nanoseconds = 0;
};

struct LogCursors {
  Sequence first;
  Sequence durable;
  Sequence committed;
  Sequence claimed;
};

struct LogStatistics {
  std::uint64_t appends = 0;        ///< records taken since open
  std::uint64_t append_bytes = 0;   ///< their payload
  std::uint64_t blocks = 0;         ///< written since open
  std::uint64_t block_bytes = 0;    ///< with headers and padding
  std::uint64_t syncs = 0;          ///< group commits
  std::uint64_t queue_full_waits = 0;
  EngineStatistics engine;
};

enum class CloseOutcome : std::uint8_t {
  kClean,     ///< everything durable, the end noted
  kPartial,   ///< some records could not be made durable; see status
  kTimedOut,  ///< the deadline passed first
};
struct CloseReport {
  CloseOutcome outcome = CloseOutcome::kClean;
  Status status;
  std::uint64_t lost_records = 0;  ///< claimed but not durable
};

/// A caller-owned wait for durability. Alive until done() was called.
struct DurableOp {
  Sequence sequence;
  void (*done)(DurableOp& op, Status status) = nullptr;  ///< on whatever task advances `durable`; must not block
  void* context = nullptr;
  DurableOp* next = nullptr;  ///< the log's own, while it waits
};

/// One record as a cursor gives it; `bytes` stay until the cursor moves or goes.
struct Record {
  Sequence sequence;
  ByteSpan bytes;
  std::uint64_t block_time_ns = 0;  ///< wall clock when its block was written
};

struct CursorOptions {
  bool committed = false;  ///< see committed records that are not durable yet
  /// Check each block's checksum (once); off only for those who check otherwise.
  bool verify = true;
};

/// Reads records in order. Owned by one thread; several run in parallel. Never disturbed by truncation: it gets data or
/// kTruncated, with the first available sequence in the place. It may outlive its log, but the bytes that it shows keep their
/// segment's lock: let cursors go before the log is opened for writing again.
class Cursor {
 public:
  virtual ~Cursor() = default;
  /// The next record; std::nullopt at the end of what is visible now, or at `to`. kVoid records are skipped.
  virtual Result<std::optional<Record>> next() = 0;
  /// As next(), but at the end of what is visible waits for more until `until`, then kTimedOut; kClosing when the log closes.
  virtual Result<Record> wait_next(Deadline until) = 0;
  /// The sequence that next() would give.
  virtual Sequence position() const noexcept = 0;
  virtual Status seek(Sequence to) = 0;
};

/// A place in the ring to serialise a record into. Move-only. publish() once; the destructor abandons: the sequence stays
/// spent and reads as kVoid.
class Reservation {
 public:
  Reservation() noexcept = default;
  Reservation(Reservation&& other) noexcept { swap(other); }
  Reservation& operator=(Reservation&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Reservation();
  Sequence sequence() const noexcept { return sequence_; }
  MutableByteSpan bytes() const noexcept { return bytes_; }
  void publish() noexcept;

 private:
  friend class LogCore;
  void swap(Reservation& other) noexcept {
    std::swap(log_, other.log_);
    std::swap(sequence_, other.sequence_);
    std::swap(bytes_, other.bytes_);
  }
  class LogCore* log_ = nullptr;
  Sequence sequence_;
  MutableByteSpan bytes_;
};

/// One damaged or unreadable range, as verify() reports it.
struct LogDamage {
  std::string file;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  Sequence from;  ///< first sequence that is missing
  Sequence to;    ///< one past the last missing one
  std::string what;
};
struct LogVerification {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
  std::uint64_t damages = 0;
  Sequence from;
  Sequence to;
};

class Log {
 public:
  static Result<std::unique_ptr<Log>> open(std::string_view url, const LogOptions& options = {});
  static Result<std::unique_ptr<Log>> open(std::shared_ptr<FileSystem> fs, std::string_view path,
                                           const LogOptions& options = {});
  /// Closes, waiting at most queue_full_timeout; call close() to learn the outcome.
  virtual ~Log() = default;

  /// Takes one record. In kSync it is durable on return; if that fails, the error says so and the record may or may not survive.
  /// One over a quarter of the ring is not copied: the call waits until it is written, on a full disk until space returns,
  /// whatever queue_full says.
  virtual Result<Sequence> append(ByteSpan record) = 0;
  Result<Sequence> append(std::string_view record) { return append(as_bytes(record)); }
  /// As append, and waits until it is durable whatever the mode.
  virtual Result<Sequence> append_durable(ByteSpan record) = 0;
  /// All or none (L3). Returns the first sequence; the others follow densely. An empty batch is kInvalid.
  virtual Result<Sequence> append_batch(std::span<const ByteSpan> records) = 0;
  /// Ring bytes to fill in place; at most a quarter of the ring and max_record.
  virtual Result<Reservation> reserve(std::size_t size) = 0;

  /// Makes all that has arrived durable.
  virtual Status flush() = 0;
  /// Waits until every record below `end` is durable; starts a sync at once in kSync and kAsync.
  virtual Status wait_durable(Sequence end, Deadline until = Deadline::never()) = 0;
  /// Calls op.done when every record below op.sequence is durable, or it can no longer become so.
  virtual void on_durable(DurableOp& op) = 0;

  /// Copies one record into `into`, reusing its capacity.
  virtual Status read(Sequence sequence, std::string& into) = 0;
  /// Records of [from, to): to = Sequence{~0ull} follows the visible end.
  virtual Result<std::unique_ptr<Cursor>> scan(Sequence from, Sequence to = Sequence{~std::uint64_t{0}},
                                               const CursorOptions& options = {}) = 0;

  /// Gives up records below `first` (whole blocks; at most what is durable). Space of whole segments returns at once.
  virtual Status truncate_before(Sequence first) = 0;

  virtual LogCursors cursors() const noexcept = 0;
  virtual const LogRecovery& recovery() const noexcept = 0;
  virtual LogStatistics statistics() const = 0;
  virtual const LogOptions& options() const noexcept = 0;
  virtual Engine& engine() noexcept = 0;

  /// Reads everything and checks it; `report` gets each damaged range. Does not stop at the first.
  virtual Result<LogVerification> verify(void (*report)(void* context, const LogDamage& damage), void* context) = 0;

  /// Takes no more, commits and syncs what has arrived, notes the clean end. Idempotent.
  virtual CloseReport close(Deadline until = Deadline::never()) = 0;
};

}  // namespace tier
