/// What the shipped library says when it must stop, and that a point costs nothing unless somebody listens.
#include "base/assert.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tier {
namespace {

TEST(AssertDeathTest, ABrokenInvariantNamesItselfAndEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const int two = 2;
  EXPECT_DEATH(TIER_ASSERT(1 + 1 == two + 1), "assert_test.cc:[0-9]+: invariant broken.*1 \\+ 1 == two \\+ 1");
  TIER_ASSERT(1 + 1 == two);
}

std::vector<std::string> heard;

TEST(Point, IsHeardOnlyByAHook) {
  TIER_POINT("before");
  point_hook.store([](const char* name) { heard.emplace_back(name); });
  TIER_POINT("during");
  point_hook.store(nullptr);
  TIER_POINT("after");
  EXPECT_EQ(heard, std::vector<std::string>{"during"});
}

TEST(PlantedBug, IsNotInWhatShips) {
  static_assert(!TIER_BUG("anything"));
}

}  // namespace
}  // namespace tier
