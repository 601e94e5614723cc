#include "engine/fs_segment_store.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"

namespace tier {
namespace {

constexpr std::size_t kZeroBytes = 64 << 10;
alignas(64) constexpr std::byte zeros[kZeroBytes] = {};

bool is_zero(ByteSpan bytes) noexcept {
  while (!bytes.empty()) {
    const std::size_t n = std::min(bytes.size(), kZeroBytes);
    if (std::memcmp(bytes.data(), zeros, n) != 0) return false;
    bytes = bytes.subspan(n);
  }
  return true;
}

class FsSegmentFile final : public SegmentFile {
 public:
  FsSegmentFile(std::shared_ptr<FileSystem> fs, std::unique_ptr<File> file, std::string name,
                const SegmentIdentity& identity, MutableByteSpan mapping) noexcept
      : fs_(std::move(fs)), file_(std::move(file)), name_(std::move(name)), identity_(identity), mapping_(mapping) {}

  Status write(std::uint64_t offset, std::span<const ByteSpan> parts) override {
    return named(file_->write_at(kSegmentDataOffset + offset, parts));
  }
  Status read(std::uint64_t offset, MutableByteSpan into) override {
    return named(file_->read_exactly_at(kSegmentDataOffset + offset, into));
  }
  Status write_mark(unsigned slot, const HeaderPage& page) override {
    return named(file_->write_at((1 + slot) * kHeaderPage, ByteSpan(page)));
  }
  Status read_mark(unsigned slot, HeaderPage& page) override;
  Status sync(SyncKind kind) override { return named(file_->sync(kind)); }
  Status reserve(std::uint64_t offset, std::uint64_t length) override {
    if (!fs_->capabilities().has(Capability::kAllocate) || length == 0) return {};
    return named(file_->allocate(kSegmentDataOffset + offset, length));
  }
  Status erase(std::uint64_t offset, std::uint64_t length) override;
  Status punch(std::uint64_t offset, std::uint64_t length) override {
    if (!fs_->capabilities().has(Capability::kPunch))
      return Status(Code::kUnsupported, "this file system cannot give back part of a file");
    return named(file_->punch(kSegmentDataOffset + offset, length));
  }
  MutableByteSpan mapping() const noexcept override { return mapping_; }
  bool write_through() const noexcept override { return file_->mode() == FileMode::kWriteThrough; }
  const SegmentIdentity& identity() const noexcept override { return identity_; }

 private:
  /// A file made by this owner goes on under the name that it was made with; a failure tells the one it has now.
  Status named(Status s) const {
    if (s.ok() || file_->path() == name_) [[likely]] return s;
    return fail(s.code(), s.system_errno(), s.text(), "file '%s' (made as %s)", name_.c_str(), s.place().c_str());
  }

  std::shared_ptr<FileSystem> fs_;  // before the file: a View may outlive the engine
  std::unique_ptr<File> file_;
  std::string name_;
  SegmentIdentity identity_;
  MutableByteSpan mapping_;
};

/// A sector that was being written when the power went may be unreadable for good: such a copy is no copy.
Status FsSegmentFile::read_mark(unsigned slot, HeaderPage& page) {
  constexpr int kTries = 3;
  page.fill(std::byte{0});
  for (std::uint64_t copy = 0; copy < kHeaderPage; copy += kMarkCopyStride) {
    const MutableByteSpan sector = std::span(page).subspan(copy, sizeof(MarkSector));
    Status s;
    for (int i = 0; i < kTries; ++i) {
      s = file_->read_exactly_at((1 + slot) * kHeaderPage + copy, sector);
      if (s.code() != Code::kIo) break;
    }
    if (s.code() == Code::kIo) std::fill(sector.begin(), sector.end(), std::byte{0});
    else TIER_CHECK(s);
  }
  return {};
}

Status FsSegmentFile::erase(std::uint64_t offset, std::uint64_t length) {
  if (length == 0) return {};
  if (fs_->capabilities().has(Capability::kPunch)) {
    const Status s = punch(offset, length);
    if (s.code() != Code::kUnsupported) return s;
  }
  // Zeros are written only where something else lies: the rest stays sparse.
  HeaderPage page;
  while (length != 0) {
    const std::uint64_t n = std::min<std::uint64_t>(length, page.size());
    const MutableByteSpan part = std::span(page).first(n);
    const Status s = read(offset, part);  // what cannot be read is overwritten, too
    if (!s.ok() && s.code() != Code::kIo) return s;
    if (!s.ok() || !is_zero(part)) TIER_CHECK(file_->write_at(kSegmentDataOffset + offset, ByteSpan(zeros, n)));
    offset += n;
    length -= n;
  }
  return {};
}

/// The number that a segment's file name says, if it is one.
bool parse_segment_name(std::string_view name, std::uint64_t& segment) {
  if (name.size() != 16 || !name.ends_with(".seg")) return false;
  segment = 0;
  for (const char c : name.substr(0, 12)) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && !(c >= 'a' && c <= 'f')) return false;
    segment = segment * 16 + static_cast<std::uint64_t>(digit ? c - '0' : c - 'a' + 10);
  }
  return true;
}

}  // namespace

Result<std::vector<std::uint64_t>> FsSegmentStore::list() {
  TIER_TRY(const auto entries, fs_->list(path_));
  std::vector<std::uint64_t> segments;
  for (const DirectoryEntry& e : entries) {
    std::uint64_t segment = 0;
    if (e.directory || !parse_segment_name(e.name, segment)) continue;
    if (segment >= kSegmentsMax) {
      return fail(Code::kCorruption, 0, "a segment's number is out of range; move the file away", "file '%s'",
                  inside(e.name).c_str());
    }
    segments.push_back(segment);
  }
  std::sort(segments.begin(), segments.end());
  return segments;
}

Result<std::unique_ptr<SegmentFile>> FsSegmentStore::create(std::uint64_t segment, std::uint32_t epoch, std::uint64_t salt,
                                                            std::uint64_t reserve) {
  const std::string name = name_of(segment);
  const std::string unfinished = name + ".new";
  if (const Status s = fs_->remove(unfinished, NameSync::kLater); !s.ok() && s.code() != Code::kNotFound) return s;
  TIER_TRY(auto file, fs_->open(unfinished, {.write = true, .create = Create::kExclusive, .mode = mode_, .lock = true,
                                             .name_sync = NameSync::kLater}));
  const auto build = [&]() -> Status {
    TIER_POINT("engine/segment/created");
    TIER_CHECK(file->truncate(kSegmentDataOffset + segment_size_));
    TIER_POINT("engine/segment/sized");
    const HeaderPage header = encode_segment_header(store_id_, segment, segment_size_, epoch, salt);
    TIER_CHECK(file->write_at(0, ByteSpan(header)));
    TIER_POINT("engine/segment/header_written");
    if (fs_->capabilities().has(Capability::kAllocate)) TIER_CHECK(file->allocate(0, kSegmentDataOffset + reserve));
    if (!TIER_BUG("engine_skip_header_sync")) TIER_CHECK(file->sync(SyncKind::kAll));
    TIER_POINT("engine/segment/synced");
    TIER_CHECK(fs_->rename(unfinished, name, NameSync::kLater));  // T1: only now does it get its name
    TIER_POINT("engine/segment/renamed");
    if (!TIER_BUG("engine_skip_dir_sync")) TIER_CHECK(sync_names());
    TIER_POINT("engine/segment/named");
    return {};
  };
  if (const Status s = build(); !s.ok()) {
    file.reset();
    // What was begun gives its space back. Should that fail too, the next owner does it: the first failure is the news.
    static_cast<void>(fs_->remove(unfinished, NameSync::kLater));
    return s;
  }
  return adopt(std::move(file), {store_id_, segment, segment_size_, salt, epoch}, true);
}

Result<std::unique_ptr<SegmentFile>> FsSegmentStore::open(std::uint64_t segment, bool write) {
  const std::string name = name_of(segment);
  TIER_TRY(auto file, fs_->open(name, {.write = write, .mode = mode_, .lock = write}));  // T3
  TIER_TRY(const std::uint64_t size, file->size());
  if (size != kSegmentDataOffset + segment_size_) {
    return fail(Code::kCorruption, 0, "a segment has the wrong length; restore the file from a copy",
                "file '%s' of %llu bytes, expected %llu", name.c_str(), static_cast<unsigned long long>(size),
                static_cast<unsigned long long>(kSegmentDataOffset + segment_size_));
  }
  HeaderPage page;
  TIER_CHECK(file->read_exactly_at(0, page));
  const auto identity = decode_segment_header(page);
  if (!identity.ok()) {
    return fail(identity.code(), 0, identity.status().text(), "file '%s' at 0 %s", name.c_str(),
                identity.status().place().c_str());
  }
  if (identity->store_id != store_id_ || identity->segment != segment || identity->segment_size != segment_size_) {
    return fail(Code::kCorruption, 0, "a segment belongs elsewhere; restore the right file from a copy",
                "file '%s' says store %016llx segment %llu of %llu bytes", name.c_str(),
                static_cast<unsigned long long>(identity->store_id), static_cast<unsigned long long>(identity->segment),
                static_cast<unsigned long long>(identity->segment_size));
  }
  return adopt(std::move(file), *identity, write);
}

Result<std::unique_ptr<SegmentFile>> FsSegmentStore::adopt(std::unique_ptr<File> file, const SegmentIdentity& identity,
                                                           bool write) {
  // Memory that cannot fault is used directly: process memory, or a mapped file whose space is reserved before a store.
  const Capabilities can = fs_->capabilities();
  const bool safe = !can.has(Capability::kDurable) ||
                    (mode_ == FileMode::kMapped && (!write || can.has(Capability::kAllocate)));
  MutableByteSpan data;
  if (can.has(Capability::kMapping) && safe) {
    const auto mapping = file->mapping(0, kSegmentDataOffset + segment_size_);
    if (mapping.ok()) data = mapping->subspan(kSegmentDataOffset);
    // Memory under a quota may be too little for a whole segment, yet enough for what is written to it.
    else if (mapping.code() != Code::kUnsupported && mapping.code() != Code::kDiskFull) return mapping.status();
  }
  return std::unique_ptr<SegmentFile>(new FsSegmentFile(fs_, std::move(file), name_of(identity.segment), identity, data));
}

Status FsSegmentStore::remove(std::uint64_t segment) {
  const Status s = fs_->remove(name_of(segment), NameSync::kLater);
  return s.code() == Code::kNotFound ? Status{} : s;
}

Status FsSegmentStore::sync_names() {
  const Status s = fs_->sync_directory(path_);
  return s.ok() ? s : s.as(Code::kPoisoned, "a sync of the directory failed; check the device, then open the store again");
}

}  // namespace tier
