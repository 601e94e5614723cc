#include "testing/allocation_count.h"

#include <cstdlib>
#include <new>

namespace tier::testing {
namespace {

thread_local std::size_t count = 0;

}  // namespace

std::size_t allocation_count() noexcept { return count; }

static void* counted(std::size_t size) {
  ++count;
  void* p = std::malloc(size == 0 ? 1 : size);
  if (p == nullptr) std::abort();
  return p;
}

}  // namespace tier::testing

void* operator new(std::size_t size) { return tier::testing::counted(size); }
void* operator new[](std::size_t size) { return tier::testing::counted(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return tier::testing::counted(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return tier::testing::counted(size); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
