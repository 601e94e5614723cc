/// URLs: scheme ':' location ['#' path], each part percent-decoded exactly once and checked after that, so that no
/// encoded '..', '/' or NUL passes a check that the plain one would not.
#include <string>

#include "fs/path.h"
#include "fs/registry.h"
#include "tier/fs.h"

namespace tier {
namespace {

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Status refuse(std::string_view url, const char* text) {
  return fail(Code::kInvalid, 0, text, "url '%s'", shown(url).c_str());
}

Result<std::string> decode(std::string_view part, std::string_view url) {
  std::string out;
  out.reserve(part.size());
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (part[i] != '%') {
      out += part[i];
      continue;
    }
    const int high = i + 2 < part.size() ? hex_value(part[i + 1]) : -1;
    const int low = i + 2 < part.size() ? hex_value(part[i + 2]) : -1;
    if (high < 0 || low < 0) return refuse(url, "'%' is not followed by two hex digits; write %25 for the sign itself");
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  if (out.find('\0') != std::string::npos) return refuse(url, "the URL holds a NUL byte; remove it");
  return out;
}

/// "///var/lib/app" -> "/var/lib/app".
Result<std::string> local_location(std::string_view location, std::string_view url) {
  if (location.empty() || location == "//")
    return refuse(url, "the directory is missing; write local:///absolute/directory");
  if (!location.starts_with("///"))
    return refuse(url, "the directory must be absolute and without a host; write local:///absolute/directory");
  TIER_TRY(std::string path, decode(location.substr(2), url));
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (path.size() > 1) {
    if (const Status s = check_path(std::string_view(path).substr(1)); !s.ok()) return refuse(url, s.text());
  }
  return path;
}

Result<std::string> mem_location(std::string_view location, std::string_view url) {
  TIER_TRY(std::string name, decode(location, url));
  if (name.find('/') != std::string::npos) return refuse(url, "a memory file system's name has no '/'; write mem:name");
  if (const Status s = check_path(name, true); !s.ok()) return refuse(url, s.text());
  return name;
}

}  // namespace

Result<Url> parse_url(std::string_view url) {
  constexpr std::size_t kUrlMax = 4 * kPathMax;
  if (url.size() > kUrlMax)
    return fail(Code::kInvalid, 0, "the URL is too long; shorten it", "url '%s', %zu bytes, limit %zu",
                shown(url).c_str(), url.size(), kUrlMax);
  if (url.empty()) return refuse(url, "the URL is empty; use mem: or local:///absolute/directory");
  if (url.find('\0') != std::string_view::npos) return refuse(url, "the URL holds a NUL byte; remove it");
  const std::size_t hash = url.find('#');
  const std::string_view base = url.substr(0, hash);
  const std::string_view fragment = hash == std::string_view::npos ? std::string_view{} : url.substr(hash + 1);
  const std::size_t colon = base.find(':');
  if (colon == std::string_view::npos || colon == 0)
    return refuse(url, "a URL begins with its scheme; use mem: or local:///absolute/directory");

  Url out;
  out.scheme = base.substr(0, colon);
  out.file_system = base;
  if (find_scheme(out.scheme) == nullptr) return refuse(url, "unknown scheme; use mem: or local:///absolute/directory");
  const std::string_view location = base.substr(colon + 1);
  if (location.find('?') != std::string_view::npos)
    return refuse(url, "a URL has no '?' part; write %3F for the sign itself");
  if (out.scheme == "local") {
    TIER_TRY(out.location, local_location(location, url));
  } else if (out.scheme == "mem") {
    TIER_TRY(out.location, mem_location(location, url));
  } else {
    TIER_TRY(out.location, decode(location, url));
  }

  if (fragment.find('#') != std::string_view::npos)
    return refuse(url, "a URL has one '#' at most; write %23 for the sign itself");
  TIER_TRY(out.path, decode(fragment, url));
  if (const Status s = check_path(out.path, true); !s.ok()) return refuse(url, s.text());
  return out;
}

}  // namespace tier
