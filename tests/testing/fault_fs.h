/// FaultFs: any file system, with failures on request.
///
/// Shape       a decorator: every call is counted by kind, matched against the rules in order, and passed on unless a
///             rule fires. Calls on a File are matched by the File's path, rename by its old path.
/// Invariants  (X1) a failed call changes nothing below, except that a short transfer moves its first bytes first.
///             (X2) a failed sync poisons the File, as the contract says (F4).
///             (X3) the same seed and the same calls fail in the same places.
/// Threads     any; which of two concurrent calls is the k-th is theirs to decide.
///
/// Stores through mapping() are not seen: hide Capability::kMapping where that matters.
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tier/fs.h"

namespace tier::testing {

enum class Call : std::uint8_t {
  kOpen,
  kStat,
  kList,
  kCreateDirectory,
  kRemove,
  kRename,
  kSyncDirectory,
  kSpace,
  kLocked,
  kRead,
  kWrite,
  kSync,
  kAllocate,
  kPunch,
  kTruncate,
  kInfo,
  kMapping,
};
inline constexpr std::size_t kCalls = 17;
const char* call_name(Call call) noexcept;

struct FaultRule {
  static constexpr std::uint64_t kSticky = std::numeric_limits<std::uint64_t>::max();

  Call call = Call::kWrite;
  std::string glob = "*";   ///< of the path; '*' passes over '/' too
  std::uint64_t skip = 0;   ///< matches that pass before it fires
  std::uint64_t count = 1;  ///< how often it fires then; kSticky for ever
  int error = EIO;
  /// A read or write moves this many bytes before it fails.
  std::optional<std::size_t> short_bytes = std::nullopt;
  /// Of firing, for each match that is neither skipped nor spent.
  double probability = 1.0;
  /// A failed sync also takes back what was written since the last good one: the disk never got it. Set the rule before
  /// the writes. (Not for direct files: it writes back what it read, byte by byte.)
  bool drop_unsynced = false;
};

class FaultFs final : public FileSystem, public std::enable_shared_from_this<FaultFs> {
 public:
  static std::shared_ptr<FaultFs> make(std::shared_ptr<FileSystem> below, std::uint64_t seed = 1);

  void add(FaultRule rule);
  /// No rule is left; counts stay.
  void clear();
  /// From here capabilities() lacks it; without kMapping, mapping() answers kUnsupported.
  void hide(Capability capability);

  std::uint64_t calls(Call call) const;
  std::uint64_t calls() const;
  void reset_counts();
  std::uint64_t fired() const;
  FileSystem& below() noexcept { return *below_; }

  std::string url() const override { return below_->url(); }
  Capabilities capabilities() const noexcept override;
  Result<std::unique_ptr<File>> open(std::string_view path, const OpenOptions& options) override;
  Result<FileInfo> stat(std::string_view path) override;
  Result<std::vector<DirectoryEntry>> list(std::string_view directory) override;
  Status create_directory(std::string_view path, NameSync when = NameSync::kNow) override;
  Status remove(std::string_view path, NameSync when = NameSync::kNow) override;
  Status rename(std::string_view from, std::string_view to, NameSync when = NameSync::kNow) override;
  Status sync_directory(std::string_view directory) override;
  Result<SpaceInfo> space() override;
  Result<bool> locked(std::string_view path) override;
  Result<std::size_t> poll(Deadline until) override { return below_->poll(until); }

 private:
  friend class FaultFile;

  struct Armed {
    FaultRule rule;
    std::uint64_t matched = 0;
    std::uint64_t fired = 0;
  };
  struct Fault {
    Status status;
    std::optional<std::size_t> short_bytes = std::nullopt;
    bool drop_unsynced = false;
  };
  /// What a write covered, to be put back.
  struct Before {
    std::uint64_t offset;
    std::uint64_t size;  // of the file
    std::vector<std::byte> bytes;
  };

  FaultFs(std::shared_ptr<FileSystem> below, std::uint64_t seed) : below_(std::move(below)), random_(seed) {}

  /// Counts the call; the failure it is to have, if any.
  std::optional<Fault> meet(Call call, std::string_view path, std::uint64_t offset = 0, std::uint64_t length = 0);
  Status meet_status(Call call, std::string_view path) {
    const auto fault = meet(call, path);
    return fault ? fault->status : Status{};
  }
  double draw();
  bool keeps_before() const;
  void remember(const std::string& path, File& file, std::uint64_t offset, std::uint64_t length);
  void forget(const std::string& path);
  void take_back(const std::string& path, File& file);

  const std::shared_ptr<FileSystem> below_;
  mutable std::mutex mutex_;
  std::uint64_t random_;
  std::vector<Armed> rules_;
  std::array<std::uint64_t, kCalls> counts_{};
  std::uint64_t fired_ = 0;
  std::uint32_t hidden_ = 0;
  std::map<std::string, std::vector<Before>> before_;
};

}  // namespace tier::testing
