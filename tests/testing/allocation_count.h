/// How many times this thread has called operator new: programs that link this file (tests/CMakeLists.txt) replace it to count.
#pragma once

#include <cstddef>

namespace tier::testing {

std::size_t allocation_count() noexcept;

}  // namespace tier::testing
