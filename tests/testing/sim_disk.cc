#include "testing/sim_disk.h"

#include <fnmatch.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/assert.h"
#include "fs/path.h"
#include "testing/sim_inode.h"

namespace tier::testing {
SimDisk::Mapped::Mapped() {
  void* p = ::mmap(nullptr, kArena, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  TIER_ASSERT(p != MAP_FAILED);
  arena = static_cast<std::byte*>(p);
}
SimDisk::Mapped::~Mapped() { ::munmap(arena, kArena); }

SimDisk::SimDisk(const SimDiskOptions& options)
    : options_(options), random_(options.seed), trace_(sim_mix(options.seed)) {
  make_inode(true);
}
SimDisk::~SimDisk() = default;

// --- Power -----------------------------------------------------------------------------------------------------------

std::uint64_t SimDisk::call_count() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}
std::uint64_t SimDisk::io_count() const {
  const std::lock_guard lock(mutex_);
  return ios_;
}
bool SimDisk::powered() const {
  const std::lock_guard lock(mutex_);
  return powered_;
}
std::uint64_t SimDisk::order() const {
  const std::lock_guard lock(mutex_);
  return order_;
}
std::uint64_t SimDisk::trace() const {
  const std::lock_guard lock(mutex_);
  return trace_;
}
std::uint64_t SimDisk::used() const {
  const std::lock_guard lock(mutex_);
  return used_locked();
}
std::uint64_t SimDisk::faults_hit() const {
  const std::lock_guard lock(mutex_);
  return faults_hit_;
}
void SimDisk::set_capacity(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  options_.capacity = bytes;
}

void SimDisk::cut_power_at(std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  cut_at_ = call;
}

void SimDisk::power_cut() {
  const std::lock_guard lock(mutex_);
  cut_locked();
}

void SimDisk::cut_locked() {
  if (!powered_) return;
  // Writes in flight may reach the medium, so they are changes that nobody has decided about.
  for (const Flight& flight : flights_) land(flight);
  powered_ = false;
  decided_ = false;
  cut_at_ = ~std::uint64_t{0};
  forget_objects();
}

void SimDisk::land(const Flight& flight) {
  Inode* file = inode(flight.inode);
  if (file != nullptr && flight.op->kind == IoOp::Kind::kWrite)
    change(*file, FileChange::write(flight.op->offset, flight.op->from));
}

void SimDisk::kill_process() {
  const std::lock_guard lock(mutex_);
  if (!powered_) return;
  // What the kernel had taken over when the process died happens or does not.
  for (const Flight& flight : flights_)
    if (random_.chance(512)) land(flight);
  forget_objects();
  collect();
}

void SimDisk::forget_objects() {
  ++generation_;  // D4
  handles_ = 0;
  for (Flight& flight : flights_) flight.inode = 0;
  for (auto& [id, node] : inodes_) {
    harvest(*node);
    node->mapped.reset();  // a File that lives on keeps the memory
    node->opens = 0;
    node->owner = 0;
  }
}

void SimDisk::restart() {
  if (powered()) return;
  bool decided = false;
  std::uint64_t seed = 0;
  {
    const std::lock_guard lock(mutex_);
    decided = decided_;
    if (!decided) seed = random_.next();
  }
  if (!decided) crash_seeded(seed);
  const std::lock_guard lock(mutex_);
  for (auto& [id, node] : inodes_) {
    node->cache = node->base = node->durable;
    node->entries = node->durable_entries;
    node->linked = node->id == kRoot;
  }
  // What no durable name leads to is lost.
  std::vector<InodeId> reached{kRoot};
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (const auto& [name, id] : inode(reached[i])->entries) {
      inode(id)->linked = true;
      reached.push_back(id);
    }
  std::erase_if(inodes_, [](const auto& node) { return !node.second->linked; });
  powered_ = true;
  ++generation_;
}

void SimDisk::crash_all_old() {
  SimKeepNone chooser;
  crash(chooser);
}
void SimDisk::crash_all_new() {
  SimKeepAll chooser;
  crash(chooser);
}
void SimDisk::crash_prefix(std::uint64_t order) {
  SimKeepPrefix chooser(order);
  crash(chooser);
}
void SimDisk::crash_seeded(std::uint64_t seed) {
  std::pair<std::uint64_t, std::uint64_t> range;
  {
    const std::lock_guard lock(mutex_);
    cut_locked();
    range = pending_range();
  }
  SimSeededCrash chooser(seed, options_.profile, range.first, range.second);
  crash(chooser);
}

std::pair<std::uint64_t, std::uint64_t> SimDisk::pending_range() const {
  std::uint64_t first = order_;
  for (const auto& [id, node] : inodes_)
    if (!node->changes.empty()) first = std::min(first, node->changes.front().order);
  if (!names_.empty()) first = std::min(first, names_.front().order);
  return {first, order_};
}

void SimDisk::crash(SimChooser& chooser) {
  const std::lock_guard lock(mutex_);
  cut_locked();
  if (decided_) return;
  decided_ = true;
  for (auto& [id, node] : inodes_) {
    if (node->directory) continue;
    replay(*node, order_, chooser, false);
    node->durable.clip();
  }
  crash_names(chooser);
}

std::uint64_t SimDisk::pending_changes() const {
  const std::lock_guard lock(mutex_);
  struct Count final : SimChooser {
    bool keep(const SimChoice&) override { return ++asked, false; }
    std::uint64_t asked = 0;
  } count;
  // On a copy of each file, for counting is deciding.
  SimDisk scratch(options_);
  for (const auto& [id, node] : inodes_) {
    Inode copy;
    copy.base = node->base;
    copy.durable = node->durable;
    copy.changes = node->changes;
    scratch.replay(copy, order_, count, false);
  }
  return count.asked + names_.size();
}

std::shared_ptr<SimDisk> SimDisk::clone() {
  const std::lock_guard lock(mutex_);
  for (auto& [id, node] : inodes_) harvest(*node);
  auto copy = std::make_shared<SimDisk>(options_);
  copy->random_ = random_;
  copy->inodes_.clear();
  for (const auto& [id, node] : inodes_) {
    auto twin = std::make_unique<Inode>(*node);
    twin->opens = 0;
    twin->owner = 0;
    twin->mapped = nullptr;
    copy->inodes_.emplace_hint(copy->inodes_.end(), id, std::move(twin));
  }
  copy->names_ = names_;
  copy->stale_ = stale_;
  copy->next_inode_ = next_inode_;
  copy->order_ = order_;
  copy->trace_ = trace_;
  copy->powered_ = powered_;
  copy->decided_ = decided_;
  return copy;
}

// --- Calls and faults ------------------------------------------------------------------------------------------------

SimDisk::Call SimDisk::begin(std::uint32_t kind, std::string_view path, std::uint64_t generation, std::uint64_t a,
                             std::uint64_t b) {
  Call call;
  if (generation != generation_ || !powered_) {  // D4
    call.status = fail(Code::kIo, EIO, "the power is off; restart the disk and open the file system anew",
                       "sim file '%s' at %llu", shown(path).c_str(), static_cast<unsigned long long>(a));
    return call;
  }
  const std::uint64_t io = ios_++;
  trace_ = sim_mix(sim_mix(trace_, kind), sim_mix(a, b));
  if ((kind & kSimMutating) != 0 && calls_++ >= cut_at_) {
    call.cut = true;
    return call;
  }
  const auto hit = [&](const SimFault& fault) {
    call.error = fault.error;
    call.partial = fault.partial;
    ++faults_hit_;
    trace_ = sim_mix(trace_, static_cast<std::uint64_t>(fault.error));
  };
  for (const auto& [number, fault] : call_faults_)
    if (number == io) hit(fault);
  if (faults_.empty() || call.error != 0) return call;
  const std::string name(path);
  for (SimFault& fault : faults_) {
    if ((fault.calls & kind) == 0 || ::fnmatch(fault.path.c_str(), name.c_str(), 0) != 0) continue;
    if (fault.skip > 0) {
      --fault.skip;
      continue;
    }
    hit(fault);
    if (fault.times != 0 && --fault.times == 0) faults_.erase(faults_.begin() + (&fault - faults_.data()));
    break;
  }
  return call;
}

void SimDisk::add_fault(SimFault fault) {
  const std::lock_guard lock(mutex_);
  faults_.push_back(std::move(fault));
}
void SimDisk::fail_call(std::uint64_t io, int error, bool partial) {
  const std::lock_guard lock(mutex_);
  call_faults_.emplace_back(io, SimFault{.error = error, .partial = partial});
}
void SimDisk::clear_faults() {
  const std::lock_guard lock(mutex_);
  faults_.clear();
  call_faults_.clear();
}

bool SimDisk::damage(std::string_view path, std::uint64_t offset, ByteSpan bytes) {
  const std::lock_guard lock(mutex_);
  Inode* file = lookup(path, false);
  if (file == nullptr || file->directory || offset > file->cache.size() || bytes.size() > file->cache.size() - offset)
    return false;
  harvest(*file);
  for (SimImage* image : {&file->durable, &file->base, &file->cache}) image->write(offset, bytes);
  return true;
}

bool SimDisk::flip_bit(std::string_view path, std::uint64_t offset, unsigned bit) {
  std::byte value{};
  {
    const std::lock_guard lock(mutex_);
    const Inode* file = lookup(path, false);
    if (file == nullptr || file->directory || offset >= file->cache.size()) return false;
    file->cache.read(offset, {&value, 1});
  }
  value ^= static_cast<std::byte>(1u << (bit & 7u));
  return damage(path, offset, {&value, 1});
}

bool SimDisk::damage_size(std::string_view path, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  Inode* file = lookup(path, false);
  if (file == nullptr || file->directory || size > file->cache.size()) return false;
  for (SimImage* image : {&file->durable, &file->base, &file->cache})
    if (image->size() > size) image->cut(size);
  return true;
}

bool SimDisk::break_sector(std::string_view path, std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  Inode* file = lookup(path, false);
  if (file == nullptr || file->directory || offset >= file->cache.size()) return false;
  file->broken_sectors.insert(offset / kSimSector);
  return true;
}

std::vector<std::byte> SimDisk::bytes_of(std::string_view path, bool durable) const {
  const std::lock_guard lock(mutex_);
  const Inode* file = lookup(path, durable);
  if (file == nullptr || file->directory) return {};
  const SimImage& image = durable ? file->durable : file->cache;
  std::vector<std::byte> bytes(static_cast<std::size_t>(image.size()));
  image.read(0, bytes);
  return bytes;
}
std::vector<std::byte> SimDisk::durable_bytes(std::string_view path) const { return bytes_of(path, true); }
std::vector<std::byte> SimDisk::cached_bytes(std::string_view path) const { return bytes_of(path, false); }

std::vector<std::string> SimDisk::files() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> found;
  std::vector<std::pair<std::string, const Inode*>> todo{{"", inode(kRoot)}};
  while (!todo.empty()) {
    const auto [prefix, directory] = todo.back();
    todo.pop_back();
    for (const auto& [name, id] : directory->entries) {
      const Inode* node = inode(id);
      if (node->directory)
        todo.emplace_back(prefix + name + "/", node);
      else
        found.push_back(prefix + name);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

// --- Inodes ----------------------------------------------------------------------------------------------------------

SimDisk::Inode* SimDisk::inode(InodeId id) const {
  const auto it = inodes_.find(id);
  return it == inodes_.end() ? nullptr : it->second.get();
}

SimDisk::Inode* SimDisk::lookup(std::string_view path, bool durable) const {
  Inode* node = inode(kRoot);
  while (!path.empty() && node != nullptr) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const auto& entries = durable ? node->durable_entries : node->entries;
    const auto it = entries.find(path.substr(0, slash));
    node = it == entries.end() ? nullptr : inode(it->second);
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return node;
}

std::uint64_t SimDisk::used_locked() const {
  std::uint64_t used = 0;
  for (const auto& [id, node] : inodes_)
    if (node->linked || node->opens > 0) used += node->cache.allocated();
  return used;
}

SimDisk::Inode& SimDisk::make_inode(bool directory) {
  auto node = std::make_unique<Inode>();
  node->id = next_inode_++;
  node->directory = directory;
  Inode& made = *node;
  inodes_.emplace_hint(inodes_.end(), made.id, std::move(node));
  return made;
}

void SimDisk::collect() {
  for (bool again = true; again;) {
    std::set<InodeId> used{kRoot};
    for (const auto& [id, node] : inodes_) {
      if (node->linked || node->opens > 0) used.insert(id);
      for (const auto& [name, child] : node->durable_entries) used.insert(child);
    }
    for (const NameChange& what : names_) used.insert({what.inode, what.directory, what.to_directory, what.replaced});
    again = std::erase_if(inodes_, [&](const auto& node) {
              if (used.contains(node.first)) return false;
              remember_stale(node.second->durable);
              return true;
            }) > 0;
  }
}

}  // namespace tier::testing
