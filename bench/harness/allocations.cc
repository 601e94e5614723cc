#include "harness/allocations.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::uint64_t> count{0};

void* take(std::size_t size, std::size_t alignment) {
  // relaxed: a statistic; who reads it has joined or outwaited those who count.
  count.fetch_add(1, std::memory_order_relaxed);
  const std::size_t n = size == 0 ? 1 : size;
  void* p = alignment <= alignof(std::max_align_t)
                ? std::malloc(n)
                : std::aligned_alloc(alignment, (n + alignment - 1) & ~(alignment - 1));
  if (p == nullptr) std::abort();  // no figure of a machine out of memory is worth having
  return p;
}

}  // namespace

namespace tier::bench {
std::uint64_t allocations() noexcept { return count.load(std::memory_order_relaxed); }  // relaxed: see take()
}  // namespace tier::bench

// The array and nothrow forms of the standard library call these.
void* operator new(std::size_t size) { return take(size, 0); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return take(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
