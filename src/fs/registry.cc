#include "fs/registry.h"

#include <string>
#include <vector>

#include "base/mutex.h"
#include "fs/path.h"

namespace tier {
namespace {

struct Scheme {
  std::string name;
  OpenFileSystem open;
};

/// Nothing waits inside its lock, so the system's parker serves under every runtime.
struct Registry {
  Mutex mutex{*Runtime::system().parker};
  std::vector<Scheme> schemes TIER_GUARDED_BY(mutex){{"mem", open_mem_file_system}, {"local", open_local_file_system}};

  OpenFileSystem find(std::string_view name) TIER_REQUIRES(mutex) {
    for (const Scheme& s : schemes)
      if (s.name == name) return s.open;
    return nullptr;
  }
};

Registry& registry() {
  static Registry r;
  return r;
}

bool valid_scheme(std::string_view name) {
  if (name.empty() || name.size() > 32 || name.front() < 'a' || name.front() > 'z') return false;
  return name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789+-.") == std::string_view::npos;
}

}  // namespace

OpenFileSystem find_scheme(std::string_view scheme) {
  Registry& r = registry();
  MutexLock lock(r.mutex);
  return r.find(scheme);
}

Status register_file_system(std::string_view scheme, OpenFileSystem open) {
  if (!valid_scheme(scheme) || open == nullptr)
    return fail(Code::kInvalid, 0,
                "a scheme is 1 to 32 lower-case letters, digits, '+', '-' or '.', and needs an opener", "scheme '%s'",
                shown(scheme).c_str());
  Registry& r = registry();
  MutexLock lock(r.mutex);
  if (r.find(scheme) != nullptr)
    return fail(Code::kExists, 0, "the scheme is already known; choose another name", "scheme '%s'",
                shown(scheme).c_str());
  r.schemes.push_back({std::string(scheme), open});
  return {};
}

Result<std::shared_ptr<FileSystem>> open_file_system(std::string_view url, const FileSystemOptions& options) {
  TIER_TRY(const Url parts, parse_url(url));
  if (url.find('#') != std::string_view::npos)
    return fail(Code::kUnsupported, 0, "a file system has no '#path'; open the part before it (parse_url splits them)",
                "url '%s'", shown(url).c_str());
  const OpenFileSystem open = find_scheme(parts.scheme);
  if (open == nullptr)
    return fail(Code::kInvalid, 0, "unknown scheme; use mem: or local:///dir", "url '%s'", shown(url).c_str());
  FileSystemOptions filled = options;
  if (filled.runtime == nullptr) filled.runtime = &Runtime::system();
  return open(parts, filled);
}

}  // namespace tier
