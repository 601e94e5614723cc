#include "fs/path.h"

#include "tier/fs.h"

namespace tier {

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 120;
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const char c : text.substr(0, kMost)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || c == '\'' || c == '\\') {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  if (text.size() > kMost) out += "...";
  return out;
}

SplitPath split_path(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {{}, path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

Status check_path(std::string_view path, bool allow_root) {
  const auto refuse = [path](const char* text) {
    return fail(Code::kInvalid, 0, text, "path '%s'", shown(path).c_str());
  };
  if (path.empty()) return allow_root ? Status{} : refuse("the path is empty; name a file below the root");
  if (path.size() > kPathMax)
    return fail(Code::kInvalid, 0, "the path is too long; shorten it", "path '%s', %zu bytes, limit %zu",
                shown(path).c_str(), path.size(), kPathMax);
  if (path.find('\0') != std::string_view::npos) return refuse("the path holds a NUL byte; remove it");
  if (path.front() == '/') return refuse("the path is absolute; paths are relative to the file system's root");
  for (std::size_t begin = 0; begin <= path.size();) {
    std::size_t end = path.find('/', begin);
    if (end == std::string_view::npos) end = path.size();
    const std::string_view name = path.substr(begin, end - begin);
    if (name.empty()) return refuse("the path has an empty component; remove the extra slash");
    if (name == "." || name == "..") return refuse("the path has a '.' or '..' component; name the file directly");
    if (name.size() > kNameMax)
      return fail(Code::kInvalid, 0, "a component of the path is too long; shorten it",
                  "path '%s', component of %zu bytes, limit %zu", shown(path).c_str(), name.size(), kNameMax);
    begin = end + 1;
  }
  return {};
}

}  // namespace tier
