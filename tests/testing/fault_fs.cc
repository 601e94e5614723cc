#include "testing/fault_fs.h"

#include <fnmatch.h>

#include <algorithm>
#include <atomic>
#include <numeric>

namespace tier::testing {

const char* call_name(Call call) noexcept {
  constexpr const char* kNames[kCalls] = {
      "open", "stat",  "list", "create_directory", "remove", "rename",   "sync_directory", "space",  "locked",
      "read", "write", "sync", "allocate",         "punch",  "truncate", "info",           "mapping"};
  return kNames[static_cast<std::size_t>(call)];
}

class FaultFile final : public File {
 public:
  FaultFile(std::shared_ptr<FaultFs> home, std::unique_ptr<File> below)
      : File(below->path()), home_(std::move(home)), below_(std::move(below)) {}

  Result<std::size_t> read_at(std::uint64_t offset, MutableByteSpan into) override {
    if (const auto fault = home_->meet(Call::kRead, path(), offset, into.size())) {
      if (fault->short_bytes)
        static_cast<void>(below_->read_at(offset, into.first(std::min(*fault->short_bytes, into.size()))).ok());
      return fault->status;
    }
    return below_->read_at(offset, into);
  }

  using File::write_at;
  Status write_at(std::uint64_t offset, std::span<const ByteSpan> parts) override {
    std::uint64_t total = 0;
    for (const ByteSpan part : parts) total += part.size();
    TIER_CHECK(check_poisoned());
    const auto fault = home_->meet(Call::kWrite, path(), offset, total);
    if (!fault) {
      home_->remember(path(), *below_, offset, total);
      return below_->write_at(offset, parts);
    }
    if (fault->short_bytes) write_short(offset, parts, *fault->short_bytes);
    return fault->status;
  }

  Status sync(SyncKind kind) override {
    TIER_CHECK(check_poisoned());
    const auto fault = home_->meet(Call::kSync, path());
    Status s = fault ? fault->status : below_->sync(kind);
    if (s.ok()) {
      home_->forget(path());
    } else {
      poison();
      if (fault && fault->drop_unsynced) home_->take_back(path(), *below_);
    }
    return s;
  }

  Status allocate(std::uint64_t offset, std::uint64_t length) override {
    TIER_CHECK(check_poisoned());
    if (const auto fault = home_->meet(Call::kAllocate, path(), offset, length)) return fault->status;
    return below_->allocate(offset, length);
  }

  Status punch(std::uint64_t offset, std::uint64_t length) override {
    TIER_CHECK(check_poisoned());
    if (const auto fault = home_->meet(Call::kPunch, path(), offset, length)) return fault->status;
    return below_->punch(offset, length);
  }

  Status truncate(std::uint64_t size) override {
    TIER_CHECK(check_poisoned());
    if (const auto fault = home_->meet(Call::kTruncate, path(), size)) return fault->status;
    return below_->truncate(size);
  }

  Result<FileInfo> info() override {
    if (const auto fault = home_->meet(Call::kInfo, path())) return fault->status;
    return below_->info();
  }

  Result<MutableByteSpan> mapping(std::uint64_t offset, std::uint64_t length) override {
    if (const auto fault = home_->meet(Call::kMapping, path(), offset, length)) return fault->status;
    if (home_->below().capabilities().has(Capability::kMapping) && !home_->capabilities().has(Capability::kMapping))
      return fail(Code::kUnsupported, 0, "mappings are hidden in this test", "file '%s'", path().c_str());
    return below_->mapping(offset, length);
  }

  FileMode mode() const noexcept override { return below_->mode(); }
  std::uint32_t alignment() const noexcept override { return below_->alignment(); }

  /// A fault completes the operation before start() returns. A sync goes round through sync(), so that it poisons.
  void start(IoOp& op) override {
    if (op.kind == IoOp::Kind::kSync) return File::start(op);
    if (op.kind == IoOp::Kind::kWrite) {
      op.status = check_poisoned();
      if (!op.status.ok()) return finish(op, op.status);
    }
    const bool reading = op.kind == IoOp::Kind::kRead;
    const std::size_t length = reading ? op.into.size() : op.from.size();
    if (const auto fault = home_->meet(reading ? Call::kRead : Call::kWrite, path(), op.offset, length)) {
      if (fault->short_bytes && !reading)
        write_short(op.offset, std::span<const ByteSpan>(&op.from, 1), *fault->short_bytes);
      return finish(op, fault->status);
    }
    if (!reading) home_->remember(path(), *below_, op.offset, length);
    below_->start(op);
  }

 private:
  static void finish(IoOp& op, Status status) {
    op.status = status;
    op.transferred = 0;
    op.done(op);
  }

  void write_short(std::uint64_t offset, std::span<const ByteSpan> parts, std::size_t bytes) {
    std::vector<ByteSpan> first;
    for (const ByteSpan part : parts) {
      first.push_back(part.first(std::min(bytes, part.size())));
      bytes -= first.back().size();
    }
    std::uint64_t total = 0;
    for (const ByteSpan part : first) total += part.size();
    home_->remember(path(), *below_, offset, total);
    static_cast<void>(below_->write_at(offset, first).ok());
  }

  // [F1] release and acquire: whoever sees the poison sees what came before it.
  void poison() noexcept { poisoned_.store(true, std::memory_order_release); }
  Status check_poisoned() const {
    if (!poisoned_.load(std::memory_order_acquire)) return {};  // [F1]
    return fail(Code::kPoisoned, 0, "an earlier sync failed; open the file anew and read back what is there",
                "file '%s'", path().c_str());
  }

  const std::shared_ptr<FaultFs> home_;
  const std::unique_ptr<File> below_;
  std::atomic<bool> poisoned_{false};
};

std::shared_ptr<FaultFs> FaultFs::make(std::shared_ptr<FileSystem> below, std::uint64_t seed) {
  return std::shared_ptr<FaultFs>(new FaultFs(std::move(below), seed));
}

void FaultFs::add(FaultRule rule) {
  const std::lock_guard lock(mutex_);
  rules_.push_back({std::move(rule)});
}

void FaultFs::clear() {
  const std::lock_guard lock(mutex_);
  rules_.clear();
  before_.clear();
}

void FaultFs::hide(Capability capability) {
  const std::lock_guard lock(mutex_);
  hidden_ |= static_cast<std::uint32_t>(capability);
}

std::uint64_t FaultFs::calls(Call call) const {
  const std::lock_guard lock(mutex_);
  return counts_[static_cast<std::size_t>(call)];
}

std::uint64_t FaultFs::calls() const {
  const std::lock_guard lock(mutex_);
  return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

void FaultFs::reset_counts() {
  const std::lock_guard lock(mutex_);
  counts_.fill(0);
  fired_ = 0;
}

std::uint64_t FaultFs::fired() const {
  const std::lock_guard lock(mutex_);
  return fired_;
}

Capabilities FaultFs::capabilities() const noexcept {
  const std::lock_guard lock(mutex_);
  return {below_->capabilities().bits & ~hidden_};
}

double FaultFs::draw() {
  // splitmix64 (Steele, Lea, Flood 2014): every seed is as good as any other.
  std::uint64_t z = random_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

std::optional<FaultFs::Fault> FaultFs::meet(Call call, std::string_view path, std::uint64_t offset,
                                            std::uint64_t length) {
  const std::string name(path);
  const std::lock_guard lock(mutex_);
  ++counts_[static_cast<std::size_t>(call)];
  for (Armed& armed : rules_) {
    const FaultRule& rule = armed.rule;
    if (rule.call != call || ::fnmatch(rule.glob.c_str(), name.c_str(), 0) != 0) continue;
    if (armed.matched++ < rule.skip || armed.fired == rule.count) continue;
    if (rule.probability < 1.0 && draw() >= rule.probability) continue;
    if (rule.count != FaultRule::kSticky) ++armed.fired;
    ++fired_;
    Fault fault{fail(code_of_errno(rule.error), rule.error, "a fault of this test", "%s of '%s' at %llu, %llu bytes",
                     call_name(call), name.c_str(), static_cast<unsigned long long>(offset),
                     static_cast<unsigned long long>(length)),
                rule.short_bytes, rule.drop_unsynced};
    return fault;
  }
  return std::nullopt;
}

bool FaultFs::keeps_before() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(rules_.begin(), rules_.end(), [](const Armed& a) { return a.rule.drop_unsynced; });
}

void FaultFs::remember(const std::string& path, File& file, std::uint64_t offset, std::uint64_t length) {
  if (!keeps_before()) return;
  Before before{offset, file.size().value_or(std::uint64_t{0}), {}};
  if (offset < before.size) {
    before.bytes.resize(static_cast<std::size_t>(std::min(length, before.size - offset)));
    if (!file.read_exactly_at(offset, before.bytes).ok()) return;
  }
  const std::lock_guard lock(mutex_);
  before_[path].push_back(std::move(before));
}

void FaultFs::forget(const std::string& path) {
  const std::lock_guard lock(mutex_);
  before_.erase(path);
}

void FaultFs::take_back(const std::string& path, File& file) {
  std::vector<Before> steps;
  {
    const std::lock_guard lock(mutex_);
    steps = std::move(before_[path]);
    before_.erase(path);
  }
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    static_cast<void>(file.write_at(step->offset, ByteSpan(step->bytes)).ok());
    static_cast<void>(file.truncate(step->size).ok());
  }
}

Result<std::unique_ptr<File>> FaultFs::open(std::string_view path, const OpenOptions& options) {
  TIER_CHECK(meet_status(Call::kOpen, path));
  TIER_TRY(std::unique_ptr<File> below, below_->open(path, options));
  return std::unique_ptr<File>(new FaultFile(shared_from_this(), std::move(below)));
}

Result<FileInfo> FaultFs::stat(std::string_view path) {
  TIER_CHECK(meet_status(Call::kStat, path));
  return below_->stat(path);
}

Result<std::vector<DirectoryEntry>> FaultFs::list(std::string_view directory) {
  TIER_CHECK(meet_status(Call::kList, directory));
  return below_->list(directory);
}

Status FaultFs::create_directory(std::string_view path, NameSync when) {
  TIER_CHECK(meet_status(Call::kCreateDirectory, path));
  return below_->create_directory(path, when);
}

Status FaultFs::remove(std::string_view path, NameSync when) {
  TIER_CHECK(meet_status(Call::kRemove, path));
  return below_->remove(path, when);
}

Status FaultFs::rename(std::string_view from, std::string_view to, NameSync when) {
  TIER_CHECK(meet_status(Call::kRename, from));
  return below_->rename(from, to, when);
}

Status FaultFs::sync_directory(std::string_view directory) {
  TIER_CHECK(meet_status(Call::kSyncDirectory, directory));
  return below_->sync_directory(directory);
}

Result<SpaceInfo> FaultFs::space() {
  TIER_CHECK(meet_status(Call::kSpace, ""));
  return below_->space();
}

Result<bool> FaultFs::locked(std::string_view path) {
  TIER_CHECK(meet_status(Call::kLocked, path));
  return below_->locked(path);
}

}  // namespace tier::testing
