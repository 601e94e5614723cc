/// `local:///dir`: names below a directory of this machine.
///
/// Shape       every name is resolved from the root's descriptor, below it, through no symbolic link.
/// Invariants  (F1, F5) of tier/fs.h; (G1) opening a file system for reading leaves nothing behind; (G2) directories
///             are 0700 and files 0600.
/// Durability  NameSync::kNow: the parents are fsynced before the call returns. After a failed directory sync every
///             later change of names answers kPoisoned, as for files (F4).
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>

#include "base/assert.h"
#include "fs/local_file.h"
#include "fs/path.h"
#include "fs/registry.h"

namespace tier {
namespace {

constexpr mode_t kDirectoryMode = 0700;  // G2
constexpr mode_t kFileMode = 0600;

/// What O_DIRECT asks of a file, 0 when it cannot be had.
std::uint32_t direct_alignment(int fd) noexcept {
  struct statx s {};
#ifdef STATX_DIOALIGN
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &s) == 0 && (s.stx_mask & STATX_DIOALIGN) != 0) {
    if (s.stx_dio_offset_align == 0) return 0;
    return std::max(s.stx_dio_offset_align, s.stx_dio_mem_align);
  }
#endif
  return 4096;  // what every disk of today takes
}

/// Sets O_DIRECT on an open file; opening with it could create the file and then refuse.
bool set_direct(int fd) noexcept {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && direct_alignment(fd) != 0 && ::fcntl(fd, F_SETFL, flags | O_DIRECT) == 0;
}

struct flock whole_file(short type) noexcept {
  struct flock f {};
  f.l_type = type;
  f.l_whence = SEEK_SET;
  return f;
}

/// "pid N\n", which an owner leaves in the file that it locks, for messages only.
constexpr std::size_t kNoteMost = 32;

/// The process named by a note; 0 when it is not one.
long note_process(std::string_view note) noexcept {
  if (!note.starts_with("pid ") || !note.ends_with('\n')) return 0;
  note = note.substr(4, note.size() - 5);
  long process = 0;
  const auto [end, error] = std::from_chars(note.data(), note.data() + note.size(), process);
  return error == std::errc{} && end == note.data() + note.size() ? process : 0;
}

long read_note(int fd) noexcept {
  char note[kNoteMost + 1];
  const ssize_t n = uninterrupted([&] { return ::pread(fd, note, sizeof note, 0); });
  return n > 0 && static_cast<std::size_t>(n) <= kNoteMost ? note_process({note, static_cast<std::size_t>(n)}) : 0;
}

/// A file with anything else in it is left alone. That the note may not be written is no failure.
void write_note(int fd) noexcept {
  struct stat s {};
  if (::fstat(fd, &s) != 0 || (s.st_size != 0 && read_note(fd) == 0)) return;
  char note[kNoteMost] = "pid ";
  char* end = std::to_chars(note + 4, note + sizeof note - 1, static_cast<long>(::getpid())).ptr;
  *end++ = '\n';
  const std::string_view text(note, static_cast<std::size_t>(end - note));
  const ByteSpan bytes = as_bytes(text);
  if (write_whole(fd, 0, std::span<const ByteSpan>(&bytes, 1)))
    while (::ftruncate(fd, static_cast<off_t>(text.size())) != 0 && errno == EINTR) {
    }
}

class LocalFileSystem final : public FileSystem {
 public:
  LocalFileSystem(std::string url, std::shared_ptr<LocalHome> home)
      : url_(std::move(url)), home_(std::move(home)), capabilities_(probe()) {}

  std::string url() const override { return url_; }
  Capabilities capabilities() const noexcept override { return capabilities_; }
  Result<std::unique_ptr<File>> open(std::string_view path, const OpenOptions& options) override;
  Result<FileInfo> stat(std::string_view path) override;
  Result<std::vector<DirectoryEntry>> list(std::string_view path) override;
  Status create_directory(std::string_view path, NameSync when) override;
  Status remove(std::string_view path, NameSync when) override;
  Status rename(std::string_view from, std::string_view to, NameSync when) override;
  Status sync_directory(std::string_view path) override;
  Result<SpaceInfo> space() override;
  Result<bool> locked(std::string_view path) override;
  Result<std::size_t> poll(Deadline until) override { return home_->ring.poll(until); }

 private:
  struct Directory {
    Descriptor descriptor;
    int fd = -1;
  };

  Capabilities probe() const;
  Status open_regular(std::string_view path, const OpenOptions& options, Descriptor& file, struct stat& s);
  Status take_lock(std::string_view path, const OpenOptions& options, LocalFile::Opened& opened, struct stat& s);
  Result<Directory> directory(std::string_view path) const;
  Status sync_descriptor(int fd, std::string_view path);
  Status check_names() const;
  Status failure(const char* text, std::string_view path) const {
    return local_failure(errno, text, home_->place(path));
  }

  const std::string url_;
  const std::shared_ptr<LocalHome> home_;
  const Capabilities capabilities_;
  std::atomic<int> names_failed_{0};  // the errno of a failed directory sync
};

/// Tries what cannot be asked for on a file without a name, which leaves nothing behind (G1). Where there is none (a
/// directory that cannot be written, an old file system), only what can be said without is said.
Capabilities LocalFileSystem::probe() const {
  Capabilities can = Capabilities{}
                         .with(Capability::kDurable)
                         .with(Capability::kOverwrite)
                         .with(Capability::kSparse)
                         .with(Capability::kMapping)
                         .with(Capability::kAtomicRename);
  if (LocalRing::available()) can = can.with(Capability::kAsync);
  const Descriptor file(
      uninterrupted([&] { return ::openat(home_->root.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, kFileMode); }));
  if (!file.valid()) return can.with(Capability::kLocking);
  if (local_calls.fallocate(file.get(), 0, 0, 8192) == 0) can = can.with(Capability::kAllocate);
  if (local_calls.fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0)
    can = can.with(Capability::kPunch);
  struct flock f = whole_file(F_WRLCK);
  if (::fcntl(file.get(), F_OFD_SETLK, &f) == 0) can = can.with(Capability::kLocking);
  if (set_direct(file.get())) can = can.with(Capability::kDirectIo);
  return can;
}

/// The directory that a name lives in; the root's own descriptor is lent, not opened.
Result<LocalFileSystem::Directory> LocalFileSystem::directory(std::string_view path) const {
  Directory d;
  if (path.empty()) {
    d.fd = home_->root.get();
    return d;
  }
  d.descriptor = open_beneath(home_->root.get(), path, O_RDONLY | O_DIRECTORY);
  if (!d.descriptor.valid()) return failure("cannot open the directory; check the path", path);
  d.fd = d.descriptor.get();
  return d;
}

Status LocalFileSystem::check_names() const {
  // [G3] acquire: pairs with sync_descriptor().
  const int e = names_failed_.load(std::memory_order_acquire);
  if (e == 0) [[likely]]
    return {};
  return fail(Code::kPoisoned, e,
              "an earlier sync of a directory failed; open the file system anew and look at its names", "'%s'",
              shown(home_->directory_path).c_str());
}

Status LocalFileSystem::sync_descriptor(int fd, std::string_view path) {
  TIER_CHECK(check_names());
  if (uninterrupted([&] { return local_calls.fsync(fd); }) == 0) return {};
  const int e = errno;
  if (e != EINVAL) names_failed_.store(e, std::memory_order_release);  // [G3]; EINVAL: it syncs no directories at all
  return local_failure(e, "cannot make names durable; open the file system anew and look at its names",
                       home_->place(path));
}

/// Opens or creates a regular file, and makes its name durable if that is asked for.
Status LocalFileSystem::open_regular(std::string_view path, const OpenOptions& options, Descriptor& file,
                                     struct stat& s) {
  // O_NONBLOCK: a FIFO or device in the file's place is found out below, not waited for.
  int flags = (options.write ? O_RDWR : O_RDONLY) | O_NONBLOCK | O_NOCTTY;
  if (options.mode == FileMode::kWriteThrough || options.mode == FileMode::kDirectWriteThrough) flags |= O_DSYNC;
  bool created = false;
  for (int attempt = 0;; ++attempt) {
    if (options.create != Create::kExclusive) file = open_beneath(home_->root.get(), path, flags);
    if (file.valid()) break;
    if (options.create == Create::kNever || (options.create == Create::kIfMissing && errno != ENOENT))
      return failure("cannot open the file; check the path", path);
    TIER_CHECK(check_names());
    file = open_beneath(home_->root.get(), path, flags | O_CREAT | O_EXCL, kFileMode);
    created = file.valid();
    if (created) break;
    // Another made it since, or made it and took it away again: look once more, but not for ever.
    if (options.create == Create::kExclusive || errno != EEXIST || attempt == 8)
      return failure("cannot create the file; check the path", path);
  }
  if (created && options.name_sync == NameSync::kNow) {
    const SplitPath split = split_path(path);
    Status durable;
    if (const Result<Directory> parent = directory(split.parent); parent.ok()) {
      durable = sync_descriptor(parent->fd, split.parent);
      // What cannot be made durable is taken back, so that trying again finds what it found before.
      if (!durable.ok()) ::unlinkat(parent->fd, std::string(split.name).c_str(), 0);
    } else {
      durable = parent.status();
    }
    TIER_CHECK(durable);
  }
  if (::fstat(file.get(), &s) != 0) return failure("cannot ask for the file's kind; check the disk", path);
  if (S_ISDIR(s.st_mode)) {
    errno = EISDIR;
    return failure("", path);
  }
  if (!S_ISREG(s.st_mode))
    return fail(Code::kInvalid, 0, "not a regular file; name another one", "'%s'", shown(home_->place(path)).c_str());
  if (::fcntl(file.get(), F_SETFL, flags & ~(O_NONBLOCK | O_NOCTTY)) != 0)
    return failure("cannot set the file's flags; check the file system", path);
  return {};
}

/// Takes the lock of the file and makes sure that the locked inode still has its name: an owner of an inode that was
/// removed meanwhile would exclude nobody.
Status LocalFileSystem::take_lock(std::string_view path, const OpenOptions& options, LocalFile::Opened& opened,
                                  struct stat& s) {
  for (int attempt = 0;; ++attempt) {
    Descriptor file;
    TIER_CHECK(open_regular(path, options, file, s));
    // The descriptor that will own is another one, opened where no fork can come between (L2).
    opened.owner = std::make_unique<LocalOwner>();
    const int flags = ::fcntl(file.get(), F_GETFL) & (O_ACCMODE | O_DSYNC);
    if (!open_owner(*opened.owner,
                    [&] { return open_beneath(home_->root.get(), path, flags | O_NONBLOCK | O_NOCTTY).release(); })) {
      if (errno == ENOENT && attempt < 8) continue;  // removed since: the next attempt may make it
      return failure("cannot open the file; check the path", path);
    }
    const int fd = opened.owner->fd;
    struct flock f = whole_file(F_WRLCK);
    if (uninterrupted([&] { return ::fcntl(fd, F_OFD_SETLK, &f); }) != 0) {
      const int e = errno;
      const long holder = read_note(fd);
      close_owner(*opened.owner);
      if (e != EAGAIN && e != EACCES)
        return local_failure(e == EINVAL ? EOPNOTSUPP : e, "cannot lock the file; check the file system",
                             home_->place(path));
      if (holder == 0)
        return fail(Code::kLocked, 0, "another owner holds the file; stop it or open for reading", "file '%s'",
                    shown(home_->place(path)).c_str());
      return fail(Code::kLocked, 0, "another owner holds the file; stop it or open for reading",
                  "file '%s', held by %s %ld", shown(home_->place(path)).c_str(),
                  holder == ::getpid() ? "this process," : "process", holder);
    }
    struct stat named {};
    Descriptor again = open_beneath(home_->root.get(), path, O_PATH);
    if (again.valid() && ::fstat(again.get(), &named) == 0 && ::fstat(fd, &s) == 0 && s.st_nlink > 0 &&
        S_ISREG(s.st_mode) && named.st_dev == s.st_dev && named.st_ino == s.st_ino && ::fcntl(fd, F_SETFL, flags) == 0)
      return {};
    close_owner(*opened.owner);
    if (attempt == 8)
      return fail(Code::kBusy, 0, "the file is removed and made again all the time; find out who does it", "file '%s'",
                  shown(home_->place(path)).c_str());
  }
}

Result<std::unique_ptr<File>> LocalFileSystem::open(std::string_view path, const OpenOptions& options) {
  TIER_CHECK(check_path(path));
  if ((options.create != Create::kNever || options.lock) && !options.write)
    return fail(Code::kInvalid, 0, "creating or owning a file needs write; set OpenOptions::write", "file '%s'",
                shown(home_->place(path)).c_str());
  LocalFile::Opened opened;
  struct stat s {};
  if (options.lock) {
    TIER_CHECK(take_lock(path, options, opened, s));
  } else {
    TIER_CHECK(open_regular(path, options, opened.descriptor, s));
  }
  const int fd = options.lock ? opened.owner->fd : opened.descriptor.get();
  opened.mode = options.mode;
  if (options.mode == FileMode::kDirect || options.mode == FileMode::kDirectWriteThrough) {
    if (set_direct(fd))
      opened.alignment = direct_alignment(fd);
    else
      opened.mode = options.mode == FileMode::kDirect ? FileMode::kBuffered : FileMode::kWriteThrough;  // F3
  }
  if (options.lock && opened.alignment == 1 && split_path(path).name == "LOCK") write_note(fd);
  opened.home = home_;
  opened.path = path;
  opened.writable = options.write;
  opened.async = capabilities_.has(Capability::kAsync);
  opened.inode = &acquire_inode(s.st_dev, s.st_ino, static_cast<std::uint64_t>(s.st_size));
  if (options.mode != FileMode::kMapped) return std::unique_ptr<File>(new LocalFile(std::move(opened)));
  auto mapped = std::make_unique<LocalMappedFile>(std::move(opened));
  mapped->map_window();
  return std::unique_ptr<File>(std::move(mapped));
}

Result<FileInfo> LocalFileSystem::stat(std::string_view path) {
  TIER_CHECK(check_path(path, true));
  const Descriptor file = open_beneath(home_->root.get(), path, O_PATH);
  struct stat s {};
  if (!file.valid() || ::fstat(file.get(), &s) != 0) return failure("cannot look at the file; check the path", path);
  if (S_ISDIR(s.st_mode)) return FileInfo{0, 0, true};
  return FileInfo{static_cast<std::uint64_t>(s.st_size), static_cast<std::uint64_t>(s.st_blocks) * 512, false};
}

Result<std::vector<DirectoryEntry>> LocalFileSystem::list(std::string_view path) {
  TIER_CHECK(check_path(path, true));
  // An own open description: the position of the reading belongs to it.
  Descriptor opened = open_beneath(home_->root.get(), path, O_RDONLY | O_DIRECTORY);
  if (!opened.valid()) return failure("cannot list the directory; check the path", path);
  DIR* directory = ::fdopendir(opened.get());
  if (directory == nullptr) return failure("cannot list the directory; check the path", path);
  const int fd = opened.release();
  std::vector<DirectoryEntry> entries;
  errno = 0;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") {
      bool is_directory = entry->d_type == DT_DIR;
      if (entry->d_type == DT_UNKNOWN) {
        struct stat s {};
        is_directory = ::fstatat(fd, entry->d_name, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(s.st_mode);
      }
      entries.push_back({std::string(name), is_directory});
    }
    errno = 0;
  }
  const int e = errno;
  ::closedir(directory);
  if (e != 0) return local_failure(e, "cannot list the directory; check the disk", home_->place(path));
  std::sort(entries.begin(), entries.end(),
            [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.name < b.name; });
  return entries;
}

Status LocalFileSystem::create_directory(std::string_view path, NameSync when) {
  TIER_CHECK(check_path(path));
  TIER_CHECK(check_names());
  const SplitPath split = split_path(path);
  TIER_TRY(const Directory parent, directory(split.parent));
  if (::mkdirat(parent.fd, std::string(split.name).c_str(), kDirectoryMode) != 0)
    return failure("cannot create the directory; check the path", path);
  if (when == NameSync::kLater) return {};
  TIER_TRY(const Directory made, directory(path));
  TIER_CHECK(sync_descriptor(made.fd, path));
  return sync_descriptor(parent.fd, split.parent);
}

Status LocalFileSystem::remove(std::string_view path, NameSync when) {
  TIER_CHECK(check_path(path));
  TIER_CHECK(check_names());
  const SplitPath split = split_path(path);
  TIER_TRY(const Directory parent, directory(split.parent));
  const std::string name(split.name);
  if (::unlinkat(parent.fd, name.c_str(), 0) != 0 &&
      (errno != EISDIR || ::unlinkat(parent.fd, name.c_str(), AT_REMOVEDIR) != 0))
    return failure("cannot remove; check the path", path);
  return when == NameSync::kLater ? Status{} : sync_descriptor(parent.fd, split.parent);
}

Status LocalFileSystem::rename(std::string_view from, std::string_view to, NameSync when) {
  TIER_CHECK(check_path(from));
  TIER_CHECK(check_path(to));
  TIER_CHECK(check_names());
  const SplitPath split_from = split_path(from);
  const SplitPath split_to = split_path(to);
  TIER_TRY(const Directory parent_from, directory(split_from.parent));
  TIER_TRY(const Directory parent_to, directory(split_to.parent));
  if (::renameat(parent_from.fd, std::string(split_from.name).c_str(), parent_to.fd,
                 std::string(split_to.name).c_str()) != 0) {
    const int e = errno == EEXIST ? ENOTEMPTY : errno;  // both mean a directory with something in it
    return fail(code_of_errno(e), e, local_advice(e, "cannot rename; check both paths"), "'%s' to '%s'",
                shown(home_->place(from)).c_str(), shown(home_->place(to)).c_str());
  }
  if (when == NameSync::kLater) return {};
  // The new name first: between the two syncs the file has both names or the new one, never none.
  TIER_CHECK(sync_descriptor(parent_to.fd, split_to.parent));
  return split_from.parent == split_to.parent ? Status{} : sync_descriptor(parent_from.fd, split_from.parent);
}

Status LocalFileSystem::sync_directory(std::string_view path) {
  TIER_CHECK(check_path(path, true));
  TIER_TRY(const Directory d, directory(path));
  return sync_descriptor(d.fd, path);
}

Result<SpaceInfo> LocalFileSystem::space() {
  struct statvfs s {};
  if (uninterrupted([&] { return ::fstatvfs(home_->root.get(), &s); }) != 0)
    return failure("cannot ask for the free space; check the disk", "");
  const std::uint64_t unit = s.f_frsize;
  return SpaceInfo{s.f_blocks * unit, s.f_bavail * unit};
}

Result<bool> LocalFileSystem::locked(std::string_view path) {
  TIER_CHECK(check_path(path));
  const Descriptor file = open_beneath(home_->root.get(), path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  struct flock f = whole_file(F_WRLCK);
  if (!file.valid() || ::fcntl(file.get(), F_OFD_GETLK, &f) != 0)
    return failure("cannot ask for the lock; check the path", path);
  return f.l_type != F_UNLCK;
}

}  // namespace

Result<std::shared_ptr<FileSystem>> open_local_file_system(const Url& url, const FileSystemOptions& options) {
  const std::string& path = url.location;
  // The root itself is the caller's choice: it may be or pass a symbolic link.
  const auto open_root = [&path] {
    return Descriptor(uninterrupted([&path] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  };
  Descriptor root = open_root();
  if (!root.valid() && errno == ENOENT && options.create) {
    const std::size_t slash = path.rfind('/');
    const std::string parent_path = slash == 0 ? "/" : path.substr(0, slash);
    const Descriptor parent(
        uninterrupted([&] { return ::open(parent_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
    if (!parent.valid())
      return local_failure(errno, "cannot open the parent of the directory; create it first", parent_path);
    if (::mkdirat(parent.get(), path.c_str() + slash + 1, kDirectoryMode) != 0 && errno != EEXIST)
      return local_failure(errno, "cannot create the directory; check the path", path);
    root = open_root();
    if (root.valid() && (uninterrupted([&] { return local_calls.fsync(root.get()); }) != 0 ||
                         uninterrupted([&] { return local_calls.fsync(parent.get()); }) != 0))
      return local_failure(errno, "cannot make the new directory durable; check the disk", path);
  }
  if (!root.valid() && errno == ENOTDIR)
    return fail(Code::kInvalid, ENOTDIR, "a file is in place of a directory; name a directory", "'%s'",
                shown(path).c_str());
  if (!root.valid()) return local_failure(errno, "cannot open the directory; check the path", path);
  auto home = std::make_shared<LocalHome>(path, std::move(root), *options.runtime);
  return std::shared_ptr<FileSystem>(std::make_shared<LocalFileSystem>(url.file_system, std::move(home)));
}

}  // namespace tier
