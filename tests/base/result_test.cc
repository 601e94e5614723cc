/// Result: a value or a Status, and the two macros that pass failures up.
#include "tier/result.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

namespace tier {
namespace {

struct Base {
  virtual ~Base() = default;
};
struct Derived : Base {};

Result<int> half(int n) {
  if (n % 2 != 0) return fail(Code::kInvalid, EINVAL, "the number must be even", "number %d", n);
  return n / 2;
}

Result<int> quarter(int n, int& calls) {
  ++calls;
  TIER_TRY(const int once, half(n));
  TIER_TRY(const int twice, half(once));
  ++calls;
  return twice;
}

Status check_even(int n) {
  TIER_CHECK(half(n));
  TIER_CHECK(Status{});
  return {};
}

Result<std::string> describe(int n) {
  TIER_CHECK(check_even(n));
  return "even";
}

TEST(Result, HoldsAValue) {
  const Result<int> r = half(8);
  ASSERT_TRUE(r.ok());
  EXPECT_TRUE(static_cast<bool>(r));
  EXPECT_EQ(*r, 4);
  EXPECT_EQ(r.code(), Code::kOk);
  EXPECT_TRUE(r.status().ok());
  EXPECT_EQ(r.value_or(9), 4);
}

TEST(Result, HoldsAFailureWithItsPlace) {
  const Result<int> r = half(7);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.code(), Code::kInvalid);
  EXPECT_EQ(r.status().place(), "number 7");
  EXPECT_EQ(r.status().system_errno(), EINVAL);
  EXPECT_EQ(r.value_or(9), 9);
}

TEST(Result, TryNamesTheValueOrPassesTheFailureUp) {
  int calls = 0;
  const Result<int> good = quarter(12, calls);
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(*good, 3);
  EXPECT_EQ(calls, 2);

  const Result<int> second = quarter(6, calls);
  EXPECT_EQ(second.status().place(), "number 3");
  EXPECT_EQ(calls, 3);

  const Result<int> first = quarter(5, calls);
  EXPECT_EQ(first.status().place(), "number 5");
  EXPECT_EQ(calls, 4);
}

TEST(Result, CheckPassesFailuresOfResultsAndStatusesUp) {
  EXPECT_TRUE(check_even(2).ok());
  EXPECT_EQ(check_even(3).place(), "number 3");
  ASSERT_TRUE(describe(2).ok());
  EXPECT_EQ(*describe(2), "even");
  EXPECT_EQ(describe(3).status().place(), "number 3");
}

TEST(Result, MovesWhatCannotBeCopied) {
  Result<std::unique_ptr<Base>> r = std::make_unique<Derived>();
  ASSERT_TRUE(r.ok());
  const std::unique_ptr<Base> taken = *std::move(r);
  EXPECT_NE(taken, nullptr);
}

TEST(Result, ReachesIntoItsValue) {
  Result<std::string> r = std::string("tier");
  EXPECT_EQ(r->size(), 4u);
  r->push_back('s');
  EXPECT_EQ(*r, "tiers");
  const Result<std::string> copy = r;
  EXPECT_EQ(copy->size(), 5u);
}

}  // namespace
}  // namespace tier
