/// How changes reach a SimDisk's cache, its medium and its names: what a sync makes durable and what a crash leaves.
#include <algorithm>
#include <cstring>
#include <set>

#include "testing/sim_inode.h"

namespace tier::testing {

SimDisk::FileChange SimDisk::FileChange::write(std::uint64_t offset, ByteSpan from) {
  std::shared_ptr<std::byte[]> bytes(new std::byte[from.size()]);
  std::copy(from.begin(), from.end(), bytes.get());
  return {.kind = Kind::kWrite, .offset = offset, .length = from.size(), .bytes = std::move(bytes)};
}

void SimDisk::FileChange::apply(SimImage& image) const {
  switch (kind) {
    case Kind::kWrite:
      image.write(offset, {bytes.get(), static_cast<std::size_t>(length)});
      image.set_size(std::max(image.size(), offset + length));
      break;
    case Kind::kTruncate: image.cut(offset); break;
    case Kind::kAllocate:
      image.reserve(offset, length);
      image.set_size(std::max(image.size(), offset + length));
      break;
    case Kind::kPunch: image.zero(offset, length); break;
  }
}

std::uint64_t SimDisk::change(Inode& file, FileChange what) {
  if (what.kind == FileChange::Kind::kWrite && what.length == 0) return order_;
  what.order = ++order_;
  what.apply(file.cache);
  what.size_after = file.cache.size();
  if (what.kind == FileChange::Kind::kWrite && !file.broken_sectors.empty())
    file.broken_sectors.erase(file.broken_sectors.lower_bound(what.offset / kSimSector),
                              file.broken_sectors.upper_bound((what.offset + what.length - 1) / kSimSector));
  if (file.mapped != nullptr) {
    const auto end = file.mapped->pages.end();
    const std::uint64_t stop = what.kind == FileChange::Kind::kTruncate ? ~std::uint64_t{0} : what.offset + what.length;
    for (auto it = file.mapped->pages.lower_bound(what.offset / kSimPage); it != end && *it * kSimPage < stop; ++it) {
      // Nothing but what changed: stores beside it in the same page have not been harvested yet.
      const std::uint64_t from = std::max(what.offset, *it * kSimPage);
      const std::uint64_t to = std::min(stop, (*it + 1) * kSimPage);
      file.cache.read(from, {file.mapped->arena + from, static_cast<std::size_t>(to - from)});
    }
  }
  file.changes.push_back(std::move(what));
  return order_;
}

void SimDisk::harvest(Inode& file) {
  if (file.mapped == nullptr || !file.mapped->writable) return;
  std::byte held[kSimSector];
  for (const std::uint64_t page : file.mapped->pages) {
    for (std::uint64_t at = page * kSimPage; at < (page + 1) * kSimPage && at < file.cache.size(); at += kSimSector) {
      const auto n = static_cast<std::size_t>(std::min(kSimSector, file.cache.size() - at));
      file.cache.read(at, {held, n});
      if (std::memcmp(held, file.mapped->arena + at, n) == 0) continue;
      change(file, FileChange::write(at, {file.mapped->arena + at, n}));
    }
  }
}

void SimDisk::replay(Inode& file, std::uint64_t order, SimChooser& chooser, bool forced) {
  std::size_t done = 0;
  for (; done < file.changes.size() && file.changes[done].order <= order; ++done) {
    file.changes[done].apply(file.base);  // N1
    persist(file, file.changes[done], chooser, forced || file.changes[done].synced);
  }
  file.changes.erase(file.changes.begin(), file.changes.begin() + static_cast<std::ptrdiff_t>(done));
}

void SimDisk::persist(Inode& file, const FileChange& what, SimChooser& chooser, bool forced) {
  SimImage& medium = file.durable;
  SimChoice choice{.kind = SimChoice::Kind::kSector, .order = what.order, .inode = file.id};
  const std::uint64_t first = what.offset / kSimSector;
  const std::uint64_t end = what.length == 0 ? first : (what.offset + what.length - 1) / kSimSector + 1;
  const auto keep = [&](SimChoice::Kind kind) {
    choice.kind = kind;
    return forced || chooser.keep(choice);
  };
  // New space that shows what lay there before.
  const auto spill = [&](std::uint64_t sector) {
    const bool fresh = sector * kSimSector >= medium.size() || medium.page(sector * kSimSector / kSimPage) == nullptr;
    if (!forced && fresh && chooser.stale(choice)) spill_stale(medium, sector, chooser);
  };
  switch (what.kind) {
    case FileChange::Kind::kWrite:
      for (std::uint64_t sector = first; sector < end; ++sector) {
        choice.sector = sector;
        const SimChooser::Fate fate = forced ? SimChooser::Fate::kWhole : chooser.fate(choice);
        if (fate == SimChooser::Fate::kUnreadable) file.broken_sectors.insert(sector);
        if (fate != SimChooser::Fate::kWhole) {
          std::byte garbage[kSimSector];
          for (std::byte& b : garbage) b = static_cast<std::byte>(chooser.number());
          medium.write(sector * kSimSector, garbage);
        } else if (keep(SimChoice::Kind::kSector)) {
          medium.copy_sector(sector, file.base);
        } else {
          spill(sector);
        }
      }
      if (!forced && what.offset + what.length > medium.size() && keep(SimChoice::Kind::kSize))
        medium.set_size(chooser.grown(medium.size(), what.offset + what.length));
      break;
    case FileChange::Kind::kTruncate:
      if (keep(SimChoice::Kind::kTruncate)) medium.cut(what.offset);
      break;
    case FileChange::Kind::kAllocate:
      if (!keep(SimChoice::Kind::kAllocate)) break;
      for (choice.sector = first; choice.sector < end; ++choice.sector) spill(choice.sector);
      medium.reserve(what.offset, what.length);
      medium.set_size(std::max(medium.size(), what.offset + what.length));
      break;
    case FileChange::Kind::kPunch: {
      std::uint64_t run = 0;  // kept sectors that end here, within one page
      for (std::uint64_t sector = first; sector < end; ++sector) {
        choice.sector = sector;
        if (sector % (kSimPage / kSimSector) == 0) run = 0;
        if (!keep(SimChoice::Kind::kSector)) continue;
        medium.copy_sector(sector, file.base);
        if (++run == kSimPage / kSimSector && !file.base.has_page(sector * kSimSector / kSimPage))
          medium.zero(align_down(sector * kSimSector, kSimPage), kSimPage);
      }
      break;
    }
  }
  // A sync covers the size, whatever became of older changes of it.
  if (forced && medium.size() > what.size_after)
    medium.cut(what.size_after);
  else if (forced)
    medium.set_size(what.size_after);
}

void SimDisk::sync(Inode& file, std::uint64_t order) {
  SimKeepAll all;
  replay(file, order, all, true);
}

void SimDisk::fail_sync(Inode& file, std::uint64_t order) {
  // The ordinary profile: nothing is torn while the power is on.
  SimSeededCrash some(random_.next(), SimProfile::kOrdinary, file.changes.empty() ? order : file.changes.front().order,
                      order);
  replay(file, order, some, false);
}

void SimDisk::mark_synced(Inode& file, std::uint64_t order) {
  std::uint64_t prefix = 0;
  bool unbroken = true;
  for (FileChange& what : file.changes) {
    if (what.order == order) what.synced = true;
    unbroken = unbroken && what.synced;
    if (unbroken) prefix = what.order;
  }
  sync(file, prefix);  // N2
}

void SimDisk::spill_stale(SimImage& image, std::uint64_t sector, SimChooser& chooser) {
  std::byte bytes[kSimSector];
  const SimImage* source = stale_.empty() ? nullptr : &stale_[chooser.number() % stale_.size()];
  if (source != nullptr && source->size() >= kSimSector) {
    // Most often what lay at the same place: a recycled file of the same shape is the hardest to tell apart.
    const std::uint64_t sectors = source->size() / kSimSector;
    source->read((chooser.number() % 4 != 0 && sector < sectors ? sector : chooser.number() % sectors) * kSimSector,
                 bytes);
  } else {
    for (std::byte& b : bytes) b = static_cast<std::byte>(chooser.number());
  }
  image.write(sector * kSimSector, bytes);
}

void SimDisk::remember_stale(const SimImage& image) {
  constexpr std::size_t kMost = 8;
  if (options_.profile != SimProfile::kHostile || image.page_count() == 0) return;
  if (stale_.size() == kMost) stale_.erase(stale_.begin());
  stale_.push_back(image);
}

// --- Names -----------------------------------------------------------------------------------------------------------

void SimDisk::change_name(NameChange what) {
  what.order = ++order_;
  Inode::Entries& from = inode(what.directory)->entries;
  switch (what.kind) {
    case NameChange::Kind::kCreate: from[what.name] = what.inode; break;
    case NameChange::Kind::kRemove:
      from.erase(from.find(what.name));
      inode(what.inode)->linked = false;
      break;
    case NameChange::Kind::kRename:
      from.erase(from.find(what.name));
      if (what.replaced != 0) inode(what.replaced)->linked = false;
      inode(what.to_directory)->entries[what.to_name] = what.inode;
      break;
  }
  names_.push_back(std::move(what));
}

void SimDisk::apply_durably(const NameChange& what) {
  Inode* directory = inode(what.directory);
  if (directory == nullptr) return;
  Inode::Entries& from = directory->durable_entries;
  const auto at = from.find(what.name);
  switch (what.kind) {
    case NameChange::Kind::kCreate:
      if (at == from.end()) from.emplace(what.name, what.inode);
      break;
    case NameChange::Kind::kRemove:
      if (at != from.end() && at->second == what.inode) from.erase(at);
      break;
    case NameChange::Kind::kRename: {
      Inode* target = inode(what.to_directory);
      if (target == nullptr) return;
      const auto to = target->durable_entries.find(what.to_name);
      // What stands there must be what this rename replaced: else that one would lose its only name. D3
      if (to != target->durable_entries.end() && to->second != what.replaced) return;
      if (at != from.end() && at->second == what.inode) {
        from.erase(at);
      } else {
        // An earlier rename of it was lost (hostile): it leaves the name that it still has.
        for (auto& [id, node] : inodes_)
          std::erase_if(node->durable_entries, [&](const auto& held) { return held.second == what.inode; });
      }
      target->durable_entries.insert_or_assign(what.to_name, what.inode);
      break;
    }
  }
}

void SimDisk::sync_names(InodeId directory, std::uint64_t order) {
  // A change that spans two directories takes along what came before it in the other one, for it is one transaction.
  std::set<InodeId> wanted{directory};
  std::vector<bool> chosen(names_.size());
  for (std::size_t i = names_.size(); i-- > 0;) {
    const NameChange& what = names_[i];
    if (what.order > order) continue;
    chosen[i] = wanted.contains(what.directory) || (what.to_directory != 0 && wanted.contains(what.to_directory));
    if (!chosen[i]) continue;
    wanted.insert(what.directory);
    if (what.to_directory != 0) wanted.insert(what.to_directory);
  }
  std::vector<NameChange> rest;
  bool gone = false;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (!chosen[i]) {
      rest.push_back(std::move(names_[i]));
      continue;
    }
    apply_durably(names_[i]);
    gone = gone || names_[i].kind == NameChange::Kind::kRemove || names_[i].replaced != 0;
  }
  names_ = std::move(rest);
  if (gone) collect();
}

void SimDisk::crash_names(SimChooser& chooser) {
  std::set<InodeId> stopped;  // directories whose prefix has ended
  for (const NameChange& what : names_) {
    const bool spans = what.to_directory != 0 && what.to_directory != what.directory;
    const bool blocked = chooser.names_in_order() &&
                         (stopped.contains(what.directory) || (spans && stopped.contains(what.to_directory)));
    if (!blocked && chooser.keep({.kind = SimChoice::Kind::kName, .order = what.order, .inode = what.directory})) {
      apply_durably(what);
      continue;
    }
    stopped.insert(what.directory);
    if (spans) stopped.insert(what.to_directory);
  }
  names_.clear();
}

}  // namespace tier::testing
