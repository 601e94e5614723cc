/// FsSegmentStore: a SegmentStore in a directory of a FileSystem.
///
/// Shape       LOCK (never deleted) | MANIFEST | 000000000000.seg ... ; `*.new` are files in the making, removed by the next
///             owner; other files are left alone.
/// Invariants  (T1) a segment gets its name by a rename, after its size, header and first space are synced.
///             (T2) an update writes the manifest to the slot in turn, syncs, then to the other slot, and syncs: the slot
///                  that holds the newest synced manifest is never the one being written, and at rest both hold it.
///             (T3) LOCK, and each segment opened for writing, are held by file locks.
/// Threads     as SegmentStore.
#pragma once

#include <memory>
#include <string>

#include "engine/segment_store.h"

namespace tier {

class FsSegmentStore final : public SegmentStore {
 public:
  FsSegmentStore(std::shared_ptr<FileSystem> fs, std::string path, FileMode mode, Runtime& runtime)
      : fs_(std::move(fs)), path_(std::move(path)), mode_(mode), runtime_(runtime) {}

  Result<Attached> attach(Create create, bool read_only, const Manifest& fresh) override;
  Result<std::vector<std::uint64_t>> list() override;
  Result<std::unique_ptr<SegmentFile>> create(std::uint64_t segment, std::uint32_t epoch, std::uint64_t salt,
                                              std::uint64_t reserve) override;
  Result<std::unique_ptr<SegmentFile>> open(std::uint64_t segment, bool write) override;
  Status remove(std::uint64_t segment) override;
  Status sync_names() override;
  Result<Manifest> load_manifest() override;
  Status swap_manifest(std::uint64_t expected, Manifest& next) override;
  void detach() noexcept override {
    manifest_.reset();
    lock_.reset();
  }
  bool durable() const noexcept override { return fs_->capabilities().has(Capability::kDurable); }
  FileSystem& file_system() noexcept override { return *fs_; }
  std::string name_of(std::uint64_t segment) const override { return inside(segment_name(segment)); }

 private:
  std::string inside(std::string_view name) const {
    return path_.empty() ? std::string(name) : path_ + '/' + std::string(name);
  }
  Status create_manifest(const Manifest& fresh);
  Status remove_unfinished(const std::vector<DirectoryEntry>& entries);
  Result<Manifest> read_manifest();
  Status write_slot(const Manifest& manifest);
  Result<std::unique_ptr<SegmentFile>> adopt(std::unique_ptr<File> file, const SegmentIdentity& identity, bool write);

  std::shared_ptr<FileSystem> fs_;
  std::string path_;
  FileMode mode_;
  Runtime& runtime_;
  std::unique_ptr<File> lock_;
  std::unique_ptr<File> manifest_;
  std::uint64_t store_id_ = 0;
  std::uint64_t segment_size_ = 0;
  std::uint64_t generation_ = 0;
};

}  // namespace tier
