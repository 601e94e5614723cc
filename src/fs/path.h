/// Paths inside a file system: what every implementation shares beside check_path().
#pragma once

#include <string>
#include <string_view>

namespace tier {

inline constexpr std::size_t kPathMax = 4096;
inline constexpr std::size_t kNameMax = 255;

/// `text` for a message: control bytes, quotes and backslashes escaped as \xNN, at most 120 bytes of it.
std::string shown(std::string_view text);

/// A valid path in two: "a/b/c" is "a/b" and "c"; "c" is "" and "c".
struct SplitPath {
  std::string_view parent;
  std::string_view name;
};
SplitPath split_path(std::string_view path) noexcept;

}  // namespace tier
