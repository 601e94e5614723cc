#include "place.h"

#include <cctype>
#include <cerrno>
#include <climits>
#include <cstdlib>

namespace tier::cli {
namespace {

/// Only what a URL would read otherwise.
std::string percent_encoded(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (c == '%' || c == '#' || c == '?') {
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      out += c;
    }
  }
  return out;
}

/// The absolute path without links; kNotFound, kAccess, ...
Result<std::string> resolved(const std::string& path) {
  char buffer[PATH_MAX];
  if (::realpath(path.c_str(), buffer) != nullptr) return std::string(buffer);
  return fail(code_of_errno(errno), errno, "cannot find it; check the path", "'%s'", path.c_str());
}

}  // namespace

bool is_url(std::string_view text) noexcept {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  for (const char c : text.substr(0, colon)) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '+' && c != '-' && c != '_') return false;
  }
  return true;
}

Result<std::string> url_of_plain_path(const std::string& path) {
  if (path.empty()) return Status(Code::kInvalid, "the path is empty; name a file");
  std::string full;
  if (auto whole = resolved(path); whole.ok()) {
    full = *whole;
  } else if (whole.code() != Code::kNotFound) {
    return whole.status();
  } else {  // not there yet: its directory has to be
    const std::size_t slash = path.rfind('/');
    const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
    if (name.empty()) return whole.status();
    TIER_TRY(full, resolved(slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash)));
    if (full.back() != '/') full += '/';
    full += name;
  }
  const std::size_t slash = full.rfind('/');
  return "local://" + percent_encoded(slash == 0 ? "/" : full.substr(0, slash)) + "#" +
         percent_encoded(full.substr(slash + 1));
}

Result<Place> open_place(const std::string& url_or_path) {
  std::string text = url_or_path;
  if (!is_url(text)) {
    TIER_TRY(text, url_of_plain_path(text));
  }
  TIER_TRY(const Url url, parse_url(text));
  Place place;
  TIER_TRY(place.fs, open_file_system(url.file_system));
  place.path = url.path;
  return place;
}

}  // namespace tier::cli
