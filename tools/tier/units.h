/// Sizes and times as people write and read them: 64MiB, 10ms; "1.25 GiB", "3.4 ms", "18,957".
///
/// K, M, G, T mean powers of 1024, with or without `iB` or `B`; a bare number is bytes. A bare duration is seconds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tier/result.h"
#include "tier/runtime.h"

namespace tier::cli {

/// kInvalid for what is no size or does not fit 63 bits.
Result<std::uint64_t> parse_size(std::string_view text);
/// kInvalid for what is no duration; ns, us, ms, s, m, h.
Result<Duration> parse_duration(std::string_view text);

std::string human_bytes(double bytes);
std::string human_rate(double per_second);  ///< "1.52 M"
std::string human_duration(double nanoseconds);
std::string with_commas(std::uint64_t n);
/// "1 record", "2 records".
std::string counted(std::uint64_t n, std::string_view noun);

}  // namespace tier::cli
