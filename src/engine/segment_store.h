/// SegmentStore: the one seam between the engine and where its bytes live.
///
/// Shape       a store is one manifest, swapped atomically by generation, and numbered segments. A SegmentFile is one open
///             segment: data offsets from 0 to the segment size, and two mark slots.
/// Invariants  (T1) create() is all or nothing: a segment that list() names has a valid header and its full size.
///             (T2) swap_manifest() returns when the new manifest survives a power cut and any single damage.
///             (T3) an owner holds the store, and every segment that it opened for writing, against other owners.
/// Threads     SegmentFile: any. SegmentStore: create beside anything; the rest is called by one at a time.
/// Errors      those of files; kPoisoned when a sync of the manifest or of a header failed.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/format.h"
#include "tier/fs.h"
#include "tier/result.h"
#include "tier/types.h"

namespace tier {

class SegmentFile {
 public:
  virtual ~SegmentFile() = default;
  virtual Status write(std::uint64_t offset, std::span<const ByteSpan> parts) = 0;
  virtual Status read(std::uint64_t offset, MutableByteSpan into) = 0;
  virtual Status write_mark(unsigned slot, const HeaderPage& page) = 0;
  virtual Status read_mark(unsigned slot, HeaderPage& page) = 0;
  virtual Status sync(SyncKind kind) = 0;
  /// Reserves space; succeeds without it where the store cannot.
  virtual Status reserve(std::uint64_t offset, std::uint64_t length) = 0;
  /// The range reads zero afterwards; its space may go.
  virtual Status erase(std::uint64_t offset, std::uint64_t length) = 0;
  /// Gives the space of whole blocks back. kUnsupported where the store cannot.
  virtual Status punch(std::uint64_t offset, std::uint64_t length) = 0;
  /// The data itself where the store maps, else empty. Valid while the file lives.
  virtual MutableByteSpan mapping() const noexcept = 0;
  /// Each write is durable when it returns.
  virtual bool write_through() const noexcept = 0;
  virtual const SegmentIdentity& identity() const noexcept = 0;
};

class SegmentStore {
 public:
  struct Attached {
    Manifest manifest;
    bool created = false;
  };
  /// Takes or makes the store: `fresh` is the manifest of a new one.
  virtual Result<Attached> attach(Create create, bool read_only, const Manifest& fresh) = 0;
  virtual ~SegmentStore() = default;

  /// Numbers of the segments, ascending.
  virtual Result<std::vector<std::uint64_t>> list() = 0;
  /// A new segment with its first `reserve` bytes reserved; durable when it returns, its name included.
  virtual Result<std::unique_ptr<SegmentFile>> create(std::uint64_t segment, std::uint32_t epoch, std::uint64_t salt,
                                                      std::uint64_t reserve) = 0;
  /// kCorruption if its header or size is not what this store writes; kNotFound.
  virtual Result<std::unique_ptr<SegmentFile>> open(std::uint64_t segment, bool write) = 0;
  /// Not durable before sync_names().
  virtual Status remove(std::uint64_t segment) = 0;
  virtual Status sync_names() = 0;

  virtual Result<Manifest> load_manifest() = 0;
  /// Replaces the manifest of generation `expected`; sets next.generation. kBusy if it is another one.
  virtual Status swap_manifest(std::uint64_t expected, Manifest& next) = 0;

  /// Lets another owner take the store. Nothing else is called afterwards.
  virtual void detach() noexcept = 0;

  /// Whether contents outlive the process.
  virtual bool durable() const noexcept = 0;
  virtual FileSystem& file_system() noexcept = 0;
  /// For messages.
  virtual std::string name_of(std::uint64_t segment) const = 0;
};

}  // namespace tier
