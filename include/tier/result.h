/// Result<T>: a value or a Status. A thin [[nodiscard]] class over tl::expected, the one place to swap it later.
///
/// Result<T> converts from T and from a failed Status; `TIER_TRY(auto x, f());` passes a failure up and names the value;
/// `TIER_CHECK(f());` does the same for a Status.
#pragma once

#include <type_traits>
#include <utility>

#include <tl/expected.hpp>

#include "tier/status.h"

namespace tier {

template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  /// A Result made from success, without a value, is a bug of ours; it must not pass for success.
  Result(Status failure)  // NOLINT: failures convert
      : value_(tl::unexpect, failure.ok() ? Status(Code::kInvalid, "a result without a value and without a failure") : failure) {}
  template <class U = T>
    requires(std::is_constructible_v<T, U &&> && !std::is_same_v<std::remove_cvref_t<U>, Result> &&
             !std::is_same_v<std::remove_cvref_t<U>, Status>)
  Result(U&& value) : value_(std::forward<U>(value)) {}  // NOLINT: values convert

  bool ok() const noexcept { return value_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }
  Status status() const noexcept { return ok() ? Status{} : value_.error(); }
  Code code() const noexcept { return ok() ? Code::kOk : value_.error().code(); }

  T& operator*() & noexcept { return *value_; }
  const T& operator*() const& noexcept { return *value_; }
  T&& operator*() && noexcept { return *std::move(value_); }
  T* operator->() noexcept { return &*value_; }
  const T* operator->() const noexcept { return &*value_; }
  template <class U>
  T value_or(U&& other) const& {
    return ok() ? **this : static_cast<T>(std::forward<U>(other));
  }

 private:
  tl::expected<T, Status> value_;
};

namespace detail {
inline Status status_of(const Status& s) noexcept { return s; }
template <class T>
Status status_of(const Result<T>& r) noexcept {
  return r.status();
}
}  // namespace detail

}  // namespace tier

#define TIER_CONCAT_(a, b) a##b
#define TIER_CONCAT(a, b) TIER_CONCAT_(a, b)
#define TIER_TRY_(tmp, declaration, expression)                  \
  auto tmp = (expression);                                       \
  if (!tmp.ok()) [[unlikely]] return ::tier::detail::status_of(tmp); \
  declaration = *std::move(tmp)
/// Evaluates a Result; on failure returns its Status from this function, else `declaration = value`.
#define TIER_TRY(declaration, expression) TIER_TRY_(TIER_CONCAT(tier_try_, __LINE__), declaration, expression)
/// Evaluates a Status or Result; on failure returns the Status from this function.
#define TIER_CHECK(expression)                                                      \
  do {                                                                              \
    if (auto&& tier_check_ = (expression); !tier_check_.ok()) [[unlikely]]          \
      return ::tier::detail::status_of(tier_check_);                                \
  } while (false)
