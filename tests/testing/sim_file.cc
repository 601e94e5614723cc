#include "testing/sim_file.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "base/assert.h"
#include "fs/path.h"
#include "tier/crc32c.h"

namespace tier::testing {
namespace {

constexpr std::uint64_t kMostOffset = std::uint64_t{1} << 62;

unsigned long long shown_number(std::uint64_t n) noexcept { return n; }

}  // namespace

Status sim_off(std::string_view path) noexcept {
  return fail(Code::kIo, EIO, "the power is off; restart the disk and open the file system anew", "sim file '%s'",
              shown(path).c_str());
}

Status sim_refused(int error, const char* text, std::string_view path, std::uint64_t offset) noexcept {
  return fail(code_of_errno(error), error, text, "sim file '%s' at %llu", shown(path).c_str(), shown_number(offset));
}

SimFile::~SimFile() {
  // Its operations in flight end first.
  for (IoOp* op = nullptr;;) {
    {
      const std::lock_guard lock(view_.disk->mutex_);
      const auto& flights = view_.disk->flights_;
      const auto mine = [this](const SimDisk::Flight& flight) { return flight.file == this; };
      const auto it = std::find_if(flights.begin(), flights.end(), mine);
      if (it == flights.end()) break;
      op = take_flight(static_cast<std::size_t>(it - flights.begin()));
    }
    op->done(*op);
  }
  const std::lock_guard lock(view_.disk->mutex_);
  if (!view_.alive()) return;
  SimDisk::Inode& file = node();
  view_.disk->harvest(file);
  --view_.disk->handles_;
  --file.opens;
  if (locks_) file.owner = 0;
  if (mapped_ != nullptr && --mapped_->files == 0) file.mapped.reset();
  if (file.opens == 0 && !file.linked) view_.disk->collect();
}

Status SimFile::check_range(std::uint64_t offset, std::uint64_t length) const {
  if (offset <= kMostOffset && length <= kMostOffset - offset) return {};
  return fail(Code::kInvalid, EINVAL, "the range ends beyond the largest offset; use a smaller one",
              "sim file '%s' at %llu, %llu bytes", shown(path()).c_str(), shown_number(offset), shown_number(length));
}

Status SimFile::check_aligned(std::uint64_t offset, ByteSpan memory) const {
  const std::uint64_t unit = alignment();
  if (offset % unit == 0 && memory.size() % unit == 0 && reinterpret_cast<std::uintptr_t>(memory.data()) % unit == 0)
    return {};
  return fail(Code::kInvalid, EINVAL, "direct transfers need aligned offset, size and memory; see File::alignment()",
              "sim file '%s' at %llu, %zu bytes, memory %% %llu = %llu", shown(path()).c_str(), shown_number(offset),
              memory.size(), shown_number(unit), shown_number(reinterpret_cast<std::uintptr_t>(memory.data()) % unit));
}

Status SimFile::may_write(std::uint64_t offset, std::uint64_t length) const {
  if (!writable_)
    return sim_refused(EACCES, "the file is open for reading; open it with OpenOptions::write", path(), offset);
  // relaxed: whoever must see the poison waited for the sync that set it.
  if (poisoned_.load(std::memory_order_relaxed))
    return fail(Code::kPoisoned, 0, "an earlier sync failed; open the file anew and read what is there",
                "sim file '%s' at %llu", shown(path()).c_str(), shown_number(offset));
  return check_range(offset, length);
}

Status SimFile::room_for(std::uint64_t offset, std::uint64_t length, bool overwrites) const {
  const SimImage& cache = node().cache;
  if (overwrites && !view_.has(Capability::kOverwrite) && offset < cache.size())
    return fail(Code::kUnsupported, 0, "this file system cannot overwrite; append instead", "sim file '%s' at %llu",
                shown(path()).c_str(), shown_number(offset));
  const std::uint64_t missing = cache.missing_pages(offset, length);
  if (missing == 0) return {};
  const std::uint64_t used = view_.disk->used_locked();
  const std::uint64_t capacity = view_.disk->options_.capacity;
  if (used <= capacity && missing <= (capacity - used) / kSimPage) return {};
  return sim_refused(ENOSPC, "the disk is full; free some space", path(), offset);
}

Result<std::size_t> SimFile::read_locked(std::uint64_t offset, MutableByteSpan into) {
  SimDisk::Inode& file = node();
  view_.disk->harvest(file);
  const std::uint64_t size = file.cache.size();
  if (offset >= size || into.empty()) return std::size_t{0};
  const MutableByteSpan whole =
      into.first(static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), size - offset)));
  const auto broken = file.broken_sectors.lower_bound(offset / kSimSector);
  if (broken != file.broken_sectors.end() && *broken * kSimSector < offset + whole.size())
    return sim_refused(EIO, "the sector cannot be read; replace the disk or restore the file", path(),
                       *broken * kSimSector);
  file.cache.read(offset, whole);
  return whole.size();
}

Result<std::size_t> SimFile::read_at(std::uint64_t offset, MutableByteSpan into) {
  view_.pause();
  TIER_CHECK(check_range(offset, into.size()));
  TIER_CHECK(check_aligned(offset, into));
  const std::lock_guard lock(view_.disk->mutex_);
  const SimDisk::Call call = view_.disk->begin(kSimRead, path(), view_.generation, offset, into.size());
  TIER_CHECK(call.status);
  if (call.error != 0) return sim_refused(call.error, "cannot read; check the disk", path(), offset);
  return read_locked(offset, into);
}

Status SimFile::write_at(std::uint64_t offset, std::span<const ByteSpan> parts) {
  view_.pause();
  std::vector<std::byte> gathered;
  ByteSpan from;
  std::uint64_t total = 0;
  for (const ByteSpan part : parts) {
    TIER_CHECK(check_aligned(offset + total, part));
    total += part.size();
  }
  TIER_CHECK(may_write(offset, total));
  if (parts.size() == 1) {
    from = parts[0];
  } else {
    gathered.reserve(static_cast<std::size_t>(total));
    for (const ByteSpan part : parts) gathered.insert(gathered.end(), part.begin(), part.end());
    from = gathered;
  }

  SimDisk& disk = *view_.disk;
  std::vector<std::uint64_t> orders;
  std::uint64_t at = offset;
  for (bool first = true; first || !from.empty(); first = false) {
    if (!first) view_.pause();
    // Pieces of whole sectors of the file, others running between them: M1.
    std::uint64_t piece = from.size();
    if (view_.sim != nullptr && disk.options().yield && at / kSimSector != (at + piece) / kSimSector &&
        view_.sim->random().chance(128))
      piece = std::clamp<std::uint64_t>(align_up(at + 1 + view_.sim->random().below(piece), kSimSector) - at, 1, piece);
    const std::lock_guard lock(disk.mutex_);
    SimDisk::Call call;
    if (first) {
      call = disk.begin(kSimWrite, path(), view_.generation, offset, total);
      TIER_CHECK(call.status);
      disk.trace_ = sim_mix(disk.trace_, crc32c_extend(0, from));
      disk.harvest(node());
      if (call.error == 0) TIER_CHECK(room_for(offset, total, true));
    } else if (!view_.alive()) {
      return sim_off(path());
    }
    if (call.error != 0) {
      if (call.partial)
        disk.change(node(), Change::write(at, from.first(static_cast<std::size_t>(disk.random_.below(from.size())))));
      return sim_refused(call.error, "cannot write; check the disk", path(), offset);
    }
    if (call.cut) piece = from.size();
    orders.push_back(disk.change(node(), Change::write(at, from.first(static_cast<std::size_t>(piece)))));
    at += piece;
    from = from.subspan(static_cast<std::size_t>(piece));
    if (call.cut) {
      disk.cut_locked();
      return sim_off(path());
    }
  }
  if (write_through() && total > 0) {
    view_.take_time(20'000, 200'000);
    const std::lock_guard lock(disk.mutex_);
    if (!view_.alive()) return sim_off(path());
    for (const std::uint64_t order : orders) disk.mark_synced(node(), order);
  }
  view_.pause();
  return {};
}

Status SimFile::sync_failed(int error, std::uint64_t covered) {
  view_.disk->fail_sync(node(), covered);
  if (view_.disk->options_.poison) poisoned_.store(true, std::memory_order_relaxed);  // relaxed: as in may_write()
  return sim_refused(error, "cannot sync; what was written since the last sync may be lost", path(), 0);
}

Status SimFile::sync(SyncKind kind) {
  view_.pause();
  if (poisoned_.load(std::memory_order_relaxed)) return may_write(0, 0);  // relaxed: as there
  SimDisk& disk = *view_.disk;
  std::uint64_t covered = 0;
  {
    const std::lock_guard lock(disk.mutex_);
    const SimDisk::Call call = disk.begin(kSimSync, path(), view_.generation, static_cast<std::uint64_t>(kind), inode_);
    TIER_CHECK(call.status);
    disk.harvest(node());
    covered = disk.order_;  // M2
    if (call.cut) {
      disk.cut_locked();
      return sim_off(path());
    }
    if (call.error != 0) return sync_failed(call.error, covered);
  }
  view_.take_time(20'000, 500'000);
  {
    const std::lock_guard lock(disk.mutex_);
    if (!view_.alive()) return sim_off(path());
    disk.sync(node(), covered);
  }
  view_.pause();
  return {};
}

Status SimFile::alter(std::uint32_t kind, Change what) {
  SimDisk& disk = *view_.disk;
  {
    const std::lock_guard lock(disk.mutex_);
    const SimDisk::Call call = disk.begin(kind, path(), view_.generation, what.offset, what.length);
    TIER_CHECK(call.status);
    SimDisk::Inode& file = node();
    disk.harvest(file);
    const std::uint64_t offset = what.offset;
    if (call.error != 0) {
      if (call.partial) disk.change(file, std::move(what));
      return sim_refused(call.error, "cannot change the file's space; check the disk and its free space", path(),
                         offset);
    }
    if (kind == kSimAllocate) TIER_CHECK(room_for(offset, what.length, false));
    if (kind == kSimTruncate && file.mapped != nullptr && offset < file.mapped->end && offset < file.cache.size())
      return fail(Code::kBusy, EBUSY, "the file is mapped there; close what mapped it first", "sim file '%s' at %llu",
                  shown(path()).c_str(), shown_number(offset));
    if (kind == kSimPunch) {
      // Beyond the size there is nothing to give back.
      if (offset >= file.cache.size()) return {};
      what.length = std::min(what.length, file.cache.size() - offset);
    }
    if (what.length > 0 || kind == kSimTruncate) disk.change(file, std::move(what));
    if (call.cut) {
      disk.cut_locked();
      return sim_off(path());
    }
  }
  view_.pause();
  return {};
}

Status SimFile::allocate(std::uint64_t offset, std::uint64_t length) {
  view_.pause();
  TIER_CHECK(may_write(offset, length));
  if (!view_.has(Capability::kAllocate))
    return fail(Code::kUnsupported, EOPNOTSUPP, "this file system cannot reserve space; write zeros instead",
                "sim file '%s' at %llu", shown(path()).c_str(), shown_number(offset));
  return alter(kSimAllocate, {.kind = Change::Kind::kAllocate, .offset = offset, .length = length});
}

Status SimFile::punch(std::uint64_t offset, std::uint64_t length) {
  view_.pause();
  TIER_CHECK(may_write(offset, length));
  if (!view_.has(Capability::kPunch))
    return fail(Code::kUnsupported, EOPNOTSUPP, "this file system cannot punch holes; write zeros instead",
                "sim file '%s' at %llu", shown(path()).c_str(), shown_number(offset));
  return alter(kSimPunch, {.kind = Change::Kind::kPunch, .offset = offset, .length = length});
}

Status SimFile::truncate(std::uint64_t size) {
  view_.pause();
  TIER_CHECK(may_write(size, 0));
  return alter(kSimTruncate, {.kind = Change::Kind::kTruncate, .offset = size});
}

Result<FileInfo> SimFile::info() {
  view_.pause();
  const std::lock_guard lock(view_.disk->mutex_);
  const SimDisk::Call call = view_.disk->begin(kSimStat, path(), view_.generation, inode_, 0);
  TIER_CHECK(call.status);
  if (call.error != 0) return sim_refused(call.error, "cannot ask for the file's size; check the disk", path(), 0);
  return FileInfo{.size = node().cache.size(), .allocated = node().cache.allocated()};
}

Result<MutableByteSpan> SimFile::mapping(std::uint64_t offset, std::uint64_t length) {
  TIER_CHECK(check_range(offset, length));
  const std::lock_guard lock(view_.disk->mutex_);
  if (!view_.alive()) return sim_off(path());
  if (!view_.has(Capability::kMapping))
    return fail(Code::kUnsupported, EOPNOTSUPP, "this file system does not map files; read and write instead",
                "sim file '%s' at %llu", shown(path()).c_str(), shown_number(offset));
  SimDisk::Inode& file = node();
  view_.disk->harvest(file);
  if (offset + length > file.cache.size())
    return fail(Code::kInvalid, EINVAL, "the range ends beyond the file; allocate it first",
                "sim file '%s' at %llu, %llu bytes, size %llu", shown(path()).c_str(), shown_number(offset),
                shown_number(length), shown_number(file.cache.size()));
  if (offset + length > SimDisk::Mapped::kArena)
    return fail(Code::kTooLarge, 0, "the simulator maps the first GiB of a file only", "sim file '%s' at %llu",
                shown(path()).c_str(), shown_number(offset));
  if (file.mapped == nullptr) file.mapped = std::make_shared<SimDisk::Mapped>();
  if (mapped_ == nullptr) ++file.mapped->files;
  mapped_ = file.mapped;
  mapped_->end = std::max(mapped_->end, offset + length);
  file.mapped->writable = file.mapped->writable || writable_;
  for (std::uint64_t page = offset / kSimPage; page * kSimPage < offset + length; ++page)
    if (file.mapped->pages.insert(page).second)
      file.cache.read(page * kSimPage, {file.mapped->arena + page * kSimPage, kSimPage});
  return MutableByteSpan{file.mapped->arena + offset, static_cast<std::size_t>(length)};
}

// --- Operations in flight --------------------------------------------------------------------------------------------

void SimFile::start(IoOp& op) {
  if (!view_.has(Capability::kAsync)) return File::start(op);
  TIER_ASSERT(op.done != nullptr);
  view_.pause();
  op.file = this;
  op.next = nullptr;
  op.transferred = 0;
  const bool writes = op.kind == IoOp::Kind::kWrite;
  const ByteSpan memory = writes ? op.from : ByteSpan(op.into);
  op.status = op.kind == IoOp::Kind::kRead ? check_range(op.offset, memory.size()) : Status{};
  if (writes) op.status = may_write(op.offset, memory.size());
  if (op.kind == IoOp::Kind::kSync && poisoned_.load(std::memory_order_relaxed))
    op.status = may_write(0, 0);  // relaxed: as there
  if (op.status.ok() && op.kind != IoOp::Kind::kSync) op.status = check_aligned(op.offset, memory);
  if (op.status.ok()) {
    SimDisk& disk = *view_.disk;
    const std::lock_guard lock(disk.mutex_);
    const std::uint32_t kind = writes ? kSimWrite : op.kind == IoOp::Kind::kRead ? kSimRead : kSimSync;
    const SimDisk::Call call = disk.begin(kind, path(), view_.generation, op.offset, memory.size());
    op.status = call.status;
    if (op.status.ok()) {
      const std::uint64_t most = op.kind == IoOp::Kind::kSync ? 500'000 : 100'000;
      SimDisk::Flight flight{.op = &op,
                             .file = this,
                             .owner = view_.poller,
                             .inode = inode_,
                             .order = disk.order_,
                             .ready_ns = view_.now_ns() + view_.latency_ns(1'000, most)};
      disk.harvest(node());
      if (writes) disk.trace_ = sim_mix(disk.trace_, crc32c_extend(0, op.from));
      if (call.error != 0)
        flight.status = sim_refused(call.error, "the operation failed; check the disk", path(), op.offset);
      else if (writes)
        flight.status = room_for(op.offset, op.from.size(), true);
      disk.flights_.push_back(flight);
      if (call.cut) disk.cut_locked();  // poll() will say so
      return;
    }
  }
  op.done(op);  // the operation may be gone when this returns
}

IoOp* SimFile::take_flight(std::size_t flight_idx) {
  auto& flights = view_.disk->flights_;
  const SimDisk::Flight flight = flights[flight_idx];
  flights.erase(flights.begin() + static_cast<std::ptrdiff_t>(flight_idx));
  flight.op->status = view_.alive() ? land(flight) : sim_off(path());
  return flight.op;
}

Status SimFile::land(const SimDisk::Flight& flight) {
  IoOp& op = *flight.op;
  SimDisk& disk = *view_.disk;
  if (op.kind == IoOp::Kind::kSync) {
    if (!flight.status.ok()) return sync_failed(flight.status.system_errno(), flight.order);
    disk.sync(node(), flight.order);
    return {};
  }
  TIER_CHECK(flight.status);
  if (op.kind == IoOp::Kind::kRead) {
    TIER_TRY(op.transferred, read_locked(op.offset, op.into));
    return {};
  }
  TIER_CHECK(room_for(op.offset, op.from.size(), false));
  op.transferred = op.from.size();
  if (op.from.empty()) return {};
  const std::uint64_t order = disk.change(node(), Change::write(op.offset, op.from));
  if (write_through()) disk.mark_synced(node(), order);
  return {};
}

}  // namespace tier::testing
