/// Engine: a persistent, linear, byte-addressed space over one file system; segments of a power-of-two size, one file each.
///
/// Shape       segment 0 | segment 1 | ... | segment k (tail) | prepared ...      address = segment index * size + offset
///             begin <= durable <= committed <= allocated                       (the four tails)
/// Invariants  (N1) addresses never change meaning within a tail epoch; the tails only grow, except through reclaim_tail.
///             (N2) committed is the end of the contiguous prefix of finished appends; an allocated range counts as
///                  finished at once and reads as zeros until written.
///             (N3) durable never passes what a successful sync covered, and a sync covers only what was committed, and
///                  every overwrite that had returned, before it began.
///             (N4) after a failed sync the engine is poisoned: durable stays, writes answer kPoisoned until it is opened anew.
///             (N5) capacity is secured before a tail moves: a failed claim leaves all four tails as they were.
///             (N6) one owner: LOCK and every segment file it may write are locked before a tail is read.
///             (N7) recovery reads the manifest and segment headers, never all data.
/// Threads     any, all verbs. Overlapping overwrites: last one wins per sector, no order is promised (yet).
/// Units       bytes everywhere; Deadlines of the runtime's clock.
/// Durability  nothing before sync(). TailPolicy says how the tail is found again.
/// Errors      kTimedOut (a segment was not ready in time), kDiskFull (heals), kTruncated (below begin), kNotFound (above
///             committed), kInvalid, kLocked, kCorruption, kPoisoned, kIo, kUnsupported; the place names file and address.
/// Cost        claim: one exchange; write and read on mem: one memcpy; elsewhere one system call. No allocation, no lock.
/// Source      FASTER's log address space; the link buffer of MySQL 8 for the committed prefix.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tier/fs.h"
#include "tier/result.h"
#include "tier/runtime.h"
#include "tier/types.h"

namespace tier {

/// How the tail of the appends is found again after a stop that was not clean.
enum class TailPolicy : std::uint8_t {
  kManaged,  ///< each sync writes a mark (two slots in the segment's header area) before it syncs; recovery takes the newest.
             ///< Bytes above the last acknowledged sync may be old, zero or torn, as in any unsynced file.
  kCaller,   ///< the caller knows better (a log's blocks name themselves): it scans from recovered().mark and ends recovery
             ///< with reclaim_tail(). Until then only reads are answered, others kNotReady.
};

struct EngineOptions {
  /// Only for a store that is created; an existing one keeps its own. A power of two, 1 MiB to 64 GiB; down to 512 B with
  /// `allow_small_segments` (tests).
  Bytes segment_size{256u << 20};
  bool allow_small_segments = false;
  TailPolicy tail_policy = TailPolicy::kManaged;
  /// Segment files are opened in this mode: buffered, mapped or write-through.
  FileMode mode = FileMode::kBuffered;
  /// Space is reserved this far ahead of the tail, by the background worker; appends wait only when they catch up with it.
  Bytes allocate_ahead{16u << 20};
  /// Reserved space is also written with zeros and synced, so that a later sync of an append needs no metadata commit.
  bool zero_ahead = false;
  /// Whole segments created ahead of need, once the tail segment is 80 % full.
  std::uint32_t prepared_segments = 1;
  /// How long a claim waits for a segment or a publication slot.
  Duration claim_timeout = std::chrono::seconds(30);
  bool read_only = false;
  /// Creates the store where there is none: its directory is the last path component.
  Create create = Create::kNever;
  /// What the store is for, kept in the manifest: an engine opened for another kind answers kInvalid. At most 15 letters.
  std::string_view kind = "engine";
  Runtime* runtime = nullptr;  ///< nullptr: Runtime::system()
};

struct Tails {
  Address begin;      ///< the first byte that can be read
  Address durable;    ///< appends below survive a power cut
  Address committed;  ///< appends below are complete
  Address allocated;  ///< handed out
};

/// A position that its writer knew to be durable, with a number of its own; kept in two slots of a segment's header area.
struct Mark {
  Address address;
  std::uint64_t value = 0;
  std::uint32_t epoch = 0;
};

/// What open() found.
struct EngineRecovery {
  bool created = false;
  bool clean = false;              ///< the last owner closed it: `clean_mark` is the exact end
  Mark clean_mark;
  bool has_mark = false;           ///< `mark` is the newest valid one of the newest segments
  Mark mark;
  Address end_of_segments;         ///< end of the last segment file
  std::uint32_t epoch = 0;         ///< of the tail, before this open
  /// Where the last reclaim_tail() cut, in `epoch`: bytes at or above it that an earlier epoch wrote were given up, even if a
  /// crash kept them from being erased.
  Address cut;
};

struct EngineStatistics {
  std::uint64_t segments = 0;            ///< files, prepared ones included
  std::uint64_t bytes_on_disk = 0;       ///< allocated by the file system
  std::uint64_t appended = 0;            ///< bytes, since open
  std::uint64_t syncs = 0;               ///< file syncs issued for sync()
  std::uint64_t prepared_bytes = 0;      ///< written as zeros ahead
  std::uint64_t claim_waits = 0;         ///< claims that had to wait for a segment
};

/// The right to fill one claimed range. Move-only, on the stack. Ends once: commit(), or the destructor, which publishes the
/// range as unknown (it reads as whatever was written; a claim is never undone).
class AppendLease {
 public:
  AppendLease() noexcept = default;
  AppendLease(AppendLease&& other) noexcept { swap(other); }
  AppendLease& operator=(AppendLease&& other) noexcept {
    swap(other);
    return *this;
  }
  ~AppendLease();

  Address address() const noexcept { return address_; }
  Bytes size() const noexcept { return size_; }
  bool active() const noexcept { return engine_ != nullptr; }
  /// Writes `parts` back to back from `offset` within the range; may be repeated, also over the same bytes after an error.
  Status write(Bytes offset, std::span<const ByteSpan> parts);
  /// Publishes: `committed` passes the range once all before it are published.
  void commit() noexcept;

 private:
  friend class EngineCore;
  void swap(AppendLease& other) noexcept {
    std::swap(engine_, other.engine_);
    std::swap(address_, other.address_);
    std::swap(size_, other.size_);
    std::swap(ticket_, other.ticket_);
  }
  class EngineCore* engine_ = nullptr;
  Address address_;
  Bytes size_;
  std::uint64_t ticket_ = 0;
};

struct ClaimOptions {
  std::uint32_t alignment = 1;  ///< of the address: a power of two up to 4,096; skipped bytes read as zeros
  /// The range does not cross into another segment; what is left of the tail segment is skipped when it does not fit.
  bool one_segment = false;
  Deadline until = Deadline::never();  ///< capped by EngineOptions::claim_timeout
};

/// Bytes of the engine, pinned: zero-copy where the file system maps, a private copy elsewhere. Keep it briefly: the segment
/// stays until it goes.
class View {
 public:
  View() noexcept = default;
  View(View&&) noexcept;
  View& operator=(View&&) noexcept;
  ~View();
  ByteSpan bytes() const noexcept { return bytes_; }
  bool zero_copy() const noexcept { return copy_ == nullptr; }

 private:
  friend class EngineCore;
  ByteSpan bytes_;
  void* pin_ = nullptr;
  std::unique_ptr<std::byte[]> copy_;
};

class Engine {
 public:
  /// kInvalid (option, not a store, other kind), kNotFound, kLocked, kCorruption, kUnsupported (newer version), ...
  static Result<std::unique_ptr<Engine>> open(std::string_view url, const EngineOptions& options = {});
  static Result<std::unique_ptr<Engine>> open(std::shared_ptr<FileSystem> fs, std::string_view path,
                                              const EngineOptions& options = {});
  virtual ~Engine() = default;

  virtual Result<Address> allocate(Bytes n) = 0;
  virtual Result<Address> append(ByteSpan bytes) = 0;
  virtual Result<AppendLease> claim(Bytes n, const ClaimOptions& options = {}) = 0;
  /// Overwrites below `allocated`.
  virtual Status write(Address at, ByteSpan bytes) = 0;
  virtual Status read(Address at, MutableByteSpan into) = 0;
  virtual Result<View> view(Address at, Bytes n) = 0;

  /// Makes appends below `up_to` (default: committed) and earlier overwrites durable. Two may run at once; what is reported
  /// is the completed prefix.
  virtual Status sync(Address up_to) = 0;
  virtual Status sync() = 0;
  virtual Tails tails() const noexcept = 0;

  /// Gives up everything below `to` (at most durable): whole segments are removed, the rest of the first one is punched where
  /// the file system can. The new begin is durable before anything is removed.
  virtual Status reclaim_head(Address to) = 0;
  /// Takes the tail back to `to`: a higher epoch and the new tail are durable in the manifest, then all above is erased
  /// (reads zero) and synced. No append may be in flight. Ends recovery under TailPolicy::kCaller. Idempotent.
  virtual Status reclaim_tail(Address to) = 0;

  /// Keeps `mark` in the segment that holds mark.address, durable with its next sync. TailPolicy::kCaller.
  virtual Status put_mark(const Mark& mark) = 0;
  /// The newest valid mark of the segment that holds `at`. kNotFound if there is none.
  virtual Result<Mark> mark_in(Address at) = 0;
  /// Small state of the floor above, replaced atomically and durable when the call returns. At most 1,024 bytes.
  virtual Status put_owner_data(ByteSpan bytes) = 0;
  virtual ByteSpan owner_data() const noexcept = 0;

  /// Drains, syncs, notes a clean close (with `value` for the floor above), releases the store. Idempotent. Without it the
  /// destructor releases the store as a crash would: nothing is synced.
  virtual Status close(std::uint64_t value = 0) = 0;

  /// Re-reads manifest and directory (read-only opens beside a running owner).
  virtual Status refresh() = 0;

  virtual const EngineRecovery& recovered() const noexcept = 0;
  virtual Bytes segment_size() const noexcept = 0;
  virtual std::uint32_t epoch() const noexcept = 0;
  virtual std::uint64_t store_id() const noexcept = 0;
  virtual EngineStatistics statistics() const = 0;
  virtual FileSystem& file_system() noexcept = 0;
  virtual const std::string& path() const noexcept = 0;
  /// "file 'events/000000000003.seg' at offset 8192", for messages.
  virtual std::string locate(Address at) const = 0;
};

}  // namespace tier
