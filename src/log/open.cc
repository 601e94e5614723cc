/// Opening and closing.
#include <algorithm>

#include "base/assert.h"
#include "log/log_core.h"
#include "log/manifest.h"

namespace tier {
namespace {

constexpr Bytes kUsualRecord{1u << 20};

}  // namespace

Result<std::unique_ptr<Log>> Log::open(std::string_view url, const LogOptions& options) {
  TIER_CHECK(check_log_options(options));
  TIER_TRY(const Url parsed, parse_url(url));
  const bool create = !options.read_only && options.create != Create::kNever;
  TIER_TRY(std::shared_ptr<FileSystem> fs,
           open_file_system(parsed.file_system,
                            {.create = create && parsed.path.empty(), .runtime = options.runtime}));
  return open(std::move(fs), parsed.path, options);
}

Result<std::unique_ptr<Log>> Log::open(std::shared_ptr<FileSystem> fs, std::string_view path, const LogOptions& options) {
  return LogCore::open(std::move(fs), path, options);
}

LogCore::LogCore(Runtime& runtime, const LogOptions& options, std::shared_ptr<Engine> engine)
    : runtime_(runtime),
      options_(options),
      read_only_(options.read_only),
      state_(std::make_shared<ReadState>(runtime, std::move(engine), options.index_stride)),
      lead_mutex_(*runtime.parker),
      space_(*runtime.parker),
      committer_event_(*runtime.parker),
      syncer_(runtime, "tier-sync"),
      read_mutex_(*runtime.parker),
      truncate_mutex_(*runtime.parker) {
  options_.segment_size = state_->engine->segment_size();
  if (options_.max_record == Bytes{0}) options_.max_record = std::min(kUsualRecord, options_.segment_size / 4);
  options_.runtime = &runtime;
}

Result<std::unique_ptr<Log>> LogCore::open(std::shared_ptr<FileSystem> fs, std::string_view path,
                                           const LogOptions& options) {
  TIER_CHECK(check_log_options(options));
  Runtime& runtime = options.runtime != nullptr ? *options.runtime : Runtime::system();
  const std::uint64_t began = runtime.clock->monotonic_ns();
  EngineOptions engine_options;
  engine_options.segment_size = options.segment_size;
  engine_options.allow_small_segments = options.allow_small_segments;
  engine_options.tail_policy = TailPolicy::kCaller;
  engine_options.mode = options.mode;
  // A synced append into blocks that were written before needs no metadata commit.
  engine_options.zero_ahead = options.durability == Durability::kSync;
  engine_options.read_only = options.read_only;
  engine_options.create = options.read_only ? Create::kNever : options.create;
  engine_options.kind = "log";
  engine_options.runtime = &runtime;
  TIER_TRY(std::shared_ptr<Engine> engine, Engine::open(std::move(fs), path, engine_options));
  if (!options.read_only && options.max_record.value > engine->segment_size().value / 4)
    return fail(Code::kInvalid, 0, "max_record is over a quarter of the segments that this log has",
                "max_record = %llu, segment_size %llu", static_cast<unsigned long long>(options.max_record.value),
                static_cast<unsigned long long>(engine->segment_size().value));
  LogPosition first;
  TIER_CHECK(parse_manifest(*engine, first));
  std::unique_ptr<LogCore> log(new LogCore(runtime, options, std::move(engine)));
  TIER_CHECK(options.read_only ? log->follow(first) : log->recover(first));
  log->recovery_.nanoseconds = runtime.clock->monotonic_ns() - began;
  return std::unique_ptr<Log>(std::move(log));
}

LogCore::~LogCore() { static_cast<void>(close(runtime_.clock->in(options_.queue_full_timeout))); }

CloseReport LogCore::close(Deadline until) {
  if (closed_.exchange(true, std::memory_order_acq_rel)) return close_report_;  // [C3] acquire: the report of the first
  CloseReport report;
  if (ring_ != nullptr && committer_ != nullptr) {
    ring_->freeze();
    space_.signal();
    const std::uint64_t claimed = ring_->claimed();
    // Want of space may heal while there is time.
    for (;;) {
      report.status = make_durable(claimed, true, until, true);
      if (report.status.code() != Code::kDiskFull || runtime_.clock->passed(until) || until == Deadline::never()) break;
      runtime_.parker->sleep(10ms);
    }
    report.lost_records = claimed - std::min(claimed, state_->durable.sequence());
  }
  // [C4] release: the background task sees the stop; pairs with its load.
  stopping_.store(true, std::memory_order_release);
  wake_committer();
  state_->progress.signal();
  syncer_.stop();
  if (committer_ != nullptr) committer_->join();
  pending_lease_ = AppendLease();
  if (!read_only_ && ring_ != nullptr) {
    if (report.status.ok()) report.status = state_->engine->close(state_->durable.sequence());
    if (!report.status.ok())
      report.outcome = report.status.code() == Code::kTimedOut ? CloseOutcome::kTimedOut : CloseOutcome::kPartial;
    DurableOp* waiting = nullptr;
    {
      MutexLock lock(lead_mutex_);
      std::swap(waiting, waiting_);
    }
    complete_waiting(waiting, closed_before_durable());
  }
  state_->closed.store(true, std::memory_order_release);  // [V3] pairs with wait_next()
  state_->progress.signal();
  close_report_ = report;
  return report;
}

}  // namespace tier
