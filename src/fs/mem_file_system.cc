/// `mem:` and `mem:name`: a tree of names over MemBytes, private or shared by name in this process.
///
/// Invariants  (N1) a file's bytes live as long as its name or an open File; a named file system lives as long as
///                  somebody holds it or a File of it.
///             (N2) an inode's lock belongs to one File.
/// Threads     any; names under one shared lock, never held while bytes move.
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/assert.h"
#include "base/mutex.h"
#include "fs/mem_bytes.h"
#include "fs/path.h"
#include "fs/registry.h"

namespace tier {
namespace {

struct MemNode {
  std::unique_ptr<MemBytes> bytes;  // nullptr: a directory
  std::map<std::string, std::shared_ptr<MemNode>, std::less<>> children;
  std::atomic<bool> locked{false};  // N2

  bool directory() const noexcept { return bytes == nullptr; }
  FileInfo info() const noexcept {
    if (directory()) return {0, 0, true};
    return {bytes->size(), bytes->allocated(), false};
  }
};
using Node = std::shared_ptr<MemNode>;

Status refuse(Code code, const char* text, std::string_view path) {
  return fail(code, 0, text, "mem path '%s'", shown(path).c_str());
}

class MemFile final : public File {
 public:
  MemFile(std::string path, std::shared_ptr<FileSystem> home, Node node, const OpenOptions& options, Parker& parker)
      : File(std::move(path)),
        home_(std::move(home)),
        node_(std::move(node)),
        writable_(options.write),
        owner_(options.lock),
        mode_(options.mode == FileMode::kMapped ? FileMode::kMapped : FileMode::kBuffered),
        mutex_(parker) {}

  ~MemFile() override {
    for (const std::uint64_t end : held_) bytes().unmap(end);
    // [N3] release: the next owner sees what this one wrote.
    if (owner_) node_->locked.store(false, std::memory_order_release);
  }

  Result<std::size_t> read_at(std::uint64_t offset, MutableByteSpan into) override {
    return bytes().read(offset, into);
  }

  using File::write_at;
  Status write_at(std::uint64_t offset, std::span<const ByteSpan> parts) override {
    std::uint64_t total = 0;
    for (const ByteSpan part : parts) total += part.size();
    TIER_CHECK(check_change(offset, total));
    return bytes().write(offset, parts);
  }

  Status sync(SyncKind) override { return {}; }

  Status allocate(std::uint64_t offset, std::uint64_t length) override {
    TIER_CHECK(check_change(offset, length));
    return bytes().allocate(offset, length);
  }

  Status punch(std::uint64_t offset, std::uint64_t length) override {
    TIER_CHECK(check_change(offset, length));
    bytes().punch(offset, length);
    return {};
  }

  Status truncate(std::uint64_t size) override {
    TIER_CHECK(check_change(size, 0));
    return bytes().truncate(size);
  }

  Result<FileInfo> info() override { return node_->info(); }

  Result<MutableByteSpan> mapping(std::uint64_t offset, std::uint64_t length) override {
    const std::uint64_t size = bytes().size();
    if (offset > size || length > size - offset)
      return fail(Code::kInvalid, 0, "a mapping must lie below the file's size; extend the file first",
                  "mem file '%s' at %llu, %llu bytes, size %llu", shown(path()).c_str(),
                  static_cast<unsigned long long>(offset), static_cast<unsigned long long>(length),
                  static_cast<unsigned long long>(size));
    if (length == 0) return MutableByteSpan{};
    TIER_TRY(const MutableByteSpan range, bytes().map(offset, length, writable_));
    MutexLock lock(mutex_);
    held_.push_back(offset + length);
    return range;
  }

  FileMode mode() const noexcept override { return mode_; }

 private:
  MemBytes& bytes() const noexcept { return *node_->bytes; }

  Status check_change(std::uint64_t offset, std::uint64_t length) const {
    if (!writable_) return refuse(Code::kAccess, "the file was opened for reading; open it with write", path());
    if (offset <= MemBytes::kMost && length <= MemBytes::kMost - offset) return {};
    return fail(Code::kTooLarge, 0, "the range passes the largest size of a memory file; use smaller files",
                "mem file '%s' at %llu, %llu bytes, limit %llu", shown(path()).c_str(),
                static_cast<unsigned long long>(offset), static_cast<unsigned long long>(length),
                static_cast<unsigned long long>(MemBytes::kMost));
  }

  std::shared_ptr<FileSystem> home_;  // N1
  Node node_;
  const bool writable_;
  const bool owner_;
  const FileMode mode_;
  Mutex mutex_;
  std::vector<std::uint64_t> held_ TIER_GUARDED_BY(mutex_);
};

class MemFileSystem final : public FileSystem, public std::enable_shared_from_this<MemFileSystem> {
 public:
  MemFileSystem(std::string url, const FileSystemOptions& options)
      : url_(std::move(url)),
        parker_(*options.runtime->parker),
        quota_(std::make_shared<MemQuota>(options.quota)),
        mutex_(parker_),
        root_(std::make_shared<MemNode>()) {}

  std::string url() const override { return url_; }
  std::uint64_t quota() const noexcept { return quota_->limit(); }

  Capabilities capabilities() const noexcept override {
    return Capabilities{}
        .with(Capability::kOverwrite)
        .with(Capability::kSparse)
        .with(Capability::kPunch)
        .with(Capability::kAllocate)
        .with(Capability::kMapping)
        .with(Capability::kAtomicRename)
        .with(Capability::kLocking);
  }

  Result<std::unique_ptr<File>> open(std::string_view path, const OpenOptions& options) override {
    TIER_CHECK(check_path(path));
    if (options.create != Create::kNever && !options.write)
      return refuse(Code::kInvalid, "creating a file needs write; set OpenOptions::write", path);
    if (options.lock && !options.write)
      return refuse(Code::kInvalid, "owning a file needs write; set OpenOptions::write", path);
    ExclusiveLock lock(mutex_);
    TIER_TRY(const Node parent, directory(split_path(path).parent, path));
    const std::string_view name = split_path(path).name;
    Node node = child(*parent, name);
    if (node == nullptr) {
      if (options.create == Create::kNever) return refuse(Code::kNotFound, "no such file; check the path", path);
      node = std::make_shared<MemNode>();
      node->bytes = std::make_unique<MemBytes>(parker_, quota_);
      parent->children.emplace(name, node);
    } else if (options.create == Create::kExclusive) {
      return refuse(Code::kExists, "the name is taken; choose another or open it", path);
    } else if (node->directory()) {
      return refuse(Code::kInvalid, "the path is a directory; name a file in it", path);
    }
    // [N3] acquire: pairs with the release of the last owner.
    if (options.lock && node->locked.exchange(true, std::memory_order_acquire))
      return refuse(Code::kLocked, "another owner in this process holds the file; close it first", path);
    return std::unique_ptr<File>(new MemFile(std::string(path), shared_from_this(), std::move(node), options, parker_));
  }

  Result<FileInfo> stat(std::string_view path) override {
    TIER_CHECK(check_path(path, true));
    SharedLock lock(mutex_);
    TIER_TRY(const Node node, find(path));
    return node->info();
  }

  Result<std::vector<DirectoryEntry>> list(std::string_view path) override {
    TIER_CHECK(check_path(path, true));
    SharedLock lock(mutex_);
    TIER_TRY(const Node node, directory(path, path));
    std::vector<DirectoryEntry> entries;
    entries.reserve(node->children.size());
    for (const auto& [name, entry] : node->children) entries.push_back({name, entry->directory()});  // map: byte order
    return entries;
  }

  Status create_directory(std::string_view path, NameSync) override {
    TIER_CHECK(check_path(path));
    ExclusiveLock lock(mutex_);
    TIER_TRY(const Node parent, directory(split_path(path).parent, path));
    if (!parent->children.emplace(split_path(path).name, std::make_shared<MemNode>()).second)
      return refuse(Code::kExists, "the name is taken; choose another or use it", path);
    return {};
  }

  Status remove(std::string_view path, NameSync) override {
    TIER_CHECK(check_path(path));
    ExclusiveLock lock(mutex_);
    TIER_TRY(const Node node, find(path));
    if (!node->children.empty())
      return refuse(Code::kInvalid, "the directory is not empty; remove what is in it first", path);
    TIER_TRY(const Node parent, directory(split_path(path).parent, path));
    parent->children.erase(parent->children.find(split_path(path).name));
    return {};
  }

  Status rename(std::string_view from, std::string_view to, NameSync) override {
    TIER_CHECK(check_path(from));
    TIER_CHECK(check_path(to));
    ExclusiveLock lock(mutex_);
    TIER_TRY(const Node node, find(from));
    TIER_TRY(const Node from_parent, directory(split_path(from).parent, from));
    TIER_TRY(const Node to_parent, directory(split_path(to).parent, to));
    if (from == to) return {};
    if (node->directory() && to.starts_with(from) && to[from.size()] == '/')
      return refuse(Code::kInvalid, "a directory cannot move into itself; choose another place", to);
    const std::string_view to_name = split_path(to).name;
    if (const Node old = child(*to_parent, to_name); old != nullptr) {
      if (old->directory() != node->directory())
        return refuse(Code::kInvalid, "a file replaces a file and a directory a directory; choose another name", to);
      if (!old->children.empty())
        return refuse(Code::kInvalid, "the directory to replace is not empty; remove what is in it first", to);
    }
    to_parent->children.insert_or_assign(std::string(to_name), node);
    from_parent->children.erase(from_parent->children.find(split_path(from).name));
    return {};
  }

  Status sync_directory(std::string_view path) override {
    TIER_CHECK(check_path(path, true));
    SharedLock lock(mutex_);
    return directory(path, path).status();
  }

  Result<SpaceInfo> space() override {
    const std::uint64_t page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::uint64_t memory = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * page;
    const std::uint64_t unused = static_cast<std::uint64_t>(::sysconf(_SC_AVPHYS_PAGES)) * page;
    if (quota_->limit() == 0) return SpaceInfo{memory, unused};
    const std::uint64_t used = std::min(quota_->used(), quota_->limit());
    return SpaceInfo{quota_->limit(), std::min(quota_->limit() - used, unused)};
  }

  Result<bool> locked(std::string_view path) override {
    TIER_CHECK(check_path(path));
    SharedLock lock(mutex_);
    TIER_TRY(const Node node, find(path));
    return node->locked.load(std::memory_order_acquire);  // [N3]
  }

 private:
  static Node child(const MemNode& parent, std::string_view name) {
    const auto found = parent.children.find(name);
    return found == parent.children.end() ? nullptr : found->second;
  }

  /// The node of a valid path. Under the lock.
  Result<Node> find(std::string_view path) const {
    Node node = root_;
    for (std::size_t begin = 0; begin < path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      if (!node->directory())
        return refuse(Code::kInvalid, "a component of the path is a file, not a directory; check the path", path);
      node = child(*node, path.substr(begin, end - begin));
      if (node == nullptr) return refuse(Code::kNotFound, "no such file or directory; check the path", path);
      begin = end + 1;
    }
    return node;
  }

  /// The directory at `path`; `whole` is what the message names. Under the lock.
  Result<Node> directory(std::string_view path, std::string_view whole) const {
    TIER_TRY(Node node, find(path));
    if (!node->directory())
      return refuse(Code::kInvalid, "a component of the path is a file, not a directory; check the path", whole);
    return node;
  }

  const std::string url_;
  Parker& parker_;
  const std::shared_ptr<MemQuota> quota_;
  SharedMutex mutex_;
  const Node root_;
};

/// The named ones that somebody holds.
struct NamedFileSystems {
  Mutex mutex{*Runtime::system().parker};
  std::map<std::string, std::weak_ptr<MemFileSystem>, std::less<>> table TIER_GUARDED_BY(mutex);
};

}  // namespace

Result<std::shared_ptr<FileSystem>> open_mem_file_system(const Url& url, const FileSystemOptions& options) {
  if (url.location.empty())
    return std::shared_ptr<FileSystem>(std::make_shared<MemFileSystem>(url.file_system, options));
  static NamedFileSystems named;
  MutexLock lock(named.mutex);
  std::erase_if(named.table, [](const auto& entry) { return entry.second.expired(); });
  if (const auto found = named.table.find(url.location); found != named.table.end()) {
    if (std::shared_ptr<MemFileSystem> shared = found->second.lock(); shared != nullptr) {
      if (options.quota != 0 && options.quota != shared->quota())
        return fail(Code::kInvalid, 0,
                    "the memory file system is open with another quota; leave quota 0 or use that one",
                    "url '%s', quota %llu, asked for %llu", shown(url.file_system).c_str(),
                    static_cast<unsigned long long>(shared->quota()), static_cast<unsigned long long>(options.quota));
      return std::shared_ptr<FileSystem>(std::move(shared));
    }
  }
  auto fresh = std::make_shared<MemFileSystem>(url.file_system, options);
  named.table.insert_or_assign(url.location, fresh);
  return std::shared_ptr<FileSystem>(std::move(fresh));
}

}  // namespace tier
