#include "fs/local_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/assert.h"
#include "fs/path.h"

namespace tier {
namespace {

std::uint64_t page_size() noexcept {
  static const auto size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

bool write_through(FileMode mode) noexcept {
  return mode == FileMode::kWriteThrough || mode == FileMode::kDirectWriteThrough;
}

}  // namespace

LocalFile::LocalFile(Opened opened)
    : File(std::move(opened.path)),
      home_(std::move(opened.home)),
      descriptor_(std::move(opened.descriptor)),
      owner_(std::move(opened.owner)),
      fd_(owner_ != nullptr ? owner_->fd : descriptor_.get()),
      inode_(*opened.inode),
      mode_(opened.mode),
      alignment_(opened.alignment),
      writable_(opened.writable),
      async_(opened.async) {}

LocalFile::~LocalFile() {
  // D3. [D4] acquire: what the operations did is behind us. In a child nobody completes them.
  while (in_flight_.load(std::memory_order_acquire) != 0 && !home_->ring.foreign()) home_->ring.poll(Deadline::never());
  if (!inherited()) {
    ExclusiveLock lock(inode_.resize);
    for (const Mapping& m : mappings_) {
      ::munmap(m.base, m.size);
      inode_.held.erase(std::find(inode_.held.begin(), inode_.held.end(), m.end));
    }
  }
  release_inode(inode_);
}

bool LocalFile::inherited() const noexcept {
  // relaxed: it changes only in a child that has one thread.
  return owner_ != nullptr && owner_->inherited.load(std::memory_order_relaxed);
}

Status LocalFile::check_alive() const {
  if (!inherited()) [[likely]]
    return {};
  return fail(Code::kClosing, 0, "the handle belongs to the parent process; open the store anew after a fork",
              "file '%s'", shown(place()).c_str());
}

Status LocalFile::check_range(std::uint64_t offset, std::uint64_t length) const {
  TIER_CHECK(check_alive());
  if (offset <= kLocalMost && length <= kLocalMost - offset) [[likely]]
    return {};
  return fail(Code::kInvalid, 0, "the range passes the largest offset of a file; check offset and length",
              "file '%s' at %llu, %llu bytes", shown(place()).c_str(), static_cast<unsigned long long>(offset),
              static_cast<unsigned long long>(length));
}

Status LocalFile::check_aligned(std::uint64_t offset, ByteSpan bytes) const {
  if (alignment_ == 1) return {};
  const std::uint64_t address = reinterpret_cast<std::uintptr_t>(bytes.data());
  if ((offset | address | bytes.size()) % alignment_ == 0) return {};
  return fail(
      Code::kInvalid, 0, "direct I/O needs offset, length and memory to be multiples of the alignment; align them",
      "file '%s' at %llu, %zu bytes at memory %#llx, alignment %u", shown(place()).c_str(),
      static_cast<unsigned long long>(offset), bytes.size(), static_cast<unsigned long long>(address), alignment_);
}

Status LocalFile::check_change(std::uint64_t offset, std::uint64_t length) const {
  TIER_CHECK(check_range(offset, length));
  if (!writable_)
    return fail(Code::kAccess, 0, "the file was opened for reading; open it with write", "file '%s'",
                shown(place()).c_str());
  // [D5] acquire: pairs with poison().
  if (const int e = poisoned_.load(std::memory_order_acquire); e != 0)
    return fail(Code::kPoisoned, e, "an earlier sync failed; open the file anew and read back what is there",
                "file '%s' at %llu", shown(place()).c_str(), static_cast<unsigned long long>(offset));
  return {};
}

Status LocalFile::check_write(std::uint64_t offset, std::span<const ByteSpan> parts, std::uint64_t& total) const {
  total = 0;
  for (const ByteSpan part : parts) {
    TIER_CHECK(check_aligned(offset + total, part));
    total += part.size();
  }
  return check_change(offset, total);
}

void LocalFile::poison(int system_errno) noexcept {
  int none = 0;
  // [D5] release; the first failure stays.
  poisoned_.compare_exchange_strong(none, system_errno != 0 ? system_errno : EIO, std::memory_order_release,
                                    std::memory_order_relaxed);
}

Result<std::size_t> LocalFile::read_at(std::uint64_t offset, MutableByteSpan into) {
  TIER_CHECK(check_range(offset, into.size()));
  TIER_CHECK(check_aligned(offset, into));
  const ssize_t n = read_whole(fd_, offset, into, alignment_);
  if (n < 0)
    return local_failure_at(errno, "cannot read; check the disk and the kernel log", place(), offset, into.size());
  return static_cast<std::size_t>(n);
}

Status LocalFile::write_at(std::uint64_t offset, std::span<const ByteSpan> parts) {
  std::uint64_t total = 0;
  TIER_CHECK(check_write(offset, parts, total));
  if (write_whole(fd_, offset, parts)) return {};
  const Status s = local_failure_at(errno, "cannot write; check the disk and the kernel log", place(), offset, total);
  if (write_through(mode_) && s.code() != Code::kDiskFull) poison(s.system_errno());  // D1
  return s;
}

Status LocalFile::sync(SyncKind kind) {
  TIER_CHECK(check_alive());
  // [D5] acquire.
  if (const int e = poisoned_.load(std::memory_order_acquire); e != 0)
    return fail(Code::kPoisoned, e, "an earlier sync failed; open the file anew and read back what is there",
                "file '%s'", shown(place()).c_str());
  // Interrupted is not failed: no write-back error was reported and cleared by it.
  if (uninterrupted([&] { return kind == SyncKind::kData ? local_calls.fdatasync(fd_) : local_calls.fsync(fd_); }) == 0)
    return {};
  const int e = errno;
  poison(e);  // D1
  return local_failure(e, "a sync failed and what was written may be lost; open the file anew and read it back",
                       place());
}

Status LocalFile::allocate(std::uint64_t offset, std::uint64_t length) {
  TIER_CHECK(check_change(offset, length));
  if (length == 0) return {};
  if (uninterrupted(
          [&] { return local_calls.fallocate(fd_, 0, static_cast<off_t>(offset), static_cast<off_t>(length)); }) == 0)
    return {};
  return local_failure_at(errno, "cannot reserve space; check the disk", place(), offset, length);
}

Status LocalFile::punch(std::uint64_t offset, std::uint64_t length) {
  TIER_CHECK(check_change(offset, length));
  if (length == 0) return {};
  ExclusiveLock lock(inode_.resize);
  inode_.holes.fetch_add(1, std::memory_order_relaxed);  // under the lock that its readers share
  if (uninterrupted([&] {
        return local_calls.fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                                     static_cast<off_t>(length));
      }) == 0)
    return {};
  return local_failure_at(errno, "cannot punch a hole; check the disk", place(), offset, length);
}

Status LocalFile::truncate(std::uint64_t size) {
  TIER_CHECK(check_change(size, 0));
  ExclusiveLock lock(inode_.resize);
  for (const std::uint64_t end : inode_.held)
    if (size < end)
      return fail(Code::kBusy, 0, "the file cannot shrink below a mapping that is held; close its holder first",
                  "file '%s', size %llu, mapped up to %llu", shown(place()).c_str(),
                  static_cast<unsigned long long>(size), static_cast<unsigned long long>(end));
  inode_.holes.fetch_add(1, std::memory_order_relaxed);  // under the lock that its readers share
  // First the known size, then the real one: a copy through a mapping never sees more than there is.
  const std::uint64_t known = inode_.size.load(std::memory_order_relaxed);
  if (size < known) inode_.size.store(size, std::memory_order_relaxed);
  if (uninterrupted([&] { return ::ftruncate(fd_, static_cast<off_t>(size)); }) == 0) return {};
  return local_failure_at(errno, "cannot set the size; check the disk", place(), size, 0);
}

Result<FileInfo> LocalFile::info() {
  TIER_CHECK(check_alive());
  struct stat s {};
  if (::fstat(fd_, &s) != 0) return local_failure(errno, "cannot ask for the file's size; check the disk", place());
  return FileInfo{static_cast<std::uint64_t>(s.st_size), static_cast<std::uint64_t>(s.st_blocks) * 512, false};
}

Result<std::uint64_t> LocalFile::refresh_size() {
  TIER_TRY(const FileInfo now, info());
  std::uint64_t seen = inode_.size.load(std::memory_order_relaxed);
  // relaxed: the caller shares inode_.resize, and whoever makes the size smaller excludes it.
  while (seen < now.size && !inode_.size.compare_exchange_weak(seen, now.size, std::memory_order_relaxed)) {
  }
  return now.size;
}

void* LocalFile::map(std::uint64_t offset, std::uint64_t length) const noexcept {
  void* p = ::mmap(nullptr, length, writable_ ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd_,
                   static_cast<off_t>(offset));
  if (p != MAP_FAILED && owner_ != nullptr && ::madvise(p, length, MADV_DONTFORK) != 0) {
    const int e = errno;
    ::munmap(p, length);
    errno = e;
    return MAP_FAILED;
  }
  return p;
}

Result<MutableByteSpan> LocalFile::mapping(std::uint64_t offset, std::uint64_t length) {
  TIER_CHECK(check_range(offset, length));
  if (alignment_ != 1)
    return fail(Code::kUnsupported, 0,
                "a direct file is not mapped, for the two do not see each other; open it buffered", "file '%s'",
                shown(place()).c_str());
  ExclusiveLock lock(inode_.resize);
  TIER_TRY(const FileInfo now, info());
  if (offset > now.size || length > now.size - offset)
    return fail(Code::kInvalid, 0, "a mapping must lie below the file's size; extend the file first",
                "file '%s' at %llu, %llu bytes, size %llu", shown(place()).c_str(),
                static_cast<unsigned long long>(offset), static_cast<unsigned long long>(length),
                static_cast<unsigned long long>(now.size));
  if (length == 0) return MutableByteSpan{};
  for (const Mapping& m : mappings_)
    if (offset >= m.offset && offset + length <= m.end)
      return MutableByteSpan(m.base + (offset - align_down(m.offset, page_size())), static_cast<std::size_t>(length));
  const std::uint64_t begin = align_down(offset, page_size());
  const std::uint64_t size = offset + length - begin;
  void* p = map(begin, size);
  if (p == MAP_FAILED) {
    if (errno == ENODEV)
      return fail(Code::kUnsupported, errno, "this file system cannot map files; use read_at and write_at", "file '%s'",
                  shown(place()).c_str());
    return local_failure_at(errno, "cannot map; lower the number of mapped files", place(), offset, length);
  }
  mappings_.push_back({static_cast<std::byte*>(p), size, offset, offset + length});
  inode_.held.push_back(offset + length);
  return MutableByteSpan(static_cast<std::byte*>(p) + (offset - begin), static_cast<std::size_t>(length));
}

void LocalFile::start(IoOp& op) {
  TIER_ASSERT(op.done != nullptr);
  op.file = this;
  op.next = nullptr;
  op.transferred = 0;
  op.status = {};
  switch (op.kind) {
    case IoOp::Kind::kRead:
      op.status = check_range(op.offset, op.into.size());
      if (op.status.ok()) op.status = check_aligned(op.offset, op.into);
      break;
    case IoOp::Kind::kWrite: {
      std::uint64_t total = 0;
      op.status = check_write(op.offset, std::span<const ByteSpan>(&op.from, 1), total);
      break;
    }
    case IoOp::Kind::kSync:
      op.status = check_alive();
      // [D5] acquire.
      if (const int e = poisoned_.load(std::memory_order_acquire); e != 0 && op.status.ok())
        op.status = fail(Code::kPoisoned, e, "an earlier sync failed; open the file anew and read back what is there",
                         "file '%s'", shown(place()).c_str());
      break;
  }
  const bool empty = op.kind == IoOp::Kind::kRead ? op.into.empty() : op.kind == IoOp::Kind::kWrite && op.from.empty();
  if (!op.status.ok() || empty) {
    op.done(op);
    return;
  }
  if (async_ && home_->ring.start(op)) return;
  File::start(op);
}

bool LocalFile::advance(IoOp& op, int result) {
  if (result == -EINTR || result == -EAGAIN || result == -ECANCELED) return false;  // R3
  if (op.kind == IoOp::Kind::kSync) {
    if (result >= 0) return true;
    poison(-result);  // D1
    op.status = local_failure(
        -result, "a sync failed and what was written may be lost; open the file anew and read it back", place());
    return true;
  }
  const bool reading = op.kind == IoOp::Kind::kRead;
  const std::size_t wanted = reading ? op.into.size() : op.from.size();
  if (result < 0 || (result == 0 && !reading)) {
    const int e = result < 0 ? -result : EIO;
    op.status = local_failure_at(
        e,
        reading ? "cannot read; check the disk and the kernel log" : "cannot write; check the disk and the kernel log",
        place(), op.offset + op.transferred, wanted - op.transferred);
    if (!reading && write_through(mode_) && op.status.code() != Code::kDiskFull) poison(e);  // D1
    return true;
  }
  op.transferred += static_cast<std::size_t>(result);
  if (op.transferred == wanted) return true;
  // A read that brought nothing, or cut a block of a direct file, has met the end.
  return reading && (result == 0 || static_cast<std::uint32_t>(result) % alignment_ != 0);
}

}  // namespace tier
