/// SimFile: a File on a SimDisk, and SimView: what it shares with the FileSystem that opened it. Private to the
/// simulator's own files.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "testing/sim_inode.h"
#include "testing/sim_runtime.h"
#include "tier/fs.h"

namespace tier::testing {

/// One process's view of a disk: dead once the disk's generation has moved on (D4).
struct SimView {
  std::shared_ptr<SimDisk> disk;
  SimRuntime* sim = nullptr;
  std::uint64_t generation = 0;
  const void* poller = nullptr;  ///< the FileSystem, as a mark on operations in flight

  bool has(Capability c) const noexcept { return disk->options().capabilities.has(c); }
  /// The disk's lock is held.
  bool alive() const noexcept { return disk->powered_ && disk->generation_ == generation; }
  std::uint64_t now_ns() const noexcept { return sim != nullptr ? sim->now_ns() : 0; }
  /// M1. The disk's lock is not held, here and below.
  void pause() const {
    if (sim != nullptr && disk->options().yield) sim->preempt();
  }
  /// How long something takes; 0 where time does not matter.
  std::uint64_t latency_ns(std::uint64_t least, std::uint64_t most) const {
    return sim != nullptr && disk->options().slow ? least + sim->random().below(most - least) : 0;
  }
  void take_time(std::uint64_t least, std::uint64_t most) const {
    if (const std::uint64_t ns = latency_ns(least, most); ns != 0) sim->sleep(Duration(static_cast<std::int64_t>(ns)));
  }
};

Status sim_off(std::string_view path) noexcept;
/// The failure that `error` stands for.
Status sim_refused(int error, const char* text, std::string_view path, std::uint64_t offset) noexcept;

class SimFile final : public File {
 public:
  /// The inode's opens and lock are already counted.
  SimFile(SimView view, std::string path, std::uint64_t inode, const OpenOptions& options, FileMode mode)
      : File(std::move(path)),
        view_(std::move(view)),
        inode_(inode),
        writable_(options.write),
        locks_(options.lock),
        mode_(mode) {}
  ~SimFile() override;

  using File::write_at;
  Result<std::size_t> read_at(std::uint64_t offset, MutableByteSpan into) override;
  Status write_at(std::uint64_t offset, std::span<const ByteSpan> parts) override;
  Status sync(SyncKind kind) override;
  Status allocate(std::uint64_t offset, std::uint64_t length) override;
  Status punch(std::uint64_t offset, std::uint64_t length) override;
  Status truncate(std::uint64_t size) override;
  Result<FileInfo> info() override;
  Result<MutableByteSpan> mapping(std::uint64_t offset, std::uint64_t length) override;
  FileMode mode() const noexcept override { return mode_; }
  std::uint32_t alignment() const noexcept override { return direct() ? view_.disk->options().alignment : 1; }
  void start(IoOp& op) override;

 private:
  friend class SimFileSystem;
  using Change = SimDisk::FileChange;

  bool direct() const noexcept { return mode_ == FileMode::kDirect || mode_ == FileMode::kDirectWriteThrough; }
  bool write_through() const noexcept {
    return mode_ == FileMode::kWriteThrough || mode_ == FileMode::kDirectWriteThrough;
  }
  Status may_write(std::uint64_t offset, std::uint64_t length) const;
  Status check_range(std::uint64_t offset, std::uint64_t length) const;
  Status check_aligned(std::uint64_t offset, ByteSpan memory) const;
  // The lock is held and the view alive.
  SimDisk::Inode& node() const { return *view_.disk->inode(inode_); }
  Status room_for(std::uint64_t offset, std::uint64_t length, bool overwrites) const;
  Result<std::size_t> read_locked(std::uint64_t offset, MutableByteSpan into);
  Status sync_failed(int error, std::uint64_t covered);
  /// allocate, punch and truncate: everything but the checks.
  Status alter(std::uint32_t call, Change change);
  /// Carries out an operation in flight, whose done() comes next, without the lock.
  IoOp* take_flight(std::size_t flight_idx);
  Status land(const SimDisk::Flight& flight);

  const SimView view_;
  const std::uint64_t inode_;
  const bool writable_;
  const bool locks_;
  const FileMode mode_;
  std::atomic<bool> poisoned_{false};
  std::shared_ptr<SimDisk::Mapped> mapped_;  // keeps the memory of mapping() for as long as this File
};

}  // namespace tier::testing
