/// What `local:` knows about its own process: the inodes that are open, and the descriptors that own a lock.
///
/// Invariants  (L1) an inode that is open has one LocalInode, so a truncation sees every mapping of it in this process.
///             (L2) a child of fork owns nothing: in it the descriptors of all owners are replaced by one that can
///                  neither write nor keep the lock alive, before fork() returns.
/// Threads     any. The one mutex here is held across fork(), so a child finds the tables whole.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/mutex.h"

namespace tier {

/// An inode with at least one open File.
struct LocalInode {
  explicit LocalInode(Parker& parker) noexcept : resize(parker) {}

  std::uint64_t device = 0;
  std::uint64_t number = 0;
  std::uint32_t users = 0;
  /// Exclusive: truncate, punch, mapping(). Shared: a copy through a mapping.
  SharedMutex resize;
  /// Ends of the mappings handed out.
  std::vector<std::uint64_t> held TIER_GUARDED_BY(resize);
  /// The size as far as it is known: never above the real one, unless another process cuts the file.
  std::atomic<std::uint64_t> size{0};
  /// Counts punches and truncations: what was known to have its blocks may have lost them.
  std::atomic<std::uint64_t> holes{0};
};

LocalInode& acquire_inode(dev_t device, ino_t number, std::uint64_t size);
void release_inode(LocalInode& inode);

/// A descriptor that owns a lock.
struct LocalOwner {
  LocalOwner() = default;
  ~LocalOwner();
  LocalOwner(const LocalOwner&) = delete;
  LocalOwner& operator=(const LocalOwner&) = delete;

  int fd = -1;
  /// In a child of the process that opened it.
  std::atomic<bool> inherited{false};
  LocalOwner* previous = nullptr;
  LocalOwner* next = nullptr;
};

/// Opens the descriptor that will own, with no fork between that and its registration (L2). False: errno is open's.
bool open_owner(LocalOwner& owner, const std::function<int()>& open);
/// Closes the descriptor too, so that no fork falls between.
void close_owner(LocalOwner& owner);

/// Counts the forks between the first process and this one: a ring of another generation must not be touched.
std::uint32_t fork_generation() noexcept;

}  // namespace tier
