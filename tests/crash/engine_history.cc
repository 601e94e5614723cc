#include "engine_history.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <sstream>
#include <vector>

#include "testing/sim_fs.h"
#include "testing/sim_runtime.h"
#include "tier/engine.h"

namespace tier::testing {
namespace {

constexpr std::uint64_t kSpan = 48 << 10;  // addresses a history may use

struct Cell {
  std::vector<std::uint8_t> allowed{0};
  std::uint8_t now() const { return allowed.back(); }
  void set(std::uint8_t v) {
    if (allowed.back() != v) allowed.push_back(v);
  }
  void settle() { allowed.erase(allowed.begin(), allowed.end() - 1); }
  bool admits(std::uint8_t v) const { return std::find(allowed.begin(), allowed.end(), v) != allowed.end(); }
};

class History {
 public:
  explicit History(const EngineHistoryOptions& options) : o_(options), random_(sim_mix(options.seed, 0x656e67)) {
    const std::uint64_t sizes[] = {512, 1024, 4096, 16384};
    engine_options_.segment_size = Bytes{sizes[random_.below(4)]};
    engine_options_.allow_small_segments = true;
    engine_options_.allocate_ahead = Bytes{512u << random_.below(5)};
    engine_options_.prepared_segments = static_cast<std::uint32_t>(random_.below(3));
    engine_options_.zero_ahead = random_.chance(300);
    engine_options_.mode = random_.chance(256) ? FileMode::kWriteThrough : FileMode::kBuffered;
    engine_options_.create = Create::kIfMissing;
    engine_options_.kind = "history";
    if (hostile()) unit_ = kSimSector;
  }

  EngineHistoryReport run() {
    SimDiskOptions disk_options;
    disk_options.seed = o_.seed;
    disk_options.profile = o_.profile;
    if (random_.chance(256)) disk_options.capabilities.bits &= ~static_cast<std::uint32_t>(Capability::kPunch);
    if (random_.chance(128)) disk_options.capabilities.bits &= ~static_cast<std::uint32_t>(Capability::kAllocate);
    disk_ = std::make_shared<SimDisk>(disk_options);
    for (int cycle = 0; cycle < o_.cycles && report_.failure.empty(); ++cycle) {
      SimRuntime sim(sim_mix(o_.seed, static_cast<std::uint64_t>(cycle)));
      disk_->cut_power_at(disk_->call_count() + pick_cut());
      const bool last = cycle + 1 == o_.cycles;
      if (last) disk_->cut_power_at(~std::uint64_t{0});
      sim.run([&] { live(sim); });
      report_.trace = sim_mix(report_.trace, sim.trace());
      if (last) break;
      if (disk_->powered() && !poisoned_ && random_.chance(200)) {
        disk_->kill_process();
        after_kill_ = true;
        ++report_.kills;
      } else {
        if (disk_->powered()) disk_->power_cut();
        ++report_.power_cuts;
        disk_->crash_seeded(random_.next());
        disk_->restart();
        after_kill_ = false;
      }
      disk_->clear_faults();
      poisoned_ = false;
    }
    return report_;
  }

 private:
  bool hostile() const { return o_.profile == SimProfile::kHostile; }
  std::uint64_t pick_cut() { return random_.chance(300) ? random_.below(25) : random_.below(400); }
  std::uint64_t amount(std::uint64_t most) {
    const std::uint64_t n = 1 + random_.below(random_.chance(512) ? std::min<std::uint64_t>(most, 200) : most);
    return align_up(n, unit_);
  }
  std::uint64_t place(std::uint64_t from, std::uint64_t to) { return align_down(from + random_.below(to - from + 1), unit_); }

  void fail_with(const std::string& what) {
    if (!report_.failure.empty()) return;
    std::ostringstream out;
    out << what << " (seed " << o_.seed << ", segment " << engine_options_.segment_size.value << ", begin " << begin_
        << ", durable " << durable_ << ", model " << cells_.size() << ")";
    report_.failure = out.str();
  }

  bool wrong(const std::string& what) {
    fail_with(what);
    return false;
  }

  void live(SimRuntime& sim) {
    auto fs = sim_fs(disk_, &sim);
    EngineOptions options = engine_options_;
    options.runtime = &sim.runtime();
    auto opened = Engine::open(fs, "store", options);
    if (!opened.ok()) {
      if (disk_->powered()) fail_with("cannot open: " + opened.status().message());
      else ++report_.cuts_while_opening;
      closed_ = false;  // it may have been noted that the store is in use again
      return;
    }
    engine_ = *std::move(opened);
    if (check_opened()) {
      for (int i = 0; i < o_.operations && report_.failure.empty() && step(i); ++i) {
      }
    }
    engine_.reset();
  }

  /// False: the power went before all was read.
  bool check_opened() {
    const Tails t = engine_->tails();
    const std::uint64_t tail = t.committed.value;
    if (t.durable.value != tail || t.allocated.value != tail) return wrong("tails differ after recovery");
    // begin
    if (t.begin.value != begin_ && !(head_attempt_ && t.begin.value == *head_attempt_)) return wrong("begin is wrong");
    begin_ = t.begin.value;
    head_attempt_.reset();
    // epoch
    if (engine_->epoch() <= epoch_) return wrong("the epoch did not rise");
    epoch_ = engine_->epoch();
    // tail
    if (tail_attempt_ && tail == *tail_attempt_) {
      // It was cut before the crash.
    } else if (tail < durable_ || tail > cells_.size()) {
      return wrong("the tail is at " + std::to_string(tail));
    }
    tail_attempt_.reset();
    if (closed_ && (!engine_->recovered().clean || engine_->recovered().clean_mark.value != close_value_ ||
                    tail != cells_.size()))
      return wrong("a clean close was forgotten");
    closed_ = false;
    // owner data
    const auto owner = engine_->owner_data();
    const std::string got(as_text(owner));
    if (got != owner_ && !(owner_attempt_ && got == *owner_attempt_)) return wrong("the owner's data is wrong");
    owner_ = got;
    owner_attempt_.reset();
    // bytes
    const std::uint64_t acknowledged = std::min(durable_, tail);
    durable_ = tail;
    cells_.resize(tail);
    std::vector<std::byte> bytes(tail - begin_);
    if (hostile() && !heal(acknowledged, tail)) {
      durable_ = acknowledged;
      return false;
    }
    if (const Status s = engine_->read(Address{begin_}, bytes); !s.ok()) {
      if (disk_->powered()) fail_with("cannot read back: " + s.message());
      return false;
    }
    for (std::uint64_t at = begin_; at < tail; ++at) {
      Cell& cell = cells_[at];
      const auto value = static_cast<std::uint8_t>(bytes[at - begin_]);
      const bool garbage = hostile() && at >= acknowledged;
      if (after_kill_ ? value != cell.now() : !cell.admits(value) && !garbage) {
        return wrong("byte " + std::to_string(at) + " reads " + std::to_string(value) + ", last written " +
                         std::to_string(cell.now()) + (after_kill_ ? " (killed)" : ""));
      }
      if (!after_kill_) cell.allowed.assign(1, value);
    }
    return true;
  }

  /// What was in flight may be unreadable: it is overwritten, as its owner would.
  bool heal(std::uint64_t from, std::uint64_t to) {
    const std::vector<std::byte> zeros(unit_);
    bool healed = false;
    for (std::uint64_t at = std::max(from, begin_); at < to; at += unit_) {
      std::vector<std::byte> sector(unit_);
      if (engine_->read(Address{at}, sector).ok()) continue;
      if (!disk_->powered() || !engine_->write(Address{at}, zeros).ok()) return false;
      healed = true;
    }
    return !healed || engine_->sync().ok();
  }

  /// False: the power is off, or the history is to end here.
  bool step(int i) {
    switch (random_.below(16)) {
      case 0:
      case 1:
      case 2:
      case 3: return append();
      case 4:
      case 5: return claim();
      case 6: return allocate();
      case 7:
      case 8: return overwrite();
      case 9:
      case 10:
      case 11: return sync();
      case 12: return reclaim_head();
      case 13: return random_.chance(512) ? reclaim_tail() : owner_data();
      case 14: return check_read();
      default:
        if (random_.chance(200)) return close();
        if (random_.chance(80)) return fail_a_sync();
        return i > 20 ? random_.chance(700) : true;
    }
  }

  bool went_wrong(const Status& s, const char* verb) {
    if (s.ok()) return false;
    if (disk_->powered() && !poisoned_) fail_with(std::string(verb) + ": " + s.message());
    return true;
  }
  bool room(std::uint64_t n) const { return cells_.size() + n + 8192 <= kSpan; }
  std::vector<std::byte> fresh(std::uint64_t n) {
    std::vector<std::byte> bytes(n);
    for (std::byte& b : bytes) b = static_cast<std::byte>(1 + random_.below(255));
    return bytes;
  }
  void record(std::uint64_t at, ByteSpan bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) cells_[at + i].set(static_cast<std::uint8_t>(bytes[i]));
  }
  void grow_to(std::uint64_t end) {
    if (end > cells_.size()) cells_.resize(end);
  }

  bool append() {
    const std::uint64_t n = amount(2 * engine_options_.segment_size.value > 6000 ? 6000 : 2 * engine_options_.segment_size.value);
    if (!room(n)) return true;
    const auto bytes = fresh(n);
    const std::uint64_t expected = cells_.size();
    const auto at = engine_->append(bytes);
    if (!at.ok() && !disk_->powered()) {
      // It may have been claimed and written in part; nothing later makes it durable, but its bytes may be there.
      return false;
    }
    if (went_wrong(at.status(), "append")) return false;
    if (at->value != expected) fail_with("an append landed elsewhere");
    grow_to(expected + n);
    record(expected, bytes);
    return true;
  }

  bool claim() {
    const std::uint64_t n = amount(std::min<std::uint64_t>(engine_options_.segment_size.value, 3000));
    if (!room(n) || n > engine_options_.segment_size.value) return true;
    ClaimOptions how;
    how.alignment = static_cast<std::uint32_t>(std::max<std::uint64_t>(unit_, 1u << random_.below(13)));
    how.one_segment = random_.chance(512);
    auto lease = engine_->claim(Bytes{n}, how);
    if (went_wrong(lease.status(), "claim")) return false;
    const std::uint64_t at = lease->address().value;
    if (at % how.alignment != 0 || at < cells_.size()) fail_with("a claim is misplaced");
    grow_to(at + n);
    if (random_.chance(100)) return true;  // dropped: reads zero
    const auto bytes = fresh(n);
    const ByteSpan part(bytes);
    record(at, bytes);
    if (went_wrong(lease->write(Bytes{0}, {&part, 1}), "lease write")) return false;
    lease->commit();
    return true;
  }

  bool allocate() {
    const std::uint64_t n = amount(5000);
    if (!room(n)) return true;
    const auto at = engine_->allocate(Bytes{n});
    if (went_wrong(at.status(), "allocate")) return false;
    if (at->value != cells_.size()) fail_with("an allocation landed elsewhere");
    grow_to(at->value + n);
    return true;
  }

  bool overwrite() {
    if (cells_.size() <= begin_ || hostile()) return true;
    const std::uint64_t at = begin_ + random_.below(cells_.size() - begin_);
    const std::uint64_t n = std::min(cells_.size() - at, amount(2000));
    const auto bytes = fresh(n);
    record(at, bytes);
    return !went_wrong(engine_->write(Address{at}, bytes), "write");
  }

  bool sync() {
    const bool part = random_.chance(200);
    const std::uint64_t committed = engine_->tails().committed.value;
    const std::uint64_t up_to = part ? begin_ + random_.below(committed - begin_ + 1) : committed;
    const Status s = part ? engine_->sync(Address{align_down(up_to, unit_)}) : engine_->sync();
    if (went_wrong(s, "sync")) return false;
    acknowledge(part ? align_down(up_to, unit_) : committed);
    return true;
  }
  void acknowledge(std::uint64_t up_to) {
    durable_ = std::max(durable_, up_to);
    for (Cell& c : cells_) c.settle();  // it covers every write that had returned
    if (engine_->tails().durable.value != durable_) fail_with("durable is not what was acknowledged");
  }

  bool reclaim_head() {
    if (durable_ <= begin_ || !random_.chance(512)) return true;
    const std::uint64_t to = place(begin_, durable_);
    if (to < begin_) return true;
    head_attempt_ = to;
    if (went_wrong(engine_->reclaim_head(Address{to}), "reclaim_head")) return false;
    begin_ = to;
    head_attempt_.reset();
    return true;
  }

  bool reclaim_tail() {
    const std::uint64_t to = std::max(begin_, place(begin_, cells_.size()));
    tail_attempt_ = to;
    if (went_wrong(engine_->reclaim_tail(Address{to}), "reclaim_tail")) return false;
    cells_.resize(to);
    for (Cell& c : cells_) c.settle();
    durable_ = to;
    tail_attempt_.reset();
    if (engine_->epoch() <= epoch_) fail_with("reclaim_tail did not raise the epoch");
    epoch_ = engine_->epoch();
    return true;
  }

  bool owner_data() {
    std::string text(random_.below(1025), '\0');
    for (char& c : text) c = static_cast<char>(random_.below(256));
    owner_attempt_ = text;
    if (went_wrong(engine_->put_owner_data(as_bytes(text)), "put_owner_data")) return false;
    owner_ = text;
    owner_attempt_.reset();
    return true;
  }

  bool check_read() {
    if (cells_.size() <= begin_) return true;
    const std::uint64_t at = begin_ + random_.below(cells_.size() - begin_);
    std::vector<std::byte> bytes(std::min<std::uint64_t>(cells_.size() - at, 1 + random_.below(4000)));
    if (went_wrong(engine_->read(Address{at}, bytes), "read")) return false;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (static_cast<std::uint8_t>(bytes[i]) != cells_[at + i].now()) {
        fail_with("byte " + std::to_string(at + i) + " does not read what was written last");
        return false;
      }
    }
    return true;
  }

  bool close() {
    close_value_ = random_.next();
    const std::uint64_t end = cells_.size();
    const Status s = engine_->close(close_value_);
    if (went_wrong(s, "close")) return false;
    durable_ = end;
    for (Cell& c : cells_) c.settle();
    closed_ = true;
    ++report_.clean_closes;
    return false;
  }

  /// N4: after it nothing is acknowledged, whatever later syncs would say.
  bool fail_a_sync() {
    disk_->add_fault({.calls = kSimSync, .error = random_.chance(512) ? EIO : ENOSPC, .path = "*.seg"});
    poisoned_ = true;  // expected from here on: the worker may meet the fault first
    if (!append()) return false;
    const Status s = engine_->sync();
    if (s.ok()) {  // the worker met the fault, or write-through needed no sync
      poisoned_ = disk_->faults_hit() != 0;
      disk_->clear_faults();
      if (!poisoned_) acknowledge(cells_.size());
      return false;
    }
    ++report_.failed_syncs;
    disk_->clear_faults();
    if (!disk_->powered()) return false;
    const std::uint64_t durable = engine_->tails().durable.value;
    if (durable != durable_) fail_with("durable moved although the sync failed");
    if (engine_->sync().ok()) acknowledge(cells_.size());  // only a planted bug gets here
    else if (engine_->append(fresh(unit_)).code() != Code::kPoisoned && disk_->powered()) fail_with("a poisoned engine accepted an append");
    return false;
  }

  const EngineHistoryOptions o_;
  SimRandom random_;
  EngineOptions engine_options_;
  std::shared_ptr<SimDisk> disk_;
  std::unique_ptr<Engine> engine_;
  EngineHistoryReport report_;
  std::uint64_t unit_ = 1;

  std::vector<Cell> cells_;  // up to the allocated tail
  std::uint64_t begin_ = 0;
  std::uint64_t durable_ = 0;
  std::uint32_t epoch_ = 0;
  std::string owner_;
  std::uint64_t close_value_ = 0;
  bool closed_ = false;
  bool after_kill_ = false;
  bool poisoned_ = false;
  std::optional<std::uint64_t> head_attempt_;
  std::optional<std::uint64_t> tail_attempt_;
  std::optional<std::string> owner_attempt_;
};

}  // namespace

EngineHistoryReport run_engine_history(const EngineHistoryOptions& options) { return History(options).run(); }

}  // namespace tier::testing
