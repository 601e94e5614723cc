#include "harness/places.h"

#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

namespace tier::bench {
namespace {

namespace stdfs = std::filesystem;

std::uint64_t space_needed = 0;

bool has_room(const std::string& directory) {
  struct statfs info {};
  return ::statfs(directory.c_str(), &info) == 0 &&
         static_cast<std::uint64_t>(info.f_bavail) * static_cast<std::uint64_t>(info.f_bsize) >= space_needed;
}

bool in_memory(const std::string& directory) {
  struct statfs info {};
  return ::statfs(directory.c_str(), &info) == 0 && (info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC);
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

/// A folder of our own under `parent`, or "" if there can be none.
std::string make_folder(const std::string& parent) {
  if (!has_room(parent)) {
    std::fprintf(stderr, "%s has less than %llu MiB free, or is not there: not used\n", parent.c_str(),
                 static_cast<unsigned long long>(space_needed >> 20));
    return {};
  }
  std::string name = parent + "/tier-bench-XXXXXX";
  return ::mkdtemp(name.data()) == nullptr ? std::string() : name;
}

/// Where tmpfs is; scripts/bench gives a folder of its own there, which it removes even if this program is killed.
std::string memory_folder() {
  const std::string given = environment("TIER_BENCH_SHM");
  return given.empty() ? "/dev/shm" : given;
}

std::string local_url(const std::string& directory) {
  std::string url = "local://";
  for (const char c : directory) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("/._-~").find(c) != std::string_view::npos;
    if (plain) {
      url += c;
    } else {
      char code[4];
      std::snprintf(code, sizeof(code), "%%%02X", static_cast<unsigned>(static_cast<unsigned char>(c)));
      url += code;
    }
  }
  return url;
}

/// Found once; the folders go when the program ends.
class World {
 public:
  World() {
    const std::string wanted = environment("TIER_BENCH_FS");
    if (wanted.find(':') != std::string::npos) {
      add_url(wanted);
      return;
    }
    if (wanted.empty() || wanted == "mem") all_.push_back({"mem", "mem:", ""});
    if (wanted.empty() || wanted == "tmpfs") add_folder("tmpfs", make_folder(memory_folder()));
    if (wanted.empty() || wanted == "local") add_disk();
    if (all_.empty()) {
      std::fprintf(stderr, "TIER_BENCH_FS='%s': use mem, tmpfs, local or a URL, and see that it can be written\n",
                   wanted.c_str());
      std::exit(2);
    }
  }
  ~World() {
    for (const std::string& folder : folders_) remove_path(folder);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  std::vector<Place> all_;
  bool one_url_ = false;

  Place files_for_memory() {
    if (!stand_in_) {
      stand_in_ = Place{};
      const auto tmpfs = std::find_if(all_.begin(), all_.end(), [](const Place& p) { return p.kind == "tmpfs"; });
      if (tmpfs != all_.end()) {
        stand_in_ = *tmpfs;
      } else if (const std::string folder = make_folder(memory_folder()); !folder.empty()) {
        folders_.push_back(folder);
        stand_in_ = Place{"tmpfs", local_url(folder), folder};
      }
    }
    return *stand_in_;
  }

 private:
  void add_folder(const char* kind, const std::string& folder) {
    if (folder.empty()) return;
    folders_.push_back(folder);
    all_.push_back({kind, local_url(folder), folder});
  }

  void add_disk() {
    for (const std::string& parent : {environment("TIER_BENCH_DIR"), environment("TMPDIR"), std::string("/tmp"),
                                      std::string("/var/tmp"), stdfs::current_path().string()}) {
      if (parent.empty() || in_memory(parent)) continue;
      if (const std::string folder = make_folder(parent); !folder.empty()) {
        add_folder("local", folder);
        return;
      }
    }
    std::fprintf(stderr, "no writable folder on a real disk: no `local` cases; set TIER_BENCH_DIR\n");
  }

  void add_url(const std::string& text) {
    one_url_ = true;
    const Result<Url> url = parse_url(text);
    if (!url.ok()) {
      std::fprintf(stderr, "TIER_BENCH_FS='%s': %s\n", text.c_str(), url.status().message().c_str());
      std::exit(2);
    }
    if (url->scheme != "local") {
      all_.push_back({url->scheme, url->scheme == "mem" ? "mem:" : url->file_system, ""});
      return;
    }
    std::error_code ignored;
    stdfs::create_directory(url->location, ignored);
    const std::string folder = make_folder(url->location);
    if (folder.empty()) {
      std::fprintf(stderr, "TIER_BENCH_FS='%s': cannot make a folder there\n", text.c_str());
      std::exit(2);
    }
    add_folder(in_memory(folder) ? "tmpfs" : "local", folder);
  }

  std::vector<std::string> folders_;
  std::optional<Place> stand_in_;
};

World& world() {
  static World one;
  return one;
}

std::string unique_name(const char* prefix) {
  static std::atomic<unsigned> next{0};
  // relaxed: only uniqueness matters.
  return prefix + std::to_string(::getpid()) + "-" + std::to_string(next.fetch_add(1, std::memory_order_relaxed));
}

void remove_tree(FileSystem& fs, const std::string& path) {
  if (const auto entries = fs.list(path); entries.ok()) {
    for (const DirectoryEntry& entry : *entries) {
      const std::string below = path + "/" + entry.name;
      if (entry.directory) {
        remove_tree(fs, below);
      } else {
        static_cast<void>(fs.remove(below, NameSync::kLater));
      }
    }
  }
  static_cast<void>(fs.remove(path, NameSync::kLater));
}

}  // namespace

void need_space(std::uint64_t bytes) noexcept { space_needed = bytes; }

std::vector<Place> places(std::initializer_list<const char*> kinds, bool durable) {
  std::vector<Place> wanted;
  for (const Place& place : world().all_) {
    const bool named = std::any_of(kinds.begin(), kinds.end(), [&](const char* kind) { return place.kind == kind; });
    if ((named || world().one_url_) && !(durable && place.kind == "mem")) wanted.push_back(place);
  }
  return wanted;
}

Place place_of_files(const Place& place) { return place.directory.empty() ? world().files_for_memory() : place; }

Scratch::Scratch(const Place& place) : url_(place.url), path_(unique_name("store-")) {
  Result<std::shared_ptr<FileSystem>> fs = open_file_system(place.url, {.create = true});
  if (fs.ok()) {
    fs_ = *std::move(fs);
  } else {
    status_ = fs.status();
  }
}

Scratch::~Scratch() {
  if (fs_ != nullptr) remove_tree(*fs_, path_);
}

std::string fresh_path(const Place& place) { return place.directory + "/" + unique_name("raw-"); }

void remove_path(const std::string& path) noexcept {
  std::error_code ignored;
  stdfs::remove_all(path, ignored);
}

}  // namespace tier::bench
