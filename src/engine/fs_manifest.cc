/// The manifest side of FsSegmentStore: taking, making, reading and swapping.
#include <algorithm>

#include "base/assert.h"
#include "engine/fs_segment_store.h"

namespace tier {
namespace {

constexpr std::string_view kManifestName = "MANIFEST";
constexpr std::string_view kManifestNewName = "MANIFEST.new";
constexpr std::string_view kLockName = "LOCK";
constexpr const char* kSyncFailed = "a sync of the manifest failed; check the device, then open the store again";

bool has_file(const std::vector<DirectoryEntry>& entries, std::string_view name) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const DirectoryEntry& e) { return !e.directory && e.name == name; });
}

}  // namespace

Result<SegmentStore::Attached> FsSegmentStore::attach(Create create, bool read_only, const Manifest& fresh) {
  auto entries = fs_->list(path_);
  if (entries.code() == Code::kNotFound && create != Create::kNever && !path_.empty()) {
    TIER_CHECK(fs_->create_directory(path_));
    entries = fs_->list(path_);
  }
  if (!entries.ok()) return entries.status();
  const bool exists = has_file(*entries, kManifestName);
  if (!exists && create == Create::kNever) {
    return fail(Code::kNotFound, 0, "there is no store here; check the path or ask for its creation", "directory '%s' of %s",
                path_.c_str(), fs_->url().c_str());
  }
  if (exists && create == Create::kExclusive) {
    return fail(Code::kExists, 0, "there is a store already; open it without asking for a new one", "directory '%s' of %s",
                path_.c_str(), fs_->url().c_str());
  }
  Attached attached;
  if (!read_only) {
    TIER_TRY(lock_, fs_->open(inside(kLockName), {.write = true, .create = Create::kIfMissing, .lock = true}));  // T3
    entries = fs_->list(path_);  // another owner may have changed it before the lock was ours
    if (!entries.ok()) return entries.status();
    TIER_CHECK(remove_unfinished(*entries));
    if (!has_file(*entries, kManifestName)) {
      const bool segments = std::any_of(entries->begin(), entries->end(),
                                        [](const DirectoryEntry& e) { return e.name.ends_with(".seg"); });
      if (segments || create == Create::kNever) {
        return fail(Code::kCorruption, 0, "the manifest is missing; restore it from a copy", "file '%s'",
                    inside(kManifestName).c_str());
      }
      TIER_CHECK(create_manifest(fresh));
      attached.created = true;
    }
  }
  TIER_TRY(manifest_, fs_->open(inside(kManifestName), {.write = !read_only}));
  TIER_TRY(attached.manifest, load_manifest());
  return attached;
}

Status FsSegmentStore::remove_unfinished(const std::vector<DirectoryEntry>& entries) {
  for (const DirectoryEntry& e : entries) {
    const std::string_view name = e.name;
    if (e.directory || !(name == kManifestNewName || (name.size() == 20 && name.ends_with(".seg.new")))) continue;
    TIER_CHECK(fs_->remove(inside(name), NameSync::kLater));
  }
  return {};
}

Status FsSegmentStore::create_manifest(const Manifest& fresh) {
  Manifest m = fresh;
  TIER_TRY(auto file, fs_->open(inside(kManifestNewName),
                                {.write = true, .create = Create::kExclusive, .name_sync = NameSync::kLater}));
  for (m.generation = 1; m.generation <= 2; ++m.generation)
    TIER_CHECK(file->write_at((m.generation & 1) * kHeaderPage, encode_manifest(m)));
  TIER_POINT("engine/create/manifest_written");
  TIER_CHECK(file->sync(SyncKind::kAll));
  TIER_POINT("engine/create/manifest_synced");
  return fs_->rename(inside(kManifestNewName), inside(kManifestName));
}

Result<Manifest> FsSegmentStore::load_manifest() {
  // A reader beside a running owner may meet both slots in the middle of an update, one after the other: it looks again.
  constexpr int kTries = 20;
  Result<Manifest> read = read_manifest();
  for (int i = 1; i < kTries && lock_ == nullptr && read.code() == Code::kCorruption; ++i) {
    runtime_.parker->sleep(std::chrono::milliseconds(2));
    read = read_manifest();
  }
  if (!read.ok()) return read.status();
  store_id_ = read->store_id;
  segment_size_ = read->segment_size;
  generation_ = read->generation;
  return read;
}

Result<Manifest> FsSegmentStore::read_manifest() {
  Result<Manifest> slots[2] = {Status(Code::kCorruption, "not read"), Status(Code::kCorruption, "not read")};
  for (unsigned slot = 0; slot < 2; ++slot) {
    HeaderPage page;
    const auto got = manifest_->read_at(slot * kHeaderPage, page);
    // A slot that was being written when the power went may be unreadable: then the other one holds.
    slots[slot] = got.ok() ? decode_manifest(std::span(page).first(*got), slot) : Result<Manifest>(got.status());
    if (slots[slot].code() == Code::kUnsupported) return slots[slot].status();
  }
  if (!slots[0].ok() && !slots[1].ok()) {
    for (const auto& slot : slots) {
      if (slot.code() != Code::kCorruption) return slot.status();
    }
    return fail(Code::kCorruption, 0, "both slots of the manifest are damaged; restore it from a copy", "file '%s' (%s)",
                manifest_->path().c_str(), slots[0].status().text());
  }
  if (slots[0].ok() && slots[1].ok() && slots[0]->store_id != slots[1]->store_id) {
    return fail(Code::kCorruption, 0, "the slots of the manifest are of two stores; restore it from a copy", "file '%s'",
                manifest_->path().c_str());
  }
  const bool second = !slots[0].ok() || (slots[1].ok() && slots[1]->generation > slots[0]->generation);
  return *slots[second ? 1 : 0];
}

Status FsSegmentStore::write_slot(const Manifest& manifest) {
  return manifest_->write_at((manifest.generation & 1) * kHeaderPage, encode_manifest(manifest));
}

Status FsSegmentStore::swap_manifest(std::uint64_t expected, Manifest& next) {
  if (expected != generation_) {
    return fail(Code::kBusy, 0, "the manifest has changed; open the store again", "file '%s' generation %llu, expected %llu",
                manifest_->path().c_str(), static_cast<unsigned long long>(generation_),
                static_cast<unsigned long long>(expected));
  }
  next.generation = generation_ + 1;
  TIER_POINT("engine/manifest/before");
  TIER_CHECK(write_slot(next));
  TIER_POINT("engine/manifest/first_written");
  if (!TIER_BUG("engine_manifest_same_slot")) {  // T2: the other slot waits for this one's sync
    if (const Status s = manifest_->sync(SyncKind::kData); !s.ok()) return s.as(Code::kPoisoned, kSyncFailed);
  }
  TIER_POINT("engine/manifest/first_synced");
  generation_ = next.generation;
  ++next.generation;
  if (const Status s = write_slot(next); !s.ok()) return s.as(Code::kPoisoned, "the second copy of the manifest failed");
  TIER_POINT("engine/manifest/second_written");
  if (const Status s = manifest_->sync(SyncKind::kData); !s.ok()) return s.as(Code::kPoisoned, kSyncFailed);
  generation_ = next.generation;
  TIER_POINT("engine/manifest/done");
  return {};
}

}  // namespace tier
