#include "testing/sim_fs.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "fs/path.h"
#include "testing/sim_file.h"
#include "tier/crc32c.h"

namespace tier::testing {

class SimFileSystem final : public FileSystem {
 public:
  SimFileSystem(std::shared_ptr<SimDisk> disk, SimRuntime* sim, std::string url)
      : view_{.disk = std::move(disk), .sim = sim, .poller = this}, url_(std::move(url)) {
    const std::lock_guard lock(view_.disk->mutex_);
    view_.generation = view_.disk->generation_;
  }

  std::string url() const override { return url_; }
  Capabilities capabilities() const noexcept override { return view_.disk->options().capabilities; }
  Result<std::unique_ptr<File>> open(std::string_view path, const OpenOptions& options) override;
  Result<FileInfo> stat(std::string_view path) override;
  Result<std::vector<DirectoryEntry>> list(std::string_view directory) override;
  Status create_directory(std::string_view path, NameSync when) override;
  Status remove(std::string_view path, NameSync when) override;
  Status rename(std::string_view from, std::string_view to, NameSync when) override;
  Status sync_directory(std::string_view directory) override;
  Result<SpaceInfo> space() override;
  Result<bool> locked(std::string_view path) override;
  Result<std::size_t> poll(Deadline until) override;

 private:
  using Inode = SimDisk::Inode;
  using NameChange = SimDisk::NameChange;

  // The lock is held.
  SimDisk::Call begin(std::uint32_t kind, std::string_view path) {
    return view_.disk->begin(kind, path, view_.generation, path.size(), crc32c_extend(0, as_bytes(path)));
  }
  /// The directory that holds the last component.
  Result<Inode*> parent_of(std::string_view path) const;
  Result<Inode*> find(std::string_view path) const;
  static Inode::Entries::iterator entry(Inode& directory, std::string_view path) {
    return directory.entries.find(split_path(path).name);
  }
  /// Makes the change, or part of it, or none, as the call says.
  Status carry_out(const SimDisk::Call& call, std::string_view path, const std::function<void()>& change);

  Status sync_if(NameSync when, std::string_view directory) {
    return when == NameSync::kNow ? sync_directory(directory) : Status{};
  }
  FileMode mode_for(FileMode wanted) const noexcept;
  bool removable(const Inode& node) const { return !node.directory || node.entries.empty(); }

  SimView view_;
  const std::string url_;
};

Result<SimFileSystem::Inode*> SimFileSystem::parent_of(std::string_view path) const {
  Inode* parent = view_.disk->lookup(split_path(path).parent, false);
  if (parent == nullptr) return sim_refused(ENOENT, "its directory does not exist; create it first", path, 0);
  if (!parent->directory)
    return sim_refused(ENOTDIR, "a component of the path is a file; choose another path", path, 0);
  return parent;
}

Result<SimFileSystem::Inode*> SimFileSystem::find(std::string_view path) const {
  Inode* node = view_.disk->lookup(path, false);
  if (node != nullptr) return node;
  TIER_CHECK(parent_of(path));
  return sim_refused(ENOENT, "there is no such file; check the name", path, 0);
}

Status SimFileSystem::carry_out(const SimDisk::Call& call, std::string_view path, const std::function<void()>& change) {
  if (call.error == 0 || call.partial) change();
  if (call.error != 0) return sim_refused(call.error, "cannot change the directory; check the disk", path, 0);
  if (!call.cut) return {};
  view_.disk->cut_locked();
  return sim_off(path);
}

FileMode SimFileSystem::mode_for(FileMode wanted) const noexcept {
  if (wanted == FileMode::kMapped && !view_.has(Capability::kMapping)) return FileMode::kBuffered;
  if (view_.has(Capability::kDirectIo)) return wanted;
  if (wanted == FileMode::kDirect) return FileMode::kBuffered;
  return wanted == FileMode::kDirectWriteThrough ? FileMode::kWriteThrough : wanted;
}

Result<std::unique_ptr<File>> SimFileSystem::open(std::string_view path, const OpenOptions& options) {
  TIER_CHECK(check_path(path));
  if ((options.create != Create::kNever || options.lock) && !options.write)
    return sim_refused(EINVAL, "creating and owning a file need OpenOptions::write", path, 0);
  if (options.lock && !view_.has(Capability::kLocking))
    return sim_refused(EOPNOTSUPP, "this file system cannot lock; open without OpenOptions::lock", path, 0);
  view_.pause();
  SimDisk& disk = *view_.disk;
  std::unique_ptr<File> file;
  bool created = false;
  {
    const std::lock_guard lock(disk.mutex_);
    Inode* node = disk.lookup(path, false);
    const bool creates = node == nullptr && options.create != Create::kNever;
    const SimDisk::Call call = begin(creates ? kSimCreate : kSimOpen, path);
    TIER_CHECK(call.status);
    if (!creates && call.error != 0) return sim_refused(call.error, "cannot open; check the disk", path, 0);
    if (disk.options_.handles != 0 && disk.handles_ >= disk.options_.handles)
      return sim_refused(EMFILE, "too many open files; raise the limit", path, 0);
    if (creates) {
      TIER_TRY(Inode* const parent, parent_of(path));
      TIER_CHECK(carry_out(call, path, [&] {
        node = &disk.make_inode(false);
        disk.change_name({.kind = NameChange::Kind::kCreate,
                          .directory = parent->id,
                          .name = std::string(split_path(path).name),
                          .inode = node->id});
      }));
      created = true;
    } else {
      TIER_TRY(node, find(path));
      if (options.create == Create::kExclusive) return sim_refused(EEXIST, "the file is already there", path, 0);
      if (node->directory) return sim_refused(EISDIR, "this is a directory; name a file in it", path, 0);
    }
    if (options.lock) {
      if (node->owner != 0)
        return fail(Code::kLocked, EAGAIN, "another owner holds the file; close it there first", "sim file '%s'",
                    shown(path).c_str());
      node->owner = disk.next_owner_++;
    }
    ++node->opens;
    ++disk.handles_;
    file = std::make_unique<SimFile>(view_, std::string(path), node->id, options, mode_for(options.mode));
  }
  if (created) TIER_CHECK(sync_if(options.name_sync, split_path(path).parent));
  view_.pause();
  return file;
}

Result<FileInfo> SimFileSystem::stat(std::string_view path) {
  TIER_CHECK(check_path(path, true));
  view_.pause();
  const std::lock_guard lock(view_.disk->mutex_);
  const SimDisk::Call call = begin(kSimStat, path);
  TIER_CHECK(call.status);
  if (call.error != 0) return sim_refused(call.error, "cannot ask for the file; check the disk", path, 0);
  TIER_TRY(const Inode* const node, find(path));
  return FileInfo{.size = node->cache.size(), .allocated = node->cache.allocated(), .directory = node->directory};
}

Result<std::vector<DirectoryEntry>> SimFileSystem::list(std::string_view directory) {
  TIER_CHECK(check_path(directory, true));
  view_.pause();
  const std::lock_guard lock(view_.disk->mutex_);
  const SimDisk::Call call = begin(kSimList, directory);
  TIER_CHECK(call.status);
  if (call.error != 0) return sim_refused(call.error, "cannot list; check the disk", directory, 0);
  TIER_TRY(const Inode* const node, find(directory));
  if (!node->directory) return sim_refused(ENOTDIR, "this is a file; name a directory", directory, 0);
  std::vector<DirectoryEntry> entries;
  entries.reserve(node->entries.size());
  for (const auto& [name, id] : node->entries) entries.push_back({name, view_.disk->inode(id)->directory});
  return entries;
}

Status SimFileSystem::create_directory(std::string_view path, NameSync when) {
  TIER_CHECK(check_path(path));
  view_.pause();
  {
    SimDisk& disk = *view_.disk;
    const std::lock_guard lock(disk.mutex_);
    const SimDisk::Call call = begin(kSimCreateDirectory, path);
    TIER_CHECK(call.status);
    TIER_TRY(Inode* const parent, parent_of(path));
    if (entry(*parent, path) != parent->entries.end())
      return sim_refused(EEXIST, "the name is taken; choose another", path, 0);
    TIER_CHECK(carry_out(call, path, [&] {
      disk.change_name({.kind = NameChange::Kind::kCreate,
                        .directory = parent->id,
                        .name = std::string(split_path(path).name),
                        .inode = disk.make_inode(true).id});
    }));
  }
  return sync_if(when, split_path(path).parent);
}

Status SimFileSystem::remove(std::string_view path, NameSync when) {
  TIER_CHECK(check_path(path));
  view_.pause();
  {
    SimDisk& disk = *view_.disk;
    const std::lock_guard lock(disk.mutex_);
    const SimDisk::Call call = begin(kSimRemove, path);
    TIER_CHECK(call.status);
    TIER_TRY(const Inode* const node, find(path));
    if (!removable(*node))
      return sim_refused(ENOTEMPTY, "the directory is not empty; remove what it holds first", path, 0);
    TIER_TRY(const Inode* const parent, parent_of(path));
    TIER_CHECK(carry_out(call, path, [&] {
      disk.change_name({.kind = NameChange::Kind::kRemove,
                        .directory = parent->id,
                        .name = std::string(split_path(path).name),
                        .inode = node->id});
    }));
  }
  return sync_if(when, split_path(path).parent);
}

Status SimFileSystem::rename(std::string_view from, std::string_view to, NameSync when) {
  TIER_CHECK(check_path(from));
  TIER_CHECK(check_path(to));
  view_.pause();
  const auto from_parts = split_path(from);
  const auto to_parts = split_path(to);
  {
    SimDisk& disk = *view_.disk;
    const std::lock_guard lock(disk.mutex_);
    const SimDisk::Call call = begin(kSimRename, from);
    TIER_CHECK(call.status);
    disk.trace_ = sim_mix(disk.trace_, crc32c_extend(0, as_bytes(to)));
    TIER_TRY(const Inode* const node, find(from));
    TIER_TRY(const Inode* const source, parent_of(from));
    TIER_TRY(Inode* const target, parent_of(to));
    const auto there = entry(*target, to);
    const Inode* const replaced = there == target->entries.end() ? nullptr : disk.inode(there->second);
    if (replaced == node) return {};
    if (node->directory && to.size() > from.size() && to.substr(0, from.size()) == from && to[from.size()] == '/')
      return sim_refused(EINVAL, "a directory cannot move into itself; choose another target", to, 0);
    if (replaced != nullptr && replaced->directory != node->directory)
      return sim_refused(replaced->directory ? EISDIR : ENOTDIR, "a file and a directory cannot replace each other", to,
                         0);
    if (replaced != nullptr && !removable(*replaced))
      return sim_refused(ENOTEMPTY, "the directory is not empty; remove what it holds first", to, 0);
    NameChange change{.kind = NameChange::Kind::kRename,
                      .directory = source->id,
                      .name = std::string(from_parts.name),
                      .inode = node->id,
                      .to_directory = target->id,
                      .to_name = std::string(to_parts.name),
                      .replaced = replaced == nullptr ? 0 : replaced->id};
    TIER_CHECK(carry_out(call, from, [&] {
      if (replaced != nullptr && !view_.has(Capability::kAtomicRename)) {
        disk.change_name({.kind = NameChange::Kind::kRemove,
                          .directory = target->id,
                          .name = change.to_name,
                          .inode = replaced->id});
        change.replaced = 0;
      }
      disk.change_name(std::move(change));
    }));
  }
  TIER_CHECK(sync_if(when, to_parts.parent));
  return from_parts.parent == to_parts.parent ? Status{} : sync_if(when, from_parts.parent);
}

Status SimFileSystem::sync_directory(std::string_view directory) {
  TIER_CHECK(check_path(directory, true));
  view_.pause();
  SimDisk& disk = *view_.disk;
  std::uint64_t id = 0;
  std::uint64_t covered = 0;
  {
    const std::lock_guard lock(disk.mutex_);
    const SimDisk::Call call = begin(kSimSyncDirectory, directory);
    TIER_CHECK(call.status);
    TIER_TRY(const Inode* const node, find(directory));
    if (!node->directory) return sim_refused(ENOTDIR, "this is a file; name a directory", directory, 0);
    if (call.cut) {
      disk.cut_locked();
      return sim_off(directory);
    }
    id = node->id;
    covered = disk.order_;  // M2
    if (call.error != 0) {
      if (call.partial) disk.sync_names(id, covered);
      return sim_refused(call.error, "cannot sync the directory; its changes may be lost", directory, 0);
    }
  }
  view_.take_time(20'000, 500'000);
  {
    const std::lock_guard lock(disk.mutex_);
    if (!view_.alive()) return sim_off(directory);
    disk.sync_names(id, covered);
  }
  view_.pause();
  return {};
}

Result<SpaceInfo> SimFileSystem::space() {
  const std::lock_guard lock(view_.disk->mutex_);
  const SimDisk::Call call = begin(kSimStat, {});
  TIER_CHECK(call.status);
  if (call.error != 0) return sim_refused(call.error, "cannot ask for free space; check the disk", {}, 0);
  const std::uint64_t used = view_.disk->used_locked();
  const std::uint64_t capacity = view_.disk->options_.capacity;
  return SpaceInfo{.capacity = capacity, .available = used < capacity ? capacity - used : 0};
}

Result<bool> SimFileSystem::locked(std::string_view path) {
  TIER_CHECK(check_path(path));
  const std::lock_guard lock(view_.disk->mutex_);
  const SimDisk::Call call = begin(kSimStat, path);
  TIER_CHECK(call.status);
  if (call.error != 0) return sim_refused(call.error, "cannot ask for the lock; check the disk", path, 0);
  TIER_TRY(const Inode* const node, find(path));
  return node->owner != 0;
}

Result<std::size_t> SimFileSystem::poll(Deadline until) {
  SimDisk& disk = *view_.disk;
  std::size_t completed = 0;
  for (;;) {
    view_.pause();
    IoOp* op = nullptr;
    std::uint64_t next = ~std::uint64_t{0};
    {
      const std::lock_guard lock(disk.mutex_);
      const std::uint64_t now = view_.now_ns();
      std::vector<std::size_t> ready;
      for (std::size_t i = 0; i < disk.flights_.size(); ++i) {
        const SimDisk::Flight& flight = disk.flights_[i];
        if (flight.owner != this) continue;
        if (!view_.alive() || flight.ready_ns <= now)
          ready.push_back(i);
        else
          next = std::min(next, flight.ready_ns);
      }
      if (!ready.empty()) {
        const std::size_t pick = ready[disk.random_.below(ready.size())];
        op = disk.flights_[pick].file->take_flight(pick);
      }
    }
    if (op != nullptr) {
      op->done(*op);  // the operation may be gone when this returns
      ++completed;
      continue;
    }
    const std::uint64_t now = view_.now_ns();
    if (completed > 0 || next == ~std::uint64_t{0} || until.ns <= now) return completed;
    view_.sim->sleep(Duration(static_cast<std::int64_t>(std::min(next, until.ns) - now)));
  }
}

std::shared_ptr<FileSystem> sim_fs(std::shared_ptr<SimDisk> disk, SimRuntime* sim) {
  return std::make_shared<SimFileSystem>(std::move(disk), sim, "sim:");
}

// --- sim:name --------------------------------------------------------------------------------------------------------

namespace {

struct Disks {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<SimDisk>, std::less<>> by_name;
};

Disks& disks() {
  static Disks table;
  return table;
}

Result<std::shared_ptr<FileSystem>> open_sim(const Url& url, const FileSystemOptions& options) {
  std::shared_ptr<SimDisk> disk = sim_disk(url.location);
  if (disk == nullptr) {
    SimDiskOptions made;
    if (options.quota != 0) made.capacity = options.quota;
    disk = std::make_shared<SimDisk>(made);
    if (!url.location.empty()) set_sim_disk(url.location, disk);
  }
  return std::shared_ptr<FileSystem>(
      std::make_shared<SimFileSystem>(std::move(disk), SimRuntime::of(options.runtime), url.file_system));
}

}  // namespace

std::shared_ptr<SimDisk> sim_disk(std::string_view name) {
  Disks& table = disks();
  const std::lock_guard lock(table.mutex);
  const auto it = table.by_name.find(name);
  return it == table.by_name.end() ? nullptr : it->second;
}

void set_sim_disk(std::string_view name, std::shared_ptr<SimDisk> disk) {
  Disks& table = disks();
  const std::lock_guard lock(table.mutex);
  if (disk == nullptr)
    table.by_name.erase(std::string(name));
  else
    table.by_name.insert_or_assign(std::string(name), std::move(disk));
}

void register_sim_file_system() {
  static const Status registered = register_file_system("sim", open_sim);
  (void)registered;
}

}  // namespace tier::testing
