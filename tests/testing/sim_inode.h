/// What a SimDisk keeps of a file, a change of it, and a change of names. Private to the simulator's own files.
///
/// Invariants  (N1) base with `changes` applied in order is the cache: so the state of any sector after any change can
///                  be made again, which is what a write-back at that time would have written.
///             (N2) `changes` is ordered; those marked synced are durable (write-through) but wait for older ones.
///             (N3) `entries` with the disk's name changes undone are `durable_entries`, failed syncs apart.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "testing/sim_disk.h"

namespace tier::testing {

struct SimDisk::FileChange {
  enum class Kind : std::uint8_t { kWrite, kTruncate, kAllocate, kPunch };
  Kind kind = Kind::kWrite;
  bool synced = false;
  std::uint64_t order = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t size_after = 0;
  std::shared_ptr<const std::byte[]> bytes = {};  // kWrite

  static FileChange write(std::uint64_t offset, ByteSpan from);
  void apply(SimImage& image) const;
};

struct SimDisk::NameChange {
  enum class Kind : std::uint8_t { kCreate, kRemove, kRename };
  Kind kind = Kind::kCreate;
  std::uint64_t order = 0;
  InodeId directory = 0;
  std::string name = {};
  InodeId inode = 0;
  // kRename
  InodeId to_directory = 0;
  std::string to_name = {};
  InodeId replaced = 0;  // 0: none
};

/// The memory that mapping() handed out: one arena a file, so that all its mappings are coherent. Stores into it become
/// changes when the next call looks (harvest).
struct SimDisk::Mapped {
  static constexpr std::uint64_t kArena = std::uint64_t{1} << 30;  // address space, not memory
  Mapped();
  ~Mapped();
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  std::byte* arena;
  std::set<std::uint64_t> pages;
  std::uint64_t end = 0;    // of the ranges handed out
  std::uint32_t files = 0;  // whose mapping() it is; with the last one it goes
  bool writable = false;
};

struct SimDisk::Inode {
  InodeId id = 0;
  bool directory = false;
  bool linked = true;       // has a name in the cache
  std::uint32_t opens = 0;  // living File objects
  std::uint64_t owner = 0;  // of the lock; 0: none
  // A file.
  SimImage cache;
  SimImage base;
  SimImage durable;
  std::vector<FileChange> changes;
  std::set<std::uint64_t> broken_sectors;
  std::shared_ptr<Mapped> mapped;
  // A directory.
  using Entries = std::map<std::string, InodeId, std::less<>>;
  Entries entries;
  Entries durable_entries;
};

/// An asynchronous operation between start() and poll(). A write reaches the cache when it completes, a sync covers
/// what had completed when it started: nothing is ordered that the caller did not wait for.
struct SimDisk::Flight {
  IoOp* op = nullptr;
  SimFile* file = nullptr;
  const void* owner = nullptr;  // the view that polls
  Status status = {};           // a failure to report
  InodeId inode = 0;
  std::uint64_t order = 0;     // kSync: what it covers
  std::uint64_t ready_ns = 0;  // of virtual time
};

/// How a call begins.
struct SimDisk::Call {
  Status status;         // dead: answer this
  bool cut = false;      // the power goes while it runs
  int error = 0;         // a fault: fail with it
  bool partial = false;  // after part of the work
};

}  // namespace tier::testing
