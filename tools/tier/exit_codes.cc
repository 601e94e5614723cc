#include "exit_codes.h"

#include <cstdio>

#include <fmt/core.h>

namespace tier::cli {
namespace {

std::string hint_for(Code code, std::string_view url) {
  switch (code) {
    case Code::kLocked:
      return fmt::format("another process writes this store; reading beside it works: tier log tail '{}'", url);
    case Code::kCorruption: return fmt::format("list every damaged place with: tier log verify '{}'", url);
    case Code::kPoisoned:
      return "a sync failed, so nothing more was acknowledged; check the disk, then run again: opening recovers";
    case Code::kDiskFull: return "what was acknowledged is safe; free some space and run again";
    case Code::kExists: return fmt::format("append to it with: tier log append '{}' --input FILE", url);
    default: return {};
  }
}

}  // namespace

void complain(std::string_view text) { fmt::print(stderr, "tier: {}\n", text); }

void hint(std::string_view text) { fmt::print(stderr, "hint: {}\n", text); }

int report(const Status& status, std::string_view url) {
  complain(status.message());
  if (const std::string text = hint_for(status.code(), url); !text.empty()) hint(text);
  return kExitFailed;
}

}  // namespace tier::cli
