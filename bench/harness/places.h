/// Places: the file systems that cases run on, and a scratch store in one of them for one repetition.
///
/// Shape       mem    a fresh `mem:` each time
///             tmpfs  local:///dev/shm/tier-bench-...
///             local  local:// a folder on a real disk: under TIER_BENCH_DIR, TMPDIR, /tmp or /var/tmp, the first that
///             is no tmpfs and has room
///             TIER_BENCH_FS = mem | tmpfs | local keeps one of these; a URL puts every case on that file system
///             instead.
/// Invariants  (P1) everything lies in folders of this program's own, which are removed when it ends.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "tier/fs.h"

namespace tier::bench {

struct Place {
  std::string kind;       ///< as it stands in case names: mem, tmpfs, local, or the URL's scheme
  std::string url;        ///< of the file system
  std::string directory;  ///< the same place to the operating system, for limits and peers; "" if there is none
};

/// A folder with less room than this is passed over. Before the first places().
void need_space(std::uint64_t bytes) noexcept;

/// Those of `kinds` that are wanted and exist here; the one of TIER_BENCH_FS if that is a URL. A durable one skips
/// memory.
std::vector<Place> places(std::initializer_list<const char*> kinds, bool durable = false);

/// The place that stands in for `place` where only the operating system's files will do: itself, or tmpfs for memory.
/// Its kind is "" if there is none.
Place place_of_files(const Place& place);

/// A store's own folder for one repetition, removed with all that is in it by the destructor. Close the store first.
class Scratch {
 public:
  explicit Scratch(const Place& place);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const Status& status() const noexcept { return status_; }
  const std::shared_ptr<FileSystem>& file_system() const noexcept { return fs_; }
  const std::string& path() const noexcept { return path_; }
  /// URL of a store in it, for another process.
  std::string url() const { return url_ + "#" + path_; }

 private:
  std::string url_;
  std::string path_;
  std::shared_ptr<FileSystem> fs_;
  Status status_;
};

/// A path that nothing uses in `place.directory`, for a peer's files; `remove_path` removes what came to be there.
std::string fresh_path(const Place& place);
void remove_path(const std::string& path) noexcept;

}  // namespace tier::bench
