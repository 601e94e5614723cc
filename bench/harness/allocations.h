/// How many heap blocks this process has asked for: the harness replaces the global operator new (peers in shared
/// libraries included). All threads count, so what a background committer allocates is charged to the case that runs.
#pragma once

#include <cstdint>

namespace tier::bench {

std::uint64_t allocations() noexcept;

}  // namespace tier::bench
