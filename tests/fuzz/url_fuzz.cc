/// Any text as a URL and as a path: no crash, and what is accepted is safe (F1) and means the same when it is parsed again.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tier/fs.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

/// What check_path() promises, said once more.
void require_safe(std::string_view path) {
  require(path.size() <= 4096);
  require(path.find('\0') == std::string_view::npos);
  if (path.empty()) return;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view component = path.substr(begin, end - begin);
    require(!component.empty() && component != "." && component != ".." && component.size() <= 255);
    if (end == path.size()) return;
    begin = end + 1;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto url = tier::parse_url(text); url.ok()) {
    require(!url->scheme.empty());
    require_safe(url->path);
    require(tier::check_path(url->path, true).ok());
    require(url->location.find('\0') == std::string::npos);
    // Without its fragment it is the same place.
    const auto again = tier::parse_url(url->file_system);
    require(again.ok() && again->path.empty() && again->scheme == url->scheme && again->location == url->location);
  } else {
    require(*url.status().text() != '\0');
  }
  if (tier::check_path(text).ok()) {
    require(!text.empty());
    require_safe(text);
  }
  if (tier::check_path(text, true).ok()) require_safe(text);
  return 0;
}
