#include "fs/local_process.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <utility>

#include "base/assert.h"
#include "fs/local_calls.h"

namespace tier {
namespace {

struct LocalProcess {
  Mutex mutex{*Runtime::system().parker};
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::unique_ptr<LocalInode>> inodes TIER_GUARDED_BY(mutex);
  LocalOwner* owners TIER_GUARDED_BY(mutex) = nullptr;
  int harmless = -1;  // an O_PATH descriptor: cannot read, write or lock
  std::atomic<std::uint32_t> generation{0};
};

LocalProcess& process();

// Locked before a fork, unlocked on both sides after it.
TIER_NO_THREAD_SAFETY_ANALYSIS void before_fork() { process().mutex.lock(); }
TIER_NO_THREAD_SAFETY_ANALYSIS void after_fork_in_parent() { process().mutex.unlock(); }
TIER_NO_THREAD_SAFETY_ANALYSIS void after_fork_in_child() {
  LocalProcess& p = process();
  // relaxed: a child has one thread.
  p.generation.fetch_add(1, std::memory_order_relaxed);
  for (LocalOwner* o = p.owners; o != nullptr; o = o->next) {
    o->inherited.store(true, std::memory_order_relaxed);
    // L2. It fails only for a descriptor that is not ours, and then a child could write into a store it does not own.
    TIER_ASSERT(::dup3(p.harmless, o->fd, O_CLOEXEC) >= 0);
  }
  p.mutex.unlock();
}

LocalProcess& process() {
  static LocalProcess& p = *[] {
    auto* made = new LocalProcess;  // never destroyed: a File may outlive static destruction
    TIER_ASSERT(::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0);
    return made;
  }();
  return p;
}

}  // namespace

LocalInode& acquire_inode(dev_t device, ino_t number, std::uint64_t size) {
  LocalProcess& p = process();
  MutexLock lock(p.mutex);
  std::unique_ptr<LocalInode>& entry = p.inodes[{device, number}];
  if (entry == nullptr) {
    entry = std::make_unique<LocalInode>(*Runtime::system().parker);
    entry->device = device;
    entry->number = number;
    entry->size.store(size, std::memory_order_relaxed);  // nobody else has it yet
  }
  ++entry->users;
  return *entry;
}

void release_inode(LocalInode& inode) {
  LocalProcess& p = process();
  MutexLock lock(p.mutex);
  if (--inode.users == 0) p.inodes.erase({inode.device, inode.number});
}

bool open_owner(LocalOwner& owner, const std::function<int()>& open) {
  LocalProcess& p = process();
  MutexLock lock(p.mutex);
  if (p.harmless < 0) p.harmless = ::open("/", O_PATH | O_CLOEXEC);
  if (p.harmless < 0) return false;
  owner.fd = open();
  if (owner.fd < 0) return false;
  owner.next = p.owners;
  if (p.owners != nullptr) p.owners->previous = &owner;
  p.owners = &owner;
  return true;
}

void close_owner(LocalOwner& owner) {
  if (owner.fd < 0) return;
  LocalProcess& p = process();
  MutexLock lock(p.mutex);
  if (owner.previous != nullptr)
    owner.previous->next = owner.next;
  else
    p.owners = owner.next;
  if (owner.next != nullptr) owner.next->previous = owner.previous;
  Descriptor closed(owner.fd);
  owner.fd = -1;
}

LocalOwner::~LocalOwner() { close_owner(*this); }

// relaxed: it changes only in a child that has one thread.
std::uint32_t fork_generation() noexcept { return process().generation.load(std::memory_order_relaxed); }

}  // namespace tier
