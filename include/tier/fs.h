/// Files by URL: a FileSystem is a name space of relative paths; a File is bytes at offsets.
///
///   mem:            process memory, private          local:///dir    a directory of this machine
///   mem:name        shared by name in this process   sim:            tests only: loses power on request
///
/// Shape       FileSystem makes Files; what either can do is said by capability bits, so no caller asks for the kind.
/// Invariants  (F1) a path is relative, its components are not empty, `.` or `..`, hold no NUL and are at most 255 bytes,
///                  4,096 together: nothing reaches outside the root. It is checked here, once.
///             (F2) write_at and read_at are whole or an error (read_at stops early only at the end of the file):
///                  interruptions and short transfers are continued.
///             (F3) a hint that cannot be honoured is reported by File::mode(), never faked.
///             (F4) a failed sync poisons the file: every later write and sync on it answers kPoisoned, until it is opened
///                  anew, because the kernel may have marked the lost pages clean.
///             (F5) a directory operation with NameSync::kNow is durable when it returns.
/// Threads     FileSystem and File: any, concurrently. Overlapping writes, or a read beside an overlapping write, give
///             bytes of either per sector.
/// Durability  write_at alone: survives kill -9 of the process where the file system is shared with the kernel, not a power
///             cut. sync(kData): the bytes, and the size needed to read them. sync(kAll): also allocation and times.
/// Errors      kNotFound, kExists, kAccess, kDiskFull, kLocked, kInvalid (path, alignment), kUnsupported, kPoisoned, kIo; the
///             place names path and offset.
/// Cost        mem: one memcpy and a shared lock; through mapping() a memcpy alone. local: one system call.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tier/result.h"
#include "tier/runtime.h"
#include "tier/types.h"

namespace tier {

/// What a file system can do. Ask for the bit, never for the kind.
enum class Capability : std::uint32_t {
  kDurable = 1u << 0,       ///< contents outlive the process
  kOverwrite = 1u << 1,     ///< write_at below the size
  kSparse = 1u << 2,        ///< unwritten ranges cost no space
  kPunch = 1u << 3,         ///< punch() gives space back
  kAllocate = 1u << 4,      ///< allocate() reserves space
  kMapping = 1u << 5,       ///< mapping() hands out the bytes
  kDirectIo = 1u << 6,      ///< kDirect modes bypass the page cache
  kAsync = 1u << 7,         ///< start() leaves operations in flight (else it completes them before it returns)
  kAtomicRename = 1u << 8,  ///< rename() over an existing name is atomic
  kLocking = 1u << 9,       ///< OpenOptions::lock excludes other owners, and dies with its process
};

struct Capabilities {
  std::uint32_t bits = 0;
  constexpr bool has(Capability c) const noexcept { return (bits & static_cast<std::uint32_t>(c)) != 0; }
  constexpr Capabilities with(Capability c) const noexcept { return {bits | static_cast<std::uint32_t>(c)}; }
};

enum class FileMode : std::uint8_t {
  kBuffered,            ///< through the page cache
  kMapped,              ///< read_at and write_at below the size copy through a mapping
  kDirect,              ///< O_DIRECT: offsets, sizes and memory aligned to alignment()
  kWriteThrough,        ///< O_DSYNC: each write is durable when it returns
  kDirectWriteThrough,  ///< both
};
const char* file_mode_name(FileMode mode) noexcept;

enum class Create : std::uint8_t { kNever, kIfMissing, kExclusive };
/// Whether a change of names is made durable before the call returns, or by a later sync_directory().
enum class NameSync : std::uint8_t { kNow, kLater };
enum class SyncKind : std::uint8_t { kData, kAll };

struct OpenOptions {
  bool write = false;
  Create create = Create::kNever;
  FileMode mode = FileMode::kBuffered;
  /// Exclusive ownership, in this process and among processes; ends with the File or its process, not with a fork.
  bool lock = false;
  NameSync name_sync = NameSync::kNow;  ///< of a creation
};

struct FileInfo {
  std::uint64_t size = 0;       ///< bytes that can be read
  std::uint64_t allocated = 0;  ///< bytes of space it occupies
  bool directory = false;
};

struct DirectoryEntry {
  std::string name;
  bool directory = false;
};

struct SpaceInfo {
  std::uint64_t capacity = 0;  ///< bytes, quota included
  std::uint64_t available = 0;
};

/// One asynchronous operation, owned by the caller and alive until `done` is called. Nothing is allocated for it.
struct IoOp {
  enum class Kind : std::uint8_t { kRead, kWrite, kSync };
  Kind kind = Kind::kRead;
  SyncKind sync_kind = SyncKind::kData;
  std::uint64_t offset = 0;
  MutableByteSpan into;  ///< kRead
  ByteSpan from;         ///< kWrite
  /// Called once, from start() or from FileSystem::poll(); may start other operations.
  void (*done)(IoOp& op) = nullptr;
  void* context = nullptr;
  // Results, valid in done().
  Status status;
  std::size_t transferred = 0;
  // The file system's own, while in flight.
  class File* file = nullptr;
  IoOp* next = nullptr;
};

class File {
 public:
  virtual ~File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  /// Bytes read: less than asked only at the end of the file.
  virtual Result<std::size_t> read_at(std::uint64_t offset, MutableByteSpan into) = 0;
  /// kCorruption if the file ends before all is read.
  Status read_exactly_at(std::uint64_t offset, MutableByteSpan into);
  Status write_at(std::uint64_t offset, ByteSpan from) { return write_at(offset, std::span<const ByteSpan>(&from, 1)); }
  /// Gathers `parts` into one contiguous range from `offset`. Extends the file where it ends beyond it.
  virtual Status write_at(std::uint64_t offset, std::span<const ByteSpan> parts) = 0;
  virtual Status sync(SyncKind kind) = 0;
  /// Reserves space for a range and extends the size over it; new bytes read zero.
  virtual Status allocate(std::uint64_t offset, std::uint64_t length) = 0;
  /// The range reads zero afterwards and its whole blocks cost no space; the size stays.
  virtual Status punch(std::uint64_t offset, std::uint64_t length) = 0;
  /// Sets the size. kBusy below a mapping that was handed out.
  virtual Status truncate(std::uint64_t size) = 0;
  virtual Result<FileInfo> info() = 0;
  Result<std::uint64_t> size();
  /// The bytes themselves, valid until the File goes. The range must lie below the size. On a writable file stores to
  /// it are writes (durable after sync). kUnsupported without Capability::kMapping.
  virtual Result<MutableByteSpan> mapping(std::uint64_t offset, std::uint64_t length) = 0;
  /// The mode in force: what was asked for, or what it fell back to (F3).
  virtual FileMode mode() const noexcept = 0;
  /// What offsets, sizes and memory must be multiples of: 1 unless direct.
  virtual std::uint32_t alignment() const noexcept { return 1; }
  /// Begins `op`; the default completes it before it returns.
  virtual void start(IoOp& op);
  /// Relative to the file system, for messages.
  const std::string& path() const noexcept { return path_; }

 protected:
  explicit File(std::string path) : path_(std::move(path)) {}

 private:
  std::string path_;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  /// As it would be opened again.
  virtual std::string url() const = 0;
  virtual Capabilities capabilities() const noexcept = 0;

  virtual Result<std::unique_ptr<File>> open(std::string_view path, const OpenOptions& options) = 0;
  virtual Result<FileInfo> stat(std::string_view path) = 0;
  /// Names in byte order. "" is the root.
  virtual Result<std::vector<DirectoryEntry>> list(std::string_view directory) = 0;
  virtual Status create_directory(std::string_view path, NameSync when = NameSync::kNow) = 0;
  /// A file or an empty directory.
  virtual Status remove(std::string_view path, NameSync when = NameSync::kNow) = 0;
  /// Replaces `to` if it is there. Both parents are synced with NameSync::kNow.
  virtual Status rename(std::string_view from, std::string_view to, NameSync when = NameSync::kNow) = 0;
  virtual Status sync_directory(std::string_view directory) = 0;
  virtual Result<SpaceInfo> space() = 0;
  /// Whether another owner holds the lock of `path` (OpenOptions::lock), without taking it.
  virtual Result<bool> locked(std::string_view path) = 0;
  /// Completes operations in flight: calls done() for what has ended, waiting for the first until `until`. Returns how many.
  virtual Result<std::size_t> poll(Deadline until);
};

/// kInvalid unless `path` is a valid relative path (F1). "" is valid only where the root is meant.
Status check_path(std::string_view path, bool allow_root = false);

/// A store's URL in its parts: "local:///var/lib/app#events" is file system "local:///var/lib/app" and path "events".
struct Url {
  std::string scheme;    ///< "local"
  std::string location;  ///< "/var/lib/app", percent-decoded once
  std::string path;      ///< "events", "" for the root; percent-decoded once and checked (F1)
  /// The text as given, without its fragment.
  std::string file_system;
};
Result<Url> parse_url(std::string_view url);

struct FileSystemOptions {
  /// Creates the last component of the location where it is missing; its parent must exist.
  bool create = false;
  Runtime* runtime = nullptr;  ///< nullptr: Runtime::system()
  std::uint64_t quota = 0;     ///< mem: bytes at most, 0 for no limit
};

/// Opens a file system. kInvalid (scheme, location), kNotFound, kAccess, kUnsupported (a fragment: use parse_url).
Result<std::shared_ptr<FileSystem>> open_file_system(std::string_view url, const FileSystemOptions& options = {});

/// Lets a program or test add a scheme: `open` gets the location. Returns kExists for a known one.
Status register_file_system(std::string_view scheme,
                            Result<std::shared_ptr<FileSystem>> (*open)(const Url&, const FileSystemOptions&));

}  // namespace tier
