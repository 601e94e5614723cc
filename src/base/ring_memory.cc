#include "base/ring_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace tier {

RingMemory::~RingMemory() {
  if (data_ != nullptr) ::munmap(data_, size_ * 2);
}

Result<RingMemory> RingMemory::create(std::size_t size) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (size == 0 || (size & (size - 1)) != 0 || size % page != 0)
    return fail(Code::kInvalid, 0, "a ring's size is a power of two and a multiple of the page size", "%zu bytes", size);
  const auto failed = [size](const char* step) {
    return fail(Code::kOutOfMemory, errno, "cannot map the ring; lower ring_size or raise the memory limits",
                "%s, %zu bytes", step, size);
  };
  const int fd = ::memfd_create("tier-ring", MFD_CLOEXEC);
  if (fd < 0) return failed("memfd_create");
  if (::ftruncate(fd, static_cast<off_t>(size)) != 0) {
    const Status s = failed("ftruncate");
    ::close(fd);
    return s;
  }
  // Reserve both halves at once, then lay the same pages over each.
  void* base = ::mmap(nullptr, size * 2, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    const Status s = failed("reserve");
    ::close(fd);
    return s;
  }
  RingMemory ring;
  ring.data_ = static_cast<std::byte*>(base);
  ring.size_ = size;
  for (int half = 0; half < 2; ++half) {
    void* at = ring.data_ + static_cast<std::size_t>(half) * size;
    if (::mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
      const Status s = failed("map");
      ::close(fd);
      return s;
    }
  }
  ::close(fd);  // the mappings keep the pages
  // A forked child must not write into its parent's ring.
  ::madvise(ring.data_, size * 2, MADV_DONTFORK);
  return ring;
}

void RingMemory::populate() const noexcept {
#ifdef MADV_POPULATE_WRITE
  // Where the kernel cannot, the faults come one by one, as they would have.
  ::madvise(data_, size_ * 2, MADV_POPULATE_WRITE);
#endif
}

}  // namespace tier
