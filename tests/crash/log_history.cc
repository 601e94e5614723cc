#include "crash/log_history.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <vector>

#include "testing/sim_fs.h"
#include "testing/sim_runtime.h"

namespace tier::testing {
namespace {

using ull = unsigned long long;

// Where a run is, for the message of a run that aborts (an assertion, a deadlock).
char where[640];

void tell_where(int) {
  const ssize_t ignored = ::write(2, where, std::strlen(where));
  static_cast<void>(ignored);
  ::signal(SIGABRT, SIG_DFL);
  ::raise(SIGABRT);
}

void remember_where(const std::string& text) {
  static const bool installed = ::signal(SIGABRT, tell_where) != SIG_ERR;
  static_cast<void>(installed);
  std::snprintf(where, sizeof where, "the process ended in: %s\n", text.c_str());
}

/// The bytes of record number `id`: no two are alike once they hold eight bytes.
std::string record_bytes(std::uint64_t id, std::size_t size) {
  std::string bytes(size, '\0');
  std::uint64_t word = id;
  for (std::size_t at = 0; at < size; at += 8) {
    std::memcpy(bytes.data() + at, &word, std::min<std::size_t>(8, size - at));
    word = sim_mix(word, at);
  }
  return bytes;
}

}  // namespace

LogCase LogCase::random(std::uint64_t seed) {
  LogCase c;
  c.seed = seed;
  SimRandom r(sim_mix(seed, 0x6c6f67));
  LogOptions& o = c.options;
  o.allow_small_segments = true;
  o.segment_size = Bytes{std::uint64_t{4096} << r.below(5)};
  o.ring_size = Bytes{std::uint64_t{4096} << r.below(5)};
  o.max_record = Bytes{std::min<std::uint64_t>(o.segment_size.value / 4, 256u << r.below(6))};
  o.durability = static_cast<Durability>(r.below(3));
  o.align = r.below(4) == 0 ? BlockAlign::kPage : BlockAlign::kPacked;
  o.batch_bytes = Bytes{1 + r.below(o.ring_size.value / 4)};
  o.batch_records = 1 + static_cast<std::uint32_t>(r.below(1u << r.below(7)));
  o.batch_interval = std::chrono::microseconds(100 + r.below(1u << r.below(15)));
  o.index_stride = 16u << r.below(4);
  o.queue_full = r.below(4) == 0 ? QueueFull::kFail : QueueFull::kBlock;
  o.queue_full_timeout = std::chrono::milliseconds(r.below(3) == 0 ? r.below(20) : 500 + r.below(5000));
  const std::uint64_t mode = r.below(8);
  o.mode = mode == 0 ? FileMode::kWriteThrough : mode == 1 ? FileMode::kMapped : FileMode::kBuffered;
  c.disk.seed = sim_mix(seed, 1);
  if (r.below(4) == 0) c.disk.capabilities.bits &= ~static_cast<std::uint32_t>(Capability::kPunch);
  if (r.below(4) == 0) c.disk.capabilities.bits &= ~static_cast<std::uint32_t>(Capability::kAllocate);
  if (r.below(3) == 0) c.disk.capabilities = c.disk.capabilities.with(Capability::kMapping);
  c.cycles = 5 + static_cast<unsigned>(r.below(3));
  c.images = static_cast<unsigned>(r.below(4));
  c.producers = 1 + static_cast<unsigned>(r.below(3));
  c.operations = 2 + static_cast<unsigned>(r.below(1u << (2 + r.below(4))));
  // Equal sizes let a record replace another exactly, which is what brings cut ones back; see trap 11 in docs/reliability.md.
  c.record_size =
      r.below(3) == 0 ? 0 : 8 + static_cast<unsigned>(r.below(std::min<std::uint64_t>(o.max_record.value, 600) - 8));
  c.batches = r.below(2) == 0;
  c.reservations = r.below(3) == 0;
  c.truncation = r.below(2) == 0;
  c.tail = r.below(2) == 0;
  c.faults = r.below(3) == 0;
  c.kills = r.below(2) == 0;
  return c;
}

std::string LogCase::describe() const {
  char text[512];
  std::snprintf(
      text, sizeof text,
      "seed %llu: %s, segment %llu, ring %llu, max_record %llu, align %s, batch %llu B / %u / %lld us, mode %s, "
      "capabilities %x, %u producers x %u, records of %u%s%s%s%s%s%s",
      static_cast<ull>(seed), durability_name(options.durability), static_cast<ull>(options.segment_size.value),
      static_cast<ull>(options.ring_size.value), static_cast<ull>(options.max_record.value),
      options.align == BlockAlign::kPage ? "page" : "packed", static_cast<ull>(options.batch_bytes.value),
      options.batch_records, static_cast<long long>(options.batch_interval.count() / 1000),
      file_mode_name(options.mode), disk.capabilities.bits, producers, operations, record_size,
      batches ? ", batches" : "", reservations ? ", reservations" : "", truncation ? ", truncation" : "",
      tail ? ", tail" : "", faults ? ", faults" : "", kills ? ", kills" : "");
  return text;
}

// A session ------------------------------------------------------------------------------------------------------------

/// One life of the process: what happens between an open and the end. Runs as a fiber of its SimRuntime.
class LogHistory::Session {
 public:
  Session(LogHistory& history, const std::shared_ptr<SimDisk>& disk, const Plan& plan, SimRuntime& sim)
      : history_(history),
        model_(history.model_),
        case_(history.case_),
        disk_(disk),
        plan_(plan),
        sim_(sim),
        random_(sim_mix(plan.seed, 0x73657373)) {}

  /// Opens; false if it failed, which `status()` explains.
  bool open(bool read_only = false) {
    LogOptions options = case_.options;
    options.runtime = &sim_.runtime();
    options.read_only = read_only;
    if (read_only) options.create = Create::kNever;
    auto log = Log::open(sim_fs(disk_, &sim_), "log", options);
    status_ = log.status();
    if (!log.ok()) return false;
    log_ = *std::move(log);
    return true;
  }
  Log& log() { return *log_; }
  const Status& status() const noexcept { return status_; }
  void drop() { log_.reset(); }

  /// Everything that the log holds, by cursor, by read() now and then, and as verify() counts it.
  bool find(LogModel::Found& found, std::string& why) {
    const auto broken = [&](const std::string& what) {
      why = what;
      return false;
    };
    const LogCursors at = log_->cursors();
    const LogRecovery& recovery = log_->recovery();
    if (recovery.from != at.first || recovery.to != at.durable || at.durable != at.committed ||
        at.claimed != at.committed)
      return broken("what recovery reports is not where the cursors stand");
    found.from = at.first.value;
    found.to = at.durable.value;
    found.records.assign(found.to - found.from, std::nullopt);
    auto cursor = log_->scan(at.first);
    if (!cursor.ok()) return broken("scan: " + cursor.status().message());
    std::uint64_t last = 0;
    for (bool any = false;; any = true) {
      auto record = (*cursor)->next();
      if (!record.ok()) return broken("scan: " + record.status().message());
      if (!*record) break;
      const std::uint64_t s = (*record)->sequence.value;
      if (s < found.from || s >= found.to || (any && s <= last))
        return broken("scan went to sequence " + std::to_string(s));
      last = s;
      found.records[s - found.from] = std::string(as_text((*record)->bytes));
    }
    for (int i = 0; i < 3 && found.to > found.from; ++i) {
      const std::uint64_t s = found.from + random_.below(found.to - found.from);
      std::string bytes;
      const Status read = log_->read(Sequence{s}, bytes);
      const auto& there = found.records[s - found.from];
      if (there ? !read.ok() || bytes != *there : read.code() != Code::kVoid)
        return broken("read of sequence " + std::to_string(s) + ": " + read.message());
    }
    std::string damage;
    const auto verified = log_->verify(
        [](void* context, const LogDamage& d) { *static_cast<std::string*>(context) = d.file + ": " + d.what; },
        &damage);
    if (!verified.ok()) return broken("verify: " + verified.status().message());
    if (verified->damages != 0) return broken("verify: damage: " + damage);
    if (verified->from.value != found.from || verified->to.value != found.to ||
        verified->records != found.to - found.from)
      return broken("verify counts " + std::to_string(verified->records) + " records up to " +
                    std::to_string(verified->to.value));
    return true;
  }

  /// The fibers, until they are done or the log is gone.
  void work() {
    std::vector<std::unique_ptr<Task>> tasks;
    const auto start = [&](const char* name, std::function<void()> body) {
      auto task = sim_.runtime().executor->start(name, std::move(body));
      if (task.ok()) tasks.push_back(*std::move(task));
    };
    if (plan_.faults) start("faults", [this, seed = random_.next()] { disturb(SimRandom(seed)); });
    if (plan_.end == End::kKill)
      start("killer", [this, seed = random_.next()] {
        SimRandom r(seed);
        sim_.sleep(std::chrono::microseconds(r.below(1u << (4 + r.below(12)))));
        if (!ended_) kill();
      });
    if (case_.tail) start("tail", [this] { tail(); });
    producers_left_ = case_.producers;
    for (unsigned i = 0; i < case_.producers; ++i)
      start("producer", [this, i, seed = random_.next()] {
        produce(i, SimRandom(seed));
        --producers_left_;
      });
    for (auto& task : tasks) task->join();
  }

  /// Closes as the plan says; what was promised by then is noted.
  void finish() {
    ended_ = true;
    note_cursors();
    if (plan_.end == End::kPower) disk_->power_cut();
    if (plan_.end == End::kKill) kill();
    const bool patient = random_.below(4) != 0;
    const CloseReport report = log_->close(
        patient ? Deadline::never() : sim_.runtime().clock->in(std::chrono::milliseconds(random_.below(100))));
    if (report.outcome == CloseOutcome::kClean) {
      if (!report.status.ok() || report.lost_records != 0) model_.fail("a clean close reports losses");
      model_.durable(log_->cursors().claimed.value);
      closed_clean_ = true;
    }
    note_cursors();
    for (const Wait& w : waits_)
      if (w.calls != 1) model_.fail("on_durable was answered %u times", w.calls);
    log_.reset();
  }
  bool closed_clean() const noexcept { return closed_clean_; }

 private:
  struct Wait {
    DurableOp op;
    Session* session = nullptr;
    unsigned calls = 0;
  };

  bool healthy() const { return model_.failure().empty(); }
  /// What this process reads is nobody's any more.
  bool gone() const { return killed_ || !disk_->powered(); }
  void kill() {
    if (!killed_) disk_->kill_process();
    killed_ = true;
  }

  void note_cursors() {
    const LogCursors c = log_->cursors();
    if (c.first > c.durable || c.durable > c.committed || c.committed > c.claimed)
      model_.fail("cursors out of order: %llu %llu %llu %llu", static_cast<ull>(c.first.value),
                  static_cast<ull>(c.durable.value), static_cast<ull>(c.committed.value),
                  static_cast<ull>(c.claimed.value));
    model_.durable(c.durable.value);
    if (!gone()) model_.written(c.committed.value);  // stores into a mapping succeed for the dead
    model_.first(c.first.value);
  }

  std::string new_record(SimRandom& r) {
    std::size_t size = case_.record_size;
    if (size == 0) {
      const std::uint64_t most = case_.options.max_record.value;
      switch (r.below(8)) {
        case 0: size = 0; break;
        case 1: size = r.below(16); break;
        case 2: size = most - r.below(std::min<std::uint64_t>(most, 8)); break;
        case 3: size = r.below(most + 1); break;
        case 4: size = std::min<std::uint64_t>(most, case_.options.ring_size.value / 4 - 4 - 4 + r.below(8)); break;
        default: size = std::min<std::uint64_t>(most, r.below(200)); break;
      }
    }
    ++history_.records_;
    return record_bytes(history_.next_record_++, size);
  }

  /// An append's outcome. True if it was taken.
  bool outcome(LogModel::Ticket ticket, const Result<Sequence>& result, std::uint64_t& after) {
    if (!result.ok()) {
      const Code c = result.code();
      if (c == Code::kQueueFull || c == Code::kTooLarge || c == Code::kInvalid) model_.refused(ticket);
      return false;
    }
    if (result->value < after)
      model_.fail("a producer got sequence %llu after %llu", static_cast<ull>(result->value), static_cast<ull>(after));
    after = result->value + ticket->records.size();
    model_.taken(ticket, result->value);
    return true;
  }

  void produce(unsigned number, SimRandom r) {
    Clock& clock = *sim_.runtime().clock;
    std::uint64_t after = 0;  // what this producer appends next lies at or above
    for (unsigned i = 0; i < case_.operations && healthy() && !ended_; ++i) {
      const bool sync = case_.options.durability == Durability::kSync;
      const std::uint64_t dice = r.below(100);
      if (dice < 50) {
        const auto ticket = model_.submit({new_record(r)});
        const bool wait = dice < 6;
        const std::string record = ticket->records[0];
        const auto result = wait ? log_->append_durable(as_bytes(record)) : log_->append(as_bytes(record));
        if (outcome(ticket, result, after) && (wait || sync)) model_.durable(result->value + 1);
      } else if (dice < 60) {
        if (!case_.batches) continue;
        std::vector<std::string> records;
        std::uint64_t bytes = 0;
        for (std::uint64_t n = 1 + r.below(1u << (1 + r.below(4))); records.size() < n;) {
          std::string record = new_record(r);
          bytes += record.size();
          if (bytes > case_.options.max_record.value && !records.empty()) break;
          records.push_back(std::move(record));
        }
        const std::vector<std::string> held = records;
        const std::vector<ByteSpan> spans = [&] {
          std::vector<ByteSpan> all;
          for (const std::string& h : held) all.push_back(as_bytes(h));
          return all;
        }();
        const std::size_t count = records.size();
        const auto ticket = model_.submit(std::move(records));
        const auto result = log_->append_batch(spans);
        if (outcome(ticket, result, after) && sync) model_.durable(result->value + count);
      } else if (dice < 66) {
        if (!case_.reservations) continue;
        const std::string record = new_record(r);
        auto reserved = log_->reserve(record.size());
        if (!reserved.ok()) continue;
        const std::uint64_t sequence = reserved->sequence().value;
        if (sequence < after)
          model_.fail("a producer got sequence %llu after %llu", static_cast<ull>(sequence), static_cast<ull>(after));
        after = sequence + 1;
        const bool keep = r.below(3) != 0;
        std::copy_n(reinterpret_cast<const std::byte*>(record.data()), keep ? record.size() : record.size() / 2,
                    reserved->bytes().data());
        if (r.below(3) == 0) sim_.sleep(std::chrono::microseconds(r.below(500)));
        if (keep) {
          model_.taken(model_.submit({record}), sequence);
          reserved->publish();
        } else {
          model_.abandoned(sequence);
        }
      } else if (dice < 74) {
        const std::uint64_t returned = model_.returned();
        if (log_->flush().ok()) model_.durable(std::min(returned, log_->cursors().claimed.value));
      } else if (dice < 79) {
        const std::uint64_t end = log_->cursors().claimed.value - r.below(2);
        const Deadline until = r.below(2) == 0 ? Deadline::never() : clock.in(std::chrono::microseconds(r.below(3000)));
        // kBatch starts no sync for it: wait with a deadline, for want of space may never heal.
        if (log_->wait_durable(Sequence{end}, std::min(until, clock.in(std::chrono::seconds(10)))).ok())
          model_.durable(end);
      } else if (dice < 84) {
        Wait& w = waits_.emplace_back();
        w.session = this;
        w.op.sequence = log_->cursors().claimed;
        w.op.context = &w;
        w.op.done = [](DurableOp& op, Status status) {
          Wait& wait = *static_cast<Wait*>(op.context);
          ++wait.calls;
          if (status.ok()) wait.session->model_.durable(op.sequence.value);
        };
        log_->on_durable(w.op);
      } else if (dice < 88) {
        if (!case_.truncation || number != 0) continue;
        const std::uint64_t first = model_.first();
        const std::uint64_t to = first + r.below(log_->cursors().durable.value - first + 2);
        model_.truncation_asked(to);
        static_cast<void>(log_->truncate_before(Sequence{to}));
        model_.first(log_->cursors().first.value);
      } else if (dice < 92) {
        read_one(r);
      } else if (dice < 93) {
        const std::string huge(case_.options.max_record.value + 1, 'x');
        if (const auto refused = log_->append(huge); refused.ok()) model_.fail("a record over the limit was taken");
      } else {
        sim_.sleep(std::chrono::microseconds(r.below(1u << (6 + r.below(13)))));
      }
      note_cursors();
    }
  }

  void read_one(SimRandom& r) {
    const LogCursors c = log_->cursors();
    if (c.first == c.durable) return;
    const std::uint64_t s = c.first.value + r.below(c.durable - c.first);
    std::string bytes;
    const Status status = log_->read(Sequence{s}, bytes);
    if (status.ok())
      model_.saw(s, bytes);
    else
      reader_failed(status, "read");
  }

  /// An error that a reader may meet while the disk is well is a mistake.
  void reader_failed(const Status& status, const char* how) {
    switch (status.code()) {
      case Code::kVoid:
      case Code::kTruncated:
      case Code::kTimedOut:
      case Code::kClosing:
      case Code::kPoisoned: return;
      case Code::kIo:
        if (gone() || plan_.faults) return;
        break;
      default:
        // A mapping has lost its bytes with its process.
        if (gone() && case_.options.mode == FileMode::kMapped) return;
        break;
    }
    model_.fail("%s: %s", how, status.message().c_str());
  }

  /// Reads on behind the producers, durable records or committed ones.
  void tail() {
    SimRandom r(random_.next());
    const bool committed = r.below(2) == 0;
    auto cursor = log_->scan(log_->cursors().first, Sequence{~std::uint64_t{0}}, {.committed = committed});
    if (!cursor.ok()) return reader_failed(cursor.status(), "tail");
    while (healthy() && !ended_) {
      auto record = (*cursor)->wait_next(sim_.runtime().clock->in(std::chrono::milliseconds(5)));
      if (record.ok()) {
        const std::uint64_t s = record->sequence.value;
        model_.saw(s, as_text(record->bytes));
        if (!committed)
          model_.durable(s + 1);  // L4
        else if (!gone())
          model_.written(s + 1);
        continue;
      }
      if (record.code() == Code::kTimedOut && (producers_left_ != 0 || r.below(4) != 0)) continue;
      if (record.code() == Code::kTruncated) {
        if (!(*cursor)->seek(log_->cursors().first).ok()) return;
        continue;
      }
      return reader_failed(record.status(), "tail");
    }
  }

  /// Makes the disk ill, and most often well again.
  void disturb(SimRandom r) {
    for (unsigned rounds = 1 + static_cast<unsigned>(r.below(3)); rounds > 0 && !ended_ && healthy(); --rounds) {
      sim_.sleep(std::chrono::microseconds(r.below(1u << (4 + r.below(11)))));
      if (ended_) return;
      SimFault fault;
      fault.skip = r.below(6);
      fault.times = r.below(4) == 0 ? 0 : 1 + r.below(4);
      fault.partial = r.below(2) == 0;
      switch (r.below(5)) {
        case 0:
          fault.calls = kSimWrite | kSimAllocate | kSimCreate | kSimTruncate;
          fault.error = ENOSPC;
          break;
        case 1:
          fault.calls = kSimWrite;
          fault.error = EIO;
          break;
        case 2:
          // Recovery writes again what such a sync lost; the simulator sees no store of equal bytes into a mapping.
          fault.calls = case_.options.mode == FileMode::kMapped ? kSimWrite : kSimSync;
          fault.error = r.below(2) == 0 ? EIO : ENOSPC;
          break;
        case 3:
          fault.calls = kSimSyncDirectory | kSimRename | kSimCreate;
          fault.error = EIO;
          break;
        default: disk_->set_capacity(disk_->used()); break;
      }
      if (fault.calls != kSimAnyCall) disk_->add_fault(fault);
      if (r.below(4) == 0) continue;  // the next one comes on top
      sim_.sleep(std::chrono::microseconds(r.below(1u << (8 + r.below(10)))));
      heal();
    }
    // A full disk heals in the end: an append of what does not fit the ring waits for that.
    sim_.sleep(std::chrono::milliseconds(r.below(3000)));
    heal();
  }
  void heal() {
    if (ended_) return;
    disk_->clear_faults();
    disk_->set_capacity(case_.disk.capacity);
  }

  LogHistory& history_;
  LogModel& model_;
  const LogCase& case_;
  std::shared_ptr<SimDisk> disk_;
  const Plan plan_;
  SimRuntime& sim_;
  SimRandom random_;
  std::unique_ptr<Log> log_;
  Status status_;
  std::deque<Wait> waits_;
  bool ended_ = false;
  bool killed_ = false;
  unsigned producers_left_ = 0;
  bool closed_clean_ = false;
};

// A history ------------------------------------------------------------------------------------------------------------

LogHistory::LogHistory(const LogCase& what)
    : case_(what), random_(sim_mix(what.seed, 0x68697374)), disk_(std::make_shared<SimDisk>(what.disk)) {
  remember_where(case_.describe());
}
LogHistory::~LogHistory() = default;

bool LogHistory::report(const std::string& what) {
  if (failure_.empty())
    failure_ = what + "\n  in cycle " + std::to_string(cycle_) + " (" + plan_ + ") of " + case_.describe();
  return false;
}

LogHistory::Plan LogHistory::random_plan(unsigned cycle) {
  Plan plan;
  plan.seed = random_.next();
  const std::uint64_t dice = random_.below(100);
  plan.end = dice < 55                  ? End::kPowerAtCall
             : dice < 65                ? End::kPower
             : dice < 80 && case_.kills ? End::kKill
             : dice < 90                ? End::kClose
                                        : End::kCloseAndPower;
  // Some cuts meet the open itself, some the first blocks, some a long life.
  plan.calls = random_.below(std::uint64_t{8} << random_.below(6));
  plan.faults = case_.faults && cycle > 0 && random_.below(2) == 0;
  const std::uint64_t image = random_.below(16);
  plan.image = image == 0 ? Image::kAllOld : image == 1 ? Image::kAllNew : Image::kSeeded;
  return plan;
}

bool LogHistory::run() {
  for (cycle_ = 0; cycle_ < case_.cycles; ++cycle_)
    if (!cycle(random_plan(cycle_))) return false;
  return check_image(disk_, random_.next());
}

bool LogHistory::cycle(const Plan& plan) {
  static constexpr const char* kEnds[] = {"power cut at a call", "power cut", "kill", "close", "close and power cut"};
  plan_ = std::string(kEnds[static_cast<std::size_t>(plan.end)]) + " after " + std::to_string(plan.calls) + " calls" +
          (plan.faults ? ", faults" : "");
  SimRuntime sim(plan.seed);
  cut_ = false;
  disk_->cut_power_at(plan.end == End::kPowerAtCall ? disk_->call_count() + plan.calls : ~std::uint64_t{0});
  std::string broken;
  sim.run([&] {
    Session session(*this, disk_, plan, sim);
    if (!session.open()) {
      if (disk_->powered()) broken = "open: " + session.status().message();
      closed_clean_ = false;
      return;
    }
    ++states_;
    const LogRecovery recovery = session.log().recovery();
    LogModel::Found found;
    std::string why;
    if (!session.find(found, why)) {
      if (disk_->powered()) broken = why;
      // The power went while we looked: whatever was found is found again next time.
      closed_clean_ = false;
      session.drop();
      return;
    }
    if (!model_.check(found, killed_)) return;
    if (recovery.created && exists_) broken = "the store was created anew";
    if (recovery.epoch <= epoch_) broken = "the epoch did not rise";
    if (closed_clean_ && !recovery.clean) broken = "recovery does not know the clean close";
    if (recovery.clean && recovery.cut_bytes != 0) broken = "recovery cut something after a clean close";
    if (!broken.empty()) return;
    epoch_ = recovery.epoch;
    exists_ = true;
    closed_clean_ = false;
    model_.adopt(found);
    session.work();
    session.finish();
    closed_clean_ = session.closed_clean();
  });
  trace_ = sim_mix(trace_, sim.trace());
  faults_hit_ += disk_->faults_hit();
  cut_ = !disk_->powered();
  if (!broken.empty()) return report(broken);
  if (!model_.failure().empty()) return report(model_.failure());
  return settle(plan);
}

/// The crash that ends a cycle.
bool LogHistory::settle(const Plan& plan) {
  disk_->clear_faults();
  disk_->set_capacity(case_.disk.capacity);
  disk_->cut_power_at(~std::uint64_t{0});
  if (plan.end == End::kCloseAndPower && disk_->powered()) disk_->power_cut();
  killed_ = disk_->powered();
  if (killed_) {
    if (plan.end != End::kKill && plan.end != End::kClose) disk_->kill_process();
    return true;
  }
  for (unsigned i = 0; i < case_.images; ++i) {
    const auto image = disk_->clone();
    if (i == 0)
      image->crash_prefix(random_.below(disk_->order() + 1));
    else
      image->crash_seeded(random_.next());
    image->restart();
    if (!check_image(image, random_.next())) return false;
  }
  switch (plan.image) {
    case Image::kAllOld: disk_->crash_all_old(); break;
    case Image::kAllNew: disk_->crash_all_new(); break;
    case Image::kSeeded: disk_->crash_seeded(random_.next()); break;
  }
  disk_->restart();
  return true;
}

bool LogHistory::check_image(const std::shared_ptr<SimDisk>& disk, std::uint64_t seed) {
  SimRuntime sim(seed);
  std::string broken;
  sim.run([&] {
    Plan plan;
    plan.seed = seed;
    LogModel::Found beside;
    bool compare = false;
    if (exists_ && (seed & 3) == 0) {
      // A reader without a writer sees what recovery will keep.
      Session reader(*this, disk, plan, sim);
      if (!reader.open(true)) {
        broken = "read-only open: " + reader.status().message();
        return;
      }
      if (!reader.find(beside, broken)) {
        broken = "read-only: " + broken;
        return;
      }
      compare = true;
      reader.drop();
    }
    Session session(*this, disk, plan, sim);
    if (!session.open()) {
      broken = "open: " + session.status().message();
      return;
    }
    ++states_;
    LogModel::Found found;
    if (!session.find(found, broken) || !model_.check(found, killed_)) return;
    if (compare && (beside.from != found.from || beside.to != found.to || beside.records != found.records))
      broken = "a read-only open saw another log than recovery kept: up to " + std::to_string(beside.to) + ", not " +
               std::to_string(found.to);
    session.drop();
  });
  if (!broken.empty()) return report(broken);
  if (!model_.failure().empty()) return report(model_.failure());
  return true;
}

}  // namespace tier::testing
