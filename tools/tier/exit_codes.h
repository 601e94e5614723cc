/// What a verb returns, and how it says what failed.
///
/// Shape       0 ok · 1 failed · 2 the command line was wrong · 130 interrupted (Ctrl-C, SIGTERM), after draining.
///             A reader that goes away (`tier log cat URL | head`) is no failure: the verb ends quietly with 0.
/// Outcomes    errors go to stderr as "tier: message", then a "hint:" line when there is something to try.
#pragma once

#include <string>
#include <string_view>

#include "tier/status.h"

namespace tier::cli {

enum Exit : int { kExitOk = 0, kExitFailed = 1, kExitUsage = 2, kExitInterrupted = 130 };

/// "tier: text" on stderr.
void complain(std::string_view text);
void hint(std::string_view text);

/// Prints `status` and what to try about it; `url` is the store's, for commands to copy. Returns kExitFailed.
int report(const Status& status, std::string_view url);

}  // namespace tier::cli
