/// SimDisk: a medium, the cache in front of it, and the moment the power fails.
///
/// Shape       per file: what is on the medium, the cache, and the changes since the last successful sync in order; the
///             same for names. A sync replays this file's changes onto the medium (and nothing else). A crash decides
///             for every sector, size and name which state reached the medium, then drops the cache. A disk outlives
///             the FileSystem and File objects on it (sim_fs.h), so a test cuts the power, drops them and opens anew.
/// Invariants  (D1) a sector (512 B) is old or one of the states the cache held since the last successful sync of its
///                  file.
///             (D2) an unsynced size is any it had since then, or between two of them at a sector; truncate, allocate
///                  and punch are kept or lost by themselves.
///             (D3) unsynced names: per directory a prefix of the changes survives; a rename gives one name or the
///                  other.
///             (D4) after a power cut or kill every call on the objects of before answers kIo ("the power is off"), for
///                  ever.
///             (D5) a failed sync leaves any part of the changes on the medium and none to be written: the cache shows
///                  the new bytes and the next sync succeeds without writing them.
///             Hostile profile: an unsynced sector may become garbage or unreadable, unsynced new space shows stale
///             bytes of other files, any subset of unsynced names survives.
/// Units       bytes; calls are numbered from 0, changes (sectors, sizes, names) have a global order from 1.
/// Threads     any, one lock; under a SimRuntime one.
/// Source      the write-back model of CrashMonkey/ACE (OSDI'18) and ALICE (OSDI'14), by sector instead of by call.
///
/// A crash test. Every call of a history is a place to lose power, and each place gives many images:
///
///   for (std::uint64_t at = 0;; ++at) {
///     auto disk = std::make_shared<SimDisk>();
///     disk->cut_power_at(at);                              // while call number `at` runs
///     std::uint64_t acked = 0;                             // what the store has promised
///     SimRuntime sim(seed);
///     sim.run([&] { work(*sim_fs(disk, &sim), sim.runtime(), &acked); });  // stops at the first error
///     if (disk->powered()) break;                          // the history ended before call `at`: all places are done
///     for (std::uint64_t s = 0; s < 20; ++s) {
///       auto image = disk->clone();                        // one moment, many ways to lose it
///       image->crash_seeded(s);                            // or crash_all_old(), crash_all_new(), crash_prefix(k)
///       image->restart();
///       SimRuntime again(seed);
///       again.run([&] { check(*sim_fs(image, &again), again.runtime(), acked); });
///     }
///   }
///
/// For a short history all images instead of twenty: `SimEveryCrash every; while (every.next())` and in the loop
/// `image->crash(every)` on a fresh clone. After check() cut again: recovery is a history, too. Faults instead of
/// power: disk->add_fault({.calls = kSimSync}), or fail_call(n, EIO) for every n below io_count(). A failing test shows
/// the seed, the call number and the crash seed: the same three give the same run (trace() shows it).
#pragma once

#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "testing/sim_chooser.h"
#include "testing/sim_image.h"
#include "testing/sim_random.h"
#include "tier/fs.h"

namespace tier::testing {

class SimFile;
class SimFileSystem;
struct SimView;

/// Kinds of calls, as bits. Those of kSimMutating have numbers for cut_power_at().
enum SimCalls : std::uint32_t {
  kSimOpen = 1u << 0,    ///< of what exists
  kSimCreate = 1u << 1,  ///< open() that makes a file; its name's sync is a kSimSyncDirectory of its own
  kSimRead = 1u << 2,
  kSimWrite = 1u << 3,
  kSimSync = 1u << 4,
  kSimAllocate = 1u << 5,
  kSimPunch = 1u << 6,
  kSimTruncate = 1u << 7,
  kSimCreateDirectory = 1u << 8,
  kSimRemove = 1u << 9,
  kSimRename = 1u << 10,
  kSimSyncDirectory = 1u << 11,
  kSimStat = 1u << 12,  ///< stat, info, space, locked
  kSimList = 1u << 13,
  kSimAnyCall = (1u << 14) - 1,
  kSimMutating = kSimAnyCall & ~(kSimOpen | kSimRead | kSimStat | kSimList),
};

/// Makes calls fail. A write or change of names that fails with `partial` has reached the cache in part; one without
/// has done nothing. A file's sync that fails loses as D5 says, whatever the error (ENOSPC too); a directory's that
/// fails leaves its changes undecided or, with `partial`, durable.
struct SimFault {
  std::uint32_t calls = kSimAnyCall;
  int error = EIO;
  std::string path = "*";   ///< shell pattern; `*` crosses slashes
  std::uint64_t skip = 0;   ///< matching calls that still succeed
  std::uint64_t times = 1;  ///< how many then fail; 0: all, until clear_faults()
  bool partial = false;
};

struct SimDiskOptions {
  std::uint64_t seed = 1;
  SimProfile profile = SimProfile::kOrdinary;
  std::uint64_t capacity = std::uint64_t{1} << 30;
  /// kMapping and kAsync are off unless added; take bits away to see the fallbacks of the floors above.
  Capabilities capabilities = Capabilities{}
                                  .with(Capability::kDurable)
                                  .with(Capability::kOverwrite)
                                  .with(Capability::kSparse)
                                  .with(Capability::kPunch)
                                  .with(Capability::kAllocate)
                                  .with(Capability::kDirectIo)
                                  .with(Capability::kAtomicRename)
                                  .with(Capability::kLocking);
  std::uint32_t alignment = kSimSector;  ///< of direct transfers, enforced
  std::uint32_t handles = 0;             ///< open files at most (EMFILE beyond); 0 for no limit
  bool yield = true;                     ///< calls are points where a SimRuntime runs others, and long writes are split
  bool slow = true;                      ///< calls take virtual time (a sync 20 to 500 us)
  bool poison = true;                    ///< F4; without, a File behaves as the bare kernel does after a failed sync
};

class SimDisk {
 public:
  explicit SimDisk(const SimDiskOptions& options = {});
  ~SimDisk();
  SimDisk(const SimDisk&) = delete;
  SimDisk& operator=(const SimDisk&) = delete;

  // Power.

  /// Numbers of mutating calls so far: the next one's number.
  std::uint64_t call_count() const;
  /// All calls so far.
  std::uint64_t io_count() const;
  /// The power goes while mutating call `call` runs: what it changes is in flight, and it answers kIo.
  void cut_power_at(std::uint64_t call);
  void power_cut();
  bool powered() const;
  /// Every object dies, as with kill -9; cache and names stay. The disk is ready for new objects at once.
  void kill_process();
  /// Decides what survived, once; cuts the power if it is on.
  void crash(SimChooser& chooser);
  void crash_all_old();
  void crash_all_new();
  /// Changes up to global order `order` survive, later ones do not.
  void crash_prefix(std::uint64_t order);
  /// Biased coins: per file and directory nearly all, nearly none or half; sometimes a prefix, all or nothing.
  void crash_seeded(std::uint64_t seed);
  /// Power on, caches cold. After a power cut that nobody decided: crash_seeded(the disk's own next number).
  void restart();
  /// The order of the last change.
  std::uint64_t order() const;
  /// The same medium, cache and undecided changes, no objects, no faults, no armed cut.
  std::shared_ptr<SimDisk> clone();

  // Faults and damage.

  void add_fault(SimFault fault);
  /// Call number `io` (io_count()) fails once.
  void fail_call(std::uint64_t io, int error, bool partial = false);
  void clear_faults();
  /// How many calls failed on request.
  std::uint64_t faults_hit() const;
  /// Damage at rest: both on the medium and in the cache. False if the file does not exist or is shorter.
  bool flip_bit(std::string_view path, std::uint64_t offset, unsigned bit);
  bool damage(std::string_view path, std::uint64_t offset, ByteSpan bytes);
  /// Cuts the file at rest.
  bool damage_size(std::string_view path, std::uint64_t size);
  /// Reads of the sector fail with EIO until it is written.
  bool break_sector(std::string_view path, std::uint64_t offset);
  /// What a power cut that loses everything unsynced would leave of a file. Empty if its name is not durable.
  std::vector<std::byte> durable_bytes(std::string_view path) const;
  /// What a reader of the cache sees.
  std::vector<std::byte> cached_bytes(std::string_view path) const;
  /// Paths of all files in the cache, in byte order.
  std::vector<std::string> files() const;
  /// Sectors, sizes and names that a crash would decide about now.
  std::uint64_t pending_changes() const;

  const SimDiskOptions& options() const noexcept { return options_; }
  /// Bytes given out.
  std::uint64_t used() const;
  void set_capacity(std::uint64_t bytes);
  /// Hash of every call, its arguments and its bytes.
  std::uint64_t trace() const;

 private:
  friend class SimFile;
  friend class SimFileSystem;
  friend struct SimView;
  struct FileChange;
  struct NameChange;
  struct Inode;
  struct Mapped;
  struct Call;
  struct Flight;
  using InodeId = std::uint64_t;
  static constexpr InodeId kRoot = 1;

  // All below: the lock is held.
  Inode* inode(InodeId id) const;
  std::uint64_t used_locked() const;
  Inode& make_inode(bool directory);
  Call begin(std::uint32_t kind, std::string_view path, std::uint64_t generation, std::uint64_t a, std::uint64_t b);
  void cut_locked();
  void forget_objects();

  /// Into the cache, and onto the list of what a sync will write. Returns its order.
  std::uint64_t change(Inode& file, FileChange what);
  /// Turns stores into mapped memory into changes.
  void harvest(Inode& file);
  /// An asynchronous write takes effect.
  void land(const Flight& flight);
  /// Replays the file's changes up to `order` onto the medium and forgets them.
  void replay(Inode& file, std::uint64_t order, SimChooser& chooser, bool forced);
  /// All of it up to `order` is durable.
  void sync(Inode& file, std::uint64_t order);
  /// Any of it is, and none is left to be written (D5).
  void fail_sync(Inode& file, std::uint64_t order);
  /// One write is durable (write-through); what lies before it on the list stays undecided.
  void mark_synced(Inode& file, std::uint64_t order);
  void change_name(NameChange what);
  /// Makes the changes of a directory's names up to `order` durable, with what they depend on.
  void sync_names(InodeId directory, std::uint64_t order);
  void crash_names(SimChooser& chooser);
  /// Applies to the durable names what its precondition allows (a rename never loses both names).
  void apply_durably(const NameChange& what);
  void persist(Inode& file, const FileChange& what, SimChooser& chooser, bool forced);
  void spill_stale(SimImage& image, std::uint64_t sector, SimChooser& chooser);
  void remember_stale(const SimImage& image);
  /// Drops inodes that nothing refers to any more.
  void collect();
  Inode* lookup(std::string_view path, bool durable) const;
  std::vector<std::byte> bytes_of(std::string_view path, bool durable) const;
  std::pair<std::uint64_t, std::uint64_t> pending_range() const;

  SimDiskOptions options_;
  mutable std::mutex mutex_;
  SimRandom random_;
  std::map<InodeId, std::unique_ptr<Inode>> inodes_;
  std::vector<NameChange> names_;
  std::vector<Flight> flights_;  // asynchronous operations that have not been completed
  std::vector<SimImage> stale_;  // what files held that are gone (hostile profile)
  std::vector<SimFault> faults_;
  std::vector<std::pair<std::uint64_t, SimFault>> call_faults_;
  InodeId next_inode_ = kRoot;
  std::uint64_t order_ = 0;
  std::uint64_t calls_ = 0;
  std::uint64_t ios_ = 0;
  std::uint64_t cut_at_ = ~std::uint64_t{0};
  std::uint64_t generation_ = 1;
  std::uint64_t next_owner_ = 1;
  std::uint64_t trace_ = 0;
  std::uint64_t faults_hit_ = 0;
  std::uint32_t handles_ = 0;
  bool powered_ = true;
  bool decided_ = true;
};

}  // namespace tier::testing
