/// Opening and recovery: manifest, names and a few headers, never data (N7).
#include <algorithm>
#include <bit>
#include <new>

#include "base/assert.h"
#include "engine/engine_core.h"
#include "engine/fs_segment_store.h"
#include "engine/options.h"

namespace tier {

Result<std::unique_ptr<Engine>> Engine::open(std::string_view url, const EngineOptions& options) {
  TIER_CHECK(check_engine_options(options));
  TIER_TRY(const Url parsed, parse_url(url));
  const FileSystemOptions fs_options{.create = options.create != Create::kNever && parsed.path.empty(),
                                     .runtime = options.runtime};
  TIER_TRY(auto fs, open_file_system(parsed.file_system, fs_options));
  return open(std::move(fs), parsed.path, options);
}

Result<std::unique_ptr<Engine>> Engine::open(std::shared_ptr<FileSystem> fs, std::string_view path,
                                             const EngineOptions& options) {
  TIER_CHECK(check_engine_options(options));
  TIER_CHECK(check_path(path, true));
  Runtime& runtime = options.runtime != nullptr ? *options.runtime : Runtime::system();
  auto store = std::make_unique<FsSegmentStore>(std::move(fs), std::string(path), options.mode, runtime);
  auto core = std::make_unique<EngineCore>(std::move(store), std::string(path), options, runtime);
  TIER_CHECK(core->start());
  return std::unique_ptr<Engine>(std::move(core));
}

Status EngineCore::start() {
  Manifest fresh;
  do {
    fresh.store_id = runtime_.random->next();
  } while (fresh.store_id == 0);
  std::copy(kind_.begin(), kind_.end(), fresh.kind.begin());
  fresh.segment_size = options_.segment_size.value;
  TIER_TRY(const SegmentStore::Attached attached, store_->attach(options_.create, options_.read_only, fresh));
  manifest_ = attached.manifest;
  store_id_ = manifest_.store_id;
  if (manifest_.kind_text() != kind_) {
    return fail(Code::kInvalid, 0, "the store is of another kind; open it as that", "store '%s' is of kind '%s', asked for '%s'",
                path_.c_str(), manifest_.kind.data(), kind_.c_str());
  }
  segment_size_ = manifest_.segment_size;
  segment_shift_ = static_cast<unsigned>(std::countr_zero(segment_size_));
  if (options_.read_only) refusal_.fetch_or(kReadOnlyOpen, std::memory_order_relaxed);  // relaxed: nobody looks yet
  TIER_TRY(Survey survey, survey_segments());
  recovered_.created = attached.created;
  recovered_.clean = manifest_.clean;
  recovered_.clean_mark = manifest_.clean_mark;
  recovered_.has_mark = survey.has_mark;
  recovered_.mark = survey.mark;
  recovered_.end_of_segments = Address{survey.end};
  recovered_.epoch = manifest_.epoch;
  recovered_.cut = Address{manifest_.cut};
  TIER_CHECK(adopt(survey));
  if (options_.read_only) return {};
  removed_below_ = manifest_.begin >> segment_shift_;
  TIER_CHECK(worker_.start());
  if (options_.tail_policy == TailPolicy::kCaller) return {};
  return reclaim_tail(Address{survey.tail});
}

Status EngineCore::missing_segment(std::uint64_t index) const {
  return fail(Code::kCorruption, 0, "a segment is missing; restore the file from a copy", "file '%s'",
              store_->name_of(index).c_str());
}

Result<EngineCore::Survey> EngineCore::survey_segments() {
  constexpr int kTries = 5;
  for (int i = 1;; ++i) {
    auto survey = survey_once();
    // Beside a running owner names may change between the manifest and the list: look again.
    const bool moving = survey.code() == Code::kNotFound || survey.code() == Code::kCorruption;
    if (survey.ok() || !options_.read_only || !moving || i == kTries) return survey;
    runtime_.parker->sleep(std::chrono::milliseconds(2));
    TIER_TRY(manifest_, store_->load_manifest());
  }
}

Result<EngineCore::Survey> EngineCore::survey_once() {
  const Manifest& m = manifest_;
  const bool owner = !options_.read_only;
  const std::uint64_t first = m.begin >> segment_shift_;
  TIER_TRY(auto segments, store_->list());
  bool removed = false;
  // What a crashed reclaim_head left behind.
  const auto live = std::lower_bound(segments.begin(), segments.end(), first);
  for (auto i = segments.begin(); owner && i != live; ++i) {
    TIER_CHECK(store_->remove(*i));
    removed = true;
    TIER_POINT("engine/open/leftover_removed");
  }
  segments.erase(segments.begin(), live);

  // From the newest downwards, each locked before it is looked into (N6), until the tail must lie above.
  Survey survey;
  const std::uint64_t floor = std::max({m.begin, m.cut, m.clean ? m.clean_mark.address.value : 0});
  std::vector<std::uint64_t> kept = segments;
  for (auto i = segments.rbegin(); i != segments.rend(); ++i) {
    const std::uint64_t start = *i << segment_shift_;
    TIER_TRY(auto file, store_->open(*i, owner));
    const std::uint32_t epoch = file->identity().epoch;
    if (epoch > m.epoch) return later_epoch(*i, epoch);
    if (epoch < m.epoch && start >= m.cut) {  // a crashed reclaim_tail left it behind
      std::erase(kept, *i);
      if (!owner) continue;
      file.reset();
      TIER_CHECK(store_->remove(*i));
      removed = true;
      TIER_POINT("engine/open/cut_removed");
      continue;
    }
    Segment* segment = new (std::nothrow) Segment(*i);
    if (segment == nullptr) return Status(Code::kOutOfMemory, "cannot allocate a segment; lower the memory options");
    survey.opened.emplace_back(segment);
    segment->set_file(std::move(file));
    {
      MutexLock lock(mark_);
      TIER_CHECK(load_marks(*segment));
      if (segment->marks.newest.mark.epoch > m.epoch && segment->marks.newest.generation != 0)
        return later_epoch(*i, segment->marks.newest.mark.epoch);
      if (believable(segment->marks.newest, *i)) {
        survey.has_mark = true;
        survey.mark = segment->marks.newest.mark;
      }
    }
    if (survey.has_mark || start <= floor) break;
  }
  if (removed) TIER_CHECK(store_->sync_names());

  // No gap from the segment of begin on, and nothing that must be there is missing at the end.
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i] != first + i) return missing_segment(first + i);
  }
  survey.end = (first + kept.size()) << segment_shift_;
  if (floor > survey.end) return missing_segment(survey.end >> segment_shift_);
  survey.first = first;
  survey.tail = m.clean ? m.clean_mark.address.value
                        : std::max({m.begin, m.cut, survey.has_mark ? survey.mark.address.value : 0});
  return survey;
}

Status EngineCore::later_epoch(std::uint64_t index, std::uint32_t epoch) const {
  return fail(Code::kCorruption, 0, "the manifest is older than its segments; restore it from a copy",
              "file '%s' epoch %u, manifest epoch %u", store_->name_of(index).c_str(), epoch, manifest_.epoch);
}

Status EngineCore::adopt(Survey& survey) {
  // A later epoch may have replaced any segment under its old name.
  const bool replaced = epoch() != manifest_.epoch;
  {
    MutexLock grow(grow_);
    const std::uint64_t old_first = begin_.load(std::memory_order_relaxed) >> segment_shift_;  // relaxed: admin_
    const std::uint64_t keep_from = replaced ? segments_end_ >> segment_shift_ : survey.first;
    for (std::uint64_t i = old_first; i < std::min(keep_from, segments_end_ >> segment_shift_); ++i) table_.remove(i);
    for (Pinned& r : survey.opened) {
      if (table_.find(r->index()) != nullptr) continue;
      r->acquire();  // the table's own
      TIER_CHECK(table_.insert(r.segment));
      // Found after an unclean stop: the next sync covers what may be only in the kernel's cache.
      if (!options_.read_only && !manifest_.clean) mark_dirty(*r.segment);
    }
    for (std::uint64_t i = survey.first; i < survey.end >> segment_shift_; ++i) {
      if (table_.find(i) != nullptr) continue;
      Segment* segment = new (std::nothrow) Segment(i);
      if (segment == nullptr) return Status(Code::kOutOfMemory, "cannot allocate a segment; lower the memory options");
      TIER_CHECK(table_.insert(segment));
    }
    segments_end_ = survey.end;
  }
  table_.sweep();
  epoch_.store(manifest_.epoch, std::memory_order_relaxed);          // relaxed: a number
  begin_.store(manifest_.begin, std::memory_order_seq_cst);          // [R1]
  durable_.store(survey.tail, std::memory_order_release);            // [S1]
  const bool known = options_.tail_policy == TailPolicy::kManaged;   // else the caller finds it below the end
  read_limit_.store(known ? survey.tail : survey.end, std::memory_order_release);  // [R2]
  tail_.rewind(known ? survey.tail : survey.end);
  return {};
}

Status EngineCore::refresh() {
  MutexLock admin(admin_);
  TIER_CHECK(check_open());
  if (!options_.read_only) return {};
  TIER_TRY(manifest_, store_->load_manifest());
  TIER_TRY(Survey survey, survey_segments());
  return adopt(survey);
}

Status EngineCore::refresh_begin() {
  MutexLock admin(admin_);
  TIER_CHECK(check_open());
  TIER_TRY(const Manifest m, store_->load_manifest());
  if (m.begin > begin_.load(std::memory_order_relaxed))  // relaxed: written under admin_
    begin_.store(m.begin, std::memory_order_seq_cst);    // [R1]
  return {};
}

void EngineCore::place_tails(std::uint64_t tail) noexcept {
  tail_.rewind(tail);
  tail_.raise_limit(tail);
  durable_.store(tail, std::memory_order_release);  // [S1]
}

}  // namespace tier
