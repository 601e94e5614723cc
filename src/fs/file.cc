/// What every File and FileSystem has without writing it again: whole reads, sizes, and operations that complete before
/// they return.
#include "base/assert.h"
#include "fs/path.h"
#include "tier/fs.h"

namespace tier {

const char* file_mode_name(FileMode mode) noexcept {
  switch (mode) {
    case FileMode::kBuffered: return "buffered";
    case FileMode::kMapped: return "mapped";
    case FileMode::kDirect: return "direct";
    case FileMode::kWriteThrough: return "write-through";
    case FileMode::kDirectWriteThrough: return "direct+write-through";
  }
  return "unknown";
}

Status File::read_exactly_at(std::uint64_t offset, MutableByteSpan into) {
  TIER_TRY(const std::size_t got, read_at(offset, into));
  if (got == into.size()) return {};
  return fail(Code::kCorruption, 0, "the file ends early; it was cut, restore it or run verify",
              "file '%s' at %llu: %zu of %zu bytes", shown(path_).c_str(), static_cast<unsigned long long>(offset), got,
              into.size());
}

Result<std::uint64_t> File::size() {
  TIER_TRY(const FileInfo i, info());
  return i.size;
}

void File::start(IoOp& op) {
  TIER_ASSERT(op.done != nullptr);
  op.file = this;
  op.next = nullptr;
  op.transferred = 0;
  op.status = {};
  switch (op.kind) {
    case IoOp::Kind::kRead: {
      const Result<std::size_t> got = read_at(op.offset, op.into);
      op.status = got.status();
      op.transferred = got.ok() ? *got : 0;
      break;
    }
    case IoOp::Kind::kWrite:
      op.status = write_at(op.offset, op.from);
      op.transferred = op.status.ok() ? op.from.size() : 0;
      break;
    case IoOp::Kind::kSync: op.status = sync(op.sync_kind); break;
  }
  op.done(op);  // the operation may be gone when this returns
}

Result<std::size_t> FileSystem::poll(Deadline) { return std::size_t{0}; }  // nothing is ever left in flight

}  // namespace tier
