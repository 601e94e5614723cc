/// Assertions, planted bugs and named points.
///
/// TIER_ASSERT  every build, O(1), guards data: on failure the panic hook may log, then the process ends.
/// TIER_DCHECK  debug, test and sanitizer builds; may be slow.
/// TIER_POINT   a named place where a test may kill the process or cut the power; one relaxed load when nobody listens.
/// TIER_BUG     a planted bug: false in what ships (a constant); test builds (-DTIER_PLANTED_BUGS) switch one on to show
///              that the crash harness catches it.
#pragma once

#include <atomic>
#include <string_view>

namespace tier {

[[noreturn]] [[gnu::cold]] void panic(const char* expression, const char* file, int line) noexcept;

using PointHook = void (*)(const char* name);
extern std::atomic<PointHook> point_hook;

#ifdef TIER_PLANTED_BUGS
/// The bug that is switched on, "" for none. Set by tests while nothing runs.
extern std::string_view planted_bug;
#endif

}  // namespace tier

#define TIER_ASSERT(expression)                                             \
  do {                                                                      \
    if (!(expression)) [[unlikely]] ::tier::panic(#expression, __FILE__, __LINE__); \
  } while (false)

#ifdef NDEBUG
#define TIER_DCHECK(expression) \
  do {                          \
  } while (false && (expression))
#else
#define TIER_DCHECK(expression) TIER_ASSERT(expression)
#endif

#define TIER_POINT(name)                                                                           \
  do {                                                                                             \
    /* relaxed: a test sets the hook before it starts what it watches. */                          \
    if (auto hook = ::tier::point_hook.load(std::memory_order_relaxed); hook != nullptr) [[unlikely]] \
      hook(name);                                                                                  \
  } while (false)

#ifdef TIER_PLANTED_BUGS
#define TIER_BUG(name) (::tier::planted_bug == (name))
#else
#define TIER_BUG(name) false
#endif
