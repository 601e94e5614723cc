#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace tier {

std::atomic<PointHook> point_hook{nullptr};

#ifdef TIER_PLANTED_BUGS
std::string_view planted_bug;
#endif

void panic(const char* expression, const char* file, int line) noexcept {
  std::fprintf(stderr, "tier: %s:%d: invariant broken, going on could damage data: %s\n", file, line, expression);
  std::abort();
}

}  // namespace tier
