/// Marks: positions known to be durable, in two slots of a segment's header area.
#include <algorithm>

#include "base/assert.h"
#include "engine/engine_core.h"

namespace tier {

/// A mark of an earlier epoch above the last cut tells of bytes that were cut.
bool EngineCore::believable(const StoredMark& stored, std::uint64_t index) const noexcept {
  const Mark& m = stored.mark;
  const std::uint64_t start = index << segment_shift_;
  return stored.generation != 0 && m.address.value >= start && m.address.value - start <= segment_size_ &&
         m.epoch <= manifest_.epoch && (m.epoch == manifest_.epoch || m.address.value <= manifest_.cut);
}

Status EngineCore::load_marks(Segment& segment) {
  if (segment.marks.loaded) return {};
  Segment::MarkState state;
  for (unsigned slot = 0; slot < 2; ++slot) {
    HeaderPage page;
    TIER_CHECK(segment.file()->read_mark(slot, page));
    const StoredMark found = decode_mark(page, store_id_, segment.index());
    if (found.generation > state.newest.generation) {
      state.newest = found;
      state.newest_slot = slot;
    }
  }
  // After an unclean stop the newest may still be only in the kernel's cache; G3.
  state.newest_synced = state.newest.generation == 0 || recovered_.clean;
  state.loaded = true;
  segment.marks = state;
  return {};
}

Result<EngineCore::Pinned> EngineCore::pin_mark_home(std::uint64_t address) {
  std::uint64_t index = address >> segment_shift_;
  // The end of a segment, while the next one does not exist: its mark stays in the segment that it ends.
  if ((address & (segment_size_ - 1)) == 0 && address > begin_.load(std::memory_order_acquire)) {  // [R1]
    EpochProtector::Guard guard(table_.epochs());
    if (table_.find(index) == nullptr) --index;
  }
  return pin(index);
}

Status EngineCore::write_mark_to(Segment& segment, const Mark& mark) {
  MutexLock lock(mark_);
  TIER_CHECK(load_marks(segment));
  Segment::MarkState& state = segment.marks;
  // G3: an unsynced mark is replaced where it lies; a synced one stays, and the other slot is written.
  const unsigned slot = state.newest.generation == 0 ? 0 : state.newest_synced ? 1 - state.newest_slot : state.newest_slot;
  const StoredMark next{mark, state.newest.generation + 1};
  TIER_CHECK(segment.file()->write_mark(slot, encode_mark(store_id_, segment.index(), next)));
  state.newest = next;
  state.newest_slot = slot;
  state.newest_synced = segment.file()->write_through();
  return {};
}

Status EngineCore::put_mark(const Mark& mark) {
  TIER_CHECK(check_writable());
  const std::uint64_t at = mark.address.value;
  if (at > tail_.committed() || at < begin_.load(std::memory_order_acquire)) {  // [R1]
    return fail(Code::kInvalid, 0, "a mark lies between begin and committed; mark what is written", "address %llu",
                static_cast<unsigned long long>(at));
  }
  TIER_TRY(Pinned home, pin_mark_home(at));
  TIER_CHECK(write_mark_to(*home.segment, {mark.address, mark.value, epoch()}));
  mark_dirty(*home.segment);
  return {};
}

Result<Mark> EngineCore::mark_in(Address at) {
  TIER_CHECK(check_open());
  TIER_CHECK(check_range(at.value, 0));
  TIER_TRY(Pinned home, pin_mark_home(at.value));
  MutexLock admin(admin_);  // the manifest says which marks are to be believed
  MutexLock lock(mark_);
  if (options_.read_only) home->marks.loaded = false;  // the owner goes on writing them
  TIER_CHECK(load_marks(*home.segment));
  if (!believable(home->marks.newest, home->index())) {
    return fail(Code::kNotFound, 0, "the segment holds no mark; look in the one before", "file '%s'",
                store_->name_of(home->index()).c_str());
  }
  return home->marks.newest.mark;
}

Status EngineCore::drop_marks_above(Segment& segment, std::uint64_t to) {
  MutexLock lock(mark_);
  TIER_CHECK(load_marks(segment));
  for (unsigned slot = 0; slot < 2; ++slot) {
    HeaderPage page;
    TIER_CHECK(segment.file()->read_mark(slot, page));
    const StoredMark found = decode_mark(page, store_id_, segment.index());
    if (found.generation == 0 || found.mark.address.value <= to) continue;
    page.fill(std::byte{0});
    TIER_CHECK(segment.file()->write_mark(slot, page));
  }
  segment.marks.loaded = false;
  return load_marks(segment);
}

}  // namespace tier
