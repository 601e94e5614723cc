#include "testing_selftest/toy_wal.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/mutex.h"
#include "tier/crc32c.h"

namespace tier::testing {
namespace {

struct FrameHeader {
  std::uint32_t crc;  // of what follows it, payload included
  std::uint32_t length;
  std::uint64_t salt;
  std::uint64_t sequence;
};
static_assert(sizeof(FrameHeader) == 24);
constexpr std::uint64_t kPerSegment = 6;
constexpr std::uint64_t kNever = ~std::uint64_t{0};

std::string segment_path(std::uint64_t number) { return "wal/" + std::to_string(number); }

class ToyWal {
 public:
  ToyWal(std::shared_ptr<FileSystem> fs, Runtime& runtime, const ToyHistory& history)
      : fs_(std::move(fs)), runtime_(runtime), history_(history), mutex_(*runtime.parker) {}

  /// Recovers. `lost` is set when the mark proves that something durable is missing.
  Status open(bool* lost) {
    if (const Status made = fs_->create_directory("wal"); !made.ok() && made.code() != Code::kExists) return made;
    TIER_TRY(const std::uint64_t mark, read_mark(lost));
    for (std::uint64_t number = 0;; ++number) {
      auto file = fs_->open(segment_path(number), {.write = true, .mode = history_.mode, .lock = true});
      if (file.code() == Code::kNotFound) break;
      TIER_CHECK(file.status());
      segment_ = number;
      file_ = *std::move(file);
      TIER_TRY(const bool full, recover_segment());
      if (!full) break;
    }
    *lost = *lost || records_.size() < mark;
    if (file_ == nullptr) return create_segment(0);
    if (history_.bug != ToyBug::kTailNotErased) {
      TIER_CHECK(file_->truncate(end_));
      TIER_CHECK(file_->sync(SyncKind::kAll));  // what was recovered is served, so it must stay
    }
    // Segments behind a torn one are leftovers of the tail that was just cut.
    for (std::uint64_t number = segment_ + 1;; ++number) {
      const Status gone = fs_->remove(segment_path(number));
      if (gone.code() == Code::kNotFound) break;
      TIER_CHECK(gone);
    }
    return {};
  }

  const std::vector<std::string>& records() const { return records_; }

  /// Appends and makes durable, all with one sync. `submitted` and `acked` belong to the oracle, which does not crash.
  Status append(const std::vector<std::string>& batch, std::vector<std::string>& submitted, std::uint64_t& acked) {
    MutexLock lock(mutex_);
    if (failed_.ok()) failed_ = append_locked(batch, submitted, acked);
    return failed_;
  }

 private:
  Status append_locked(const std::vector<std::string>& batch, std::vector<std::string>& submitted,
                       std::uint64_t& acked) {
    submitted.resize(records_.size());
    struct Write {
      std::uint64_t offset;
      AlignedBuffer bytes;
    };
    std::vector<Write> writes;
    const auto commit = [&]() -> Status {
      const bool swapped = history_.bug == ToyBug::kWritesSwapped;  // an older image of a shared sector arrives last
      for (std::size_t i = 0; i < writes.size(); ++i) {
        const Write& w = writes[swapped ? writes.size() - 1 - i : i];
        TIER_CHECK(write(w.offset, w.bytes.span()));
      }
      writes.clear();
      if (history_.bug == ToyBug::kAckBeforeSync) acked = records_.size();
      if (history_.bug != ToyBug::kNoSync) TIER_CHECK(sync());
      acked = records_.size();
      return {};
    };
    for (const std::string& payload : batch) {
      if (records_.size() >= (segment_ + 1) * kPerSegment) {
        TIER_CHECK(commit());
        TIER_CHECK(create_segment(segment_ + 1));
      }
      submitted.push_back(payload);
      const std::uint64_t begin = align_down(end_, kSimSector);
      TIER_TRY(AlignedBuffer out, encode(payload));
      const std::uint64_t frame_end = end_ + sizeof(FrameHeader) + payload.size();
      // A sector in flight may be destroyed on a hostile disk: never one in use.
      const bool pads = history_.profile == SimProfile::kHostile;
      end_ = pads ? align_up(frame_end, kSimSector) : frame_end;
      tail_.assign(out.data() + (align_down(end_, kSimSector) - begin), out.data() + (end_ - begin));
      writes.push_back({begin, std::move(out)});
      records_.push_back(payload);
    }
    TIER_CHECK(commit());
    return records_.size() % 4 == 0 ? write_mark(records_.size()) : Status{};
  }

  /// Whole sectors: what the last one held, the new frame, zeros.
  Result<AlignedBuffer> encode(const std::string& payload) const {
    const std::size_t held = tail_.size();
    const std::size_t frame = sizeof(FrameHeader) + payload.size();
    TIER_TRY(AlignedBuffer out, AlignedBuffer::allocate(align_up(held + frame, kSimSector), kSimSector));
    std::memset(out.data(), 0, out.size());
    std::copy(tail_.begin(), tail_.end(), out.data());
    FrameHeader header{0, static_cast<std::uint32_t>(payload.size()), salt_, records_.size()};
    std::memcpy(out.data() + held, &header, sizeof header);
    std::memcpy(out.data() + held + sizeof header, payload.data(), payload.size());
    header.crc = crc32c(out.span().subspan(held + 4, frame - 4));
    std::memcpy(out.data() + held, &header, sizeof header);
    return out;
  }

  Status create_segment(std::uint64_t number) {
    file_.reset();
    const bool synced = history_.bug != ToyBug::kNoDirectorySync;
    TIER_TRY(file_, fs_->open(segment_path(number), {.write = true,
                                                     .create = Create::kIfMissing,
                                                     .mode = history_.mode,
                                                     .lock = true,
                                                     .name_sync = synced ? NameSync::kNow : NameSync::kLater}));
    segment_ = number;
    end_ = 0;
    tail_.clear();
    salt_ = runtime_.random->next();
    return {};
  }

  /// Operations in flight are completed by whoever polls.
  Status finish(IoOp& op) {
    bool ended = false;
    op.context = &ended;
    op.done = [](IoOp& o) { *static_cast<bool*>(o.context) = true; };
    file_->start(op);
    while (!ended) TIER_CHECK(fs_->poll(Deadline::never()));
    return op.status;
  }
  Status write(std::uint64_t offset, ByteSpan from) {
    if (!history_.async) return file_->write_at(offset, from);
    IoOp op;
    op.kind = IoOp::Kind::kWrite;
    op.offset = offset;
    op.from = from;
    return finish(op);
  }
  Status sync() {
    Status done;
    if (history_.async) {
      IoOp op;
      op.kind = IoOp::Kind::kSync;
      done = finish(op);
    } else {
      done = file_->sync(SyncKind::kData);
    }
    if (done.ok() || history_.bug != ToyBug::kSyncAgainAfterFailure) return done;
    file_.reset();
    TIER_TRY(file_, fs_->open(segment_path(segment_), {.write = true, .mode = history_.mode, .lock = true}));
    return file_->sync(SyncKind::kData);
  }

  Result<bool> recover_segment() {
    end_ = 0;
    salt_ = 0;
    tail_.clear();
    TIER_TRY(const std::uint64_t size, file_->size());
    std::vector<std::byte> bytes(static_cast<std::size_t>(size));
    TIER_TRY(AlignedBuffer into, AlignedBuffer::allocate(align_up(size, kSimSector), kSimSector));
    // An unreadable sector ends the log as a torn one does: it can only lie beyond what was acknowledged.
    for (std::uint64_t at = 0; at < size; at += kSimSector) {
      const Result<std::size_t> got = file_->read_at(at, into.span().subspan(at, kSimSector));
      if (!got.ok() && got.code() != Code::kIo) return got.status();
      if (!got.ok()) std::memset(into.data() + at, 0, kSimSector);
    }
    std::copy_n(into.data(), bytes.size(), bytes.begin());
    while (records_.size() < (segment_ + 1) * kPerSegment) {
      FrameHeader header;
      if (bytes.size() - end_ < sizeof header) break;
      std::memcpy(&header, bytes.data() + end_, sizeof header);
      if (header.length > bytes.size() - end_ - sizeof header || header.sequence != records_.size()) break;
      if (end_ > 0 && header.salt != salt_) break;
      if (header.crc != crc32c(ByteSpan(bytes).subspan(end_ + 4, sizeof header - 4 + header.length))) break;
      salt_ = header.salt;
      records_.emplace_back(as_text(ByteSpan(bytes).subspan(end_ + sizeof header, header.length)));
      end_ += sizeof header + header.length;
      if (history_.profile == SimProfile::kHostile)
        end_ = std::min<std::uint64_t>(align_up(end_, kSimSector), bytes.size());
    }
    if (end_ == 0) salt_ = runtime_.random->next();
    tail_.assign(bytes.begin() + static_cast<std::ptrdiff_t>(align_down(end_, kSimSector)),
                 bytes.begin() + static_cast<std::ptrdiff_t>(end_));
    return records_.size() == (segment_ + 1) * kPerSegment;
  }

  struct Mark {
    std::uint64_t sequence;
    std::uint64_t crc;
  };

  Status write_mark(std::uint64_t sequence) {
    Mark mark{sequence, 0};
    mark.crc = crc32c({reinterpret_cast<const std::byte*>(&mark), 8});
    if (const Status gone = fs_->remove("wal/mark.new", NameSync::kLater); !gone.ok() && gone.code() != Code::kNotFound)
      return gone;
    {
      TIER_TRY(const std::unique_ptr<File> file,
               fs_->open("wal/mark.new", {.write = true, .create = Create::kExclusive, .name_sync = NameSync::kLater}));
      TIER_CHECK(file->write_at(0, ByteSpan{reinterpret_cast<const std::byte*>(&mark), sizeof mark}));
      if (history_.bug != ToyBug::kRenameWithoutSync) TIER_CHECK(file->sync(SyncKind::kAll));
    }
    return fs_->rename("wal/mark.new", "wal/mark", NameSync::kNow);
  }
  Result<std::uint64_t> read_mark(bool* lost) {
    auto file = fs_->open("wal/mark", {});
    if (file.code() == Code::kNotFound) return std::uint64_t{0};
    TIER_CHECK(file.status());
    Mark mark{};
    TIER_TRY(const std::size_t got, (*file)->read_at(0, {reinterpret_cast<std::byte*>(&mark), sizeof mark}));
    if (got == sizeof mark && mark.crc == crc32c({reinterpret_cast<const std::byte*>(&mark), 8})) return mark.sequence;
    *lost = true;
    return std::uint64_t{0};
  }

  const std::shared_ptr<FileSystem> fs_;
  Runtime& runtime_;
  const ToyHistory history_;
  Mutex mutex_;
  Status failed_;
  std::unique_ptr<File> file_;
  std::uint64_t segment_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t salt_ = 0;
  std::vector<std::byte> tail_;  // of the last sector, up to end_
  std::vector<std::string> records_;
};

}  // namespace

std::optional<std::string> toy_violation(std::uint64_t seed, const ToyHistory& history, std::uint64_t* trace) {
  SimRandom random(seed);
  SimDiskOptions options;
  options.seed = random.next();
  options.profile = history.profile;
  if (history.async) options.capabilities = options.capabilities.with(Capability::kAsync);
  auto disk = std::make_shared<SimDisk>(options);
  std::vector<std::string> submitted;
  std::uint64_t acked = 0;
  std::optional<std::string> wrong;
  for (int cycle = 0; cycle <= history.cycles && !wrong; ++cycle) {
    const bool last = cycle == history.cycles;
    std::uint64_t cut = disk->call_count() + random.below(60);
    if (cycle == 0 && history.first_cut) cut = *history.first_cut;
    disk->cut_power_at(last ? kNever : cut);
    if (!last && random.chance(256))
      disk->add_fault({.calls = kSimSync, .path = "wal/[0-9]*", .skip = random.below(8)});
    // Sizes of a kind: equal frames line up with what an earlier life left behind.
    const std::uint64_t size = 1 + random.below(random.chance(512) ? 40 : 900);
    const bool equal = random.chance(512);
    SimRuntime sim(random.next());
    sim.run([&] {
      bool lost = false;
      ToyWal wal(sim_fs(disk, &sim), sim.runtime(), history);
      const Status opened = wal.open(&lost);
      if (lost) wrong = "the mark names records that are gone";
      if (!opened.ok()) {
        if (last && !wrong) wrong = "cannot recover: " + opened.message();
        return;
      }
      if (wal.records().size() < acked)
        wrong = "acknowledged " + std::to_string(acked) + ", recovered " + std::to_string(wal.records().size());
      if (wal.records().size() > submitted.size()) wrong = "recovered more than was submitted";
      for (std::size_t i = 0; i < wal.records().size() && !wrong; ++i)
        if (wal.records()[i] != submitted[i]) wrong = "record " + std::to_string(i) + " came back with other bytes";
      if (wrong || last) return;
      acked = wal.records().size();
      const auto client = [&] {
        for (int i = 0; i < 8; ++i) {
          std::vector<std::string> batch(1 + random.below(3));
          for (std::string& payload : batch) {
            payload.resize(static_cast<std::size_t>(equal ? size : 1 + random.below(size)));
            for (char& c : payload) c = static_cast<char>('a' + random.below(26));
          }
          if (!wal.append(batch, submitted, acked).ok()) return;
        }
      };
      auto other = sim.runtime().executor->start("client", client);
      client();
      (*other)->join();
    });
    if (trace != nullptr) *trace = sim_mix(*trace, sim_mix(sim.trace(), disk->trace()));
    disk->clear_faults();
    if (last) break;
    disk->crash_seeded(random.next());
    disk->restart();
  }
  if (wrong) *wrong += " (seed " + std::to_string(seed) + ")";
  return wrong;
}

}  // namespace tier::testing
