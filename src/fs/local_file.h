/// LocalFile: one descriptor for the whole life of a File of `local:`.
///
/// Invariants  (F1-F5) of tier/fs.h, and
///             (D1) a failed sync, or a failed write of a write-through file other than for want of space, poisons it:
///                  the kernel may have marked the lost pages clean, so asking again proves nothing.
///             (D2) in a child of fork an owner's File answers kClosing: its descriptor is not the parent's any more.
///             (D3) it does not go while operations of it are in flight: its destructor waits for them.
/// Threads     any.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "fs/local_calls.h"
#include "fs/local_process.h"
#include "fs/local_ring.h"
#include "tier/fs.h"

namespace tier {

/// What the Files of one local file system share with it; it lives until the last of them has gone.
struct LocalHome {
  LocalHome(std::string directory, Descriptor descriptor, Runtime& runtime_in)
      : directory_path(std::move(directory)), root(std::move(descriptor)), runtime(runtime_in), ring(runtime_in) {}

  std::string place(std::string_view path) const {
    std::string whole = directory_path;
    if (!path.empty()) {
      if (whole.back() != '/') whole += '/';
      whole += path;
    }
    return whole;
  }

  const std::string directory_path;
  const Descriptor root;
  Runtime& runtime;
  LocalRing ring;
};

class LocalFile : public File {
 public:
  /// A checked regular file.
  struct Opened {
    std::shared_ptr<LocalHome> home;
    std::string path;
    Descriptor descriptor;
    LocalInode* inode = nullptr;
    std::unique_ptr<LocalOwner> owner;  // set for an owner; it is registered with the descriptor
    FileMode mode = FileMode::kBuffered;
    std::uint32_t alignment = 1;
    bool writable = false;
    bool async = false;
  };

  explicit LocalFile(Opened opened);
  ~LocalFile() override;

  Result<std::size_t> read_at(std::uint64_t offset, MutableByteSpan into) override;
  using File::write_at;
  Status write_at(std::uint64_t offset, std::span<const ByteSpan> parts) override;
  Status sync(SyncKind kind) override;
  Status allocate(std::uint64_t offset, std::uint64_t length) override;
  Status punch(std::uint64_t offset, std::uint64_t length) override;
  Status truncate(std::uint64_t size) override;
  Result<FileInfo> info() override;
  Result<MutableByteSpan> mapping(std::uint64_t offset, std::uint64_t length) override;
  FileMode mode() const noexcept override { return mode_; }
  std::uint32_t alignment() const noexcept override { return alignment_; }
  void start(IoOp& op) override;

  // For the ring.
  int descriptor() const noexcept { return fd_; }
  void begin_operation() noexcept { in_flight_.fetch_add(1, std::memory_order_relaxed); }
  /// [D4] release: pairs with the acquire in the destructor.
  void end_operation() noexcept { in_flight_.fetch_sub(1, std::memory_order_release); }
  /// Takes the kernel's answer to `op`; false when there is more of it to do.
  bool advance(IoOp& op, int result);

 protected:
  /// kClosing in a child of fork (D2).
  Status check_alive() const;
  /// Alive, below the largest size, and aligned.
  Status check_range(std::uint64_t offset, std::uint64_t length) const;
  Status check_aligned(std::uint64_t offset, ByteSpan bytes) const;
  /// A range that may be changed: writable and not poisoned too.
  Status check_change(std::uint64_t offset, std::uint64_t length) const;
  Status check_write(std::uint64_t offset, std::span<const ByteSpan> parts, std::uint64_t& total) const;
  void poison(int system_errno) noexcept;
  /// Reads the real size and remembers it for copies through a mapping.
  Result<std::uint64_t> refresh_size();
  std::string place() const { return home_->place(path()); }
  bool inherited() const noexcept;
  bool writable() const noexcept { return writable_; }
  LocalInode& inode() noexcept { return inode_; }
  LocalHome& home() noexcept { return *home_; }
  /// A shared mapping; what an owner maps is not there in a child of fork, where it would keep the lock alive (L2).
  void* map(std::uint64_t offset, std::uint64_t length) const noexcept;

 private:
  struct Mapping {
    std::byte* base;
    std::uint64_t size;
    std::uint64_t offset;
    std::uint64_t end;
  };

  const std::shared_ptr<LocalHome> home_;
  Descriptor descriptor_;
  std::unique_ptr<LocalOwner> owner_;
  const int fd_;
  LocalInode& inode_;
  const FileMode mode_;
  const std::uint32_t alignment_;
  const bool writable_;
  const bool async_;
  std::atomic<int> poisoned_{0};  // the errno of the failed sync
  std::atomic<std::uint32_t> in_flight_{0};
  std::vector<Mapping> mappings_;  // under inode_.resize
};

/// kMapped: read_at and write_at below the size are copies through a window onto the file.
///
/// Invariants  (W1) no store goes to a page whose block is not there: the page is populated first, which answers a full
///                  disk with an error where the store would end the process (SIGBUS); pwrite then says what is wrong.
///             (W2) no load goes to a hole, for some file systems fill it at a load and then run full as in W1.
/// Errors      An unreadable page of the medium still ends the process, as with every mapping, and so does another
///             process that cuts the file: use kBuffered for files that are not trusted.
class LocalMappedFile final : public LocalFile {
 public:
  explicit LocalMappedFile(Opened opened);
  ~LocalMappedFile() override;

  /// Whether the file can be mapped at all; else it is to be opened kBuffered.
  bool map_window();

  Result<std::size_t> read_at(std::uint64_t offset, MutableByteSpan into) override;
  using File::write_at;
  Status write_at(std::uint64_t offset, std::span<const ByteSpan> parts) override;

 private:
  /// Makes the window reach `end`.
  bool reach(std::uint64_t end);
  bool populate(std::uint64_t offset, std::uint64_t end);
  bool backed(std::uint64_t offset, std::uint64_t end);

  /// Where blocks are known to be, as long as nothing was punched or cut since.
  struct Known {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t holes = 0;  // LocalInode::holes then
    bool has(std::uint64_t from, std::uint64_t to, std::uint64_t holes_now) const noexcept {
      return holes == holes_now && from >= begin && to <= end;
    }
  };

  SharedMutex window_mutex_;
  std::byte* window_ = nullptr;
  std::uint64_t window_size_ = 0;
  Mutex known_mutex_;
  Known populated_ TIER_GUARDED_BY(known_mutex_);
  Known data_ TIER_GUARDED_BY(known_mutex_);
};

}  // namespace tier
