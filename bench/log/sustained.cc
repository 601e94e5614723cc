/// log/sustained: appends without a pause through the default ring, producers blocking when it is full, then one flush;
/// the time is from the first append to the end of the flush.
#include <algorithm>
#include <string>

#include "harness/limits.h"
#include "harness/payload.h"
#include "log/log_cases.h"
#include "peers/peer.h"

namespace tier::bench {
namespace {

std::uint64_t records_for(const Registry& registry, std::size_t record) {
  const std::uint64_t records_max = registry.effort().pick(std::uint64_t{8} << 20, std::uint64_t{2} << 20);
  const std::uint64_t bytes_max = registry.effort().pick(std::uint64_t{1536} << 20, std::uint64_t{256} << 20);
  return std::min(records_max, bytes_max / std::max<std::size_t>(record, 1));
}

Status run(const Place& place, std::uint64_t records, std::size_t record, unsigned threads, Sample& s) {
  const Scratch scratch(place);
  LogOptions options;
  options.durability = Durability::kAsync;
  TIER_TRY(const std::unique_ptr<Log> log, open_warm_log(scratch, options));
  const Payload payload(record, threads);
  FirstFailure failure;
  const StampClock& clock = StampClock::instance();
  const LogStatistics before = log->statistics();
  Crew crew(threads);
  auto produce = [&](unsigned thread) {
    const std::uint64_t start = clock.now();
    for (std::uint64_t i = 0; i < records / threads; ++i) failure.check(log->append(payload.at(thread, i)));
    return Crew::Span{start, clock.now()};
  };
  const std::uint64_t allocated = allocations();
  const std::uint64_t produced = crew.run(produce);
  const std::uint64_t flush_from = clock.now();
  failure.check(log->flush());
  const std::uint64_t ticks = produced + (clock.now() - flush_from);
  s.ops = records / threads * threads;
  s.allocations = allocations() - allocated;
  s.allocation_ops = s.ops;
  s.ns = clock.ns(ticks);
  s.bytes = s.ops * record;
  s.extra["append_ns_per_op"] = clock.ns(produced) / static_cast<double>(s.ops);
  note_blocks(before, log->statistics(), s);
  failure.report(s);
  return close_log(*log);
}

}  // namespace

void register_cases(Registry& registry) {
  const char* const note =
      "async, default ring (16 MiB), producers wait when it is full, one flush at the end included";
  for (const std::size_t record : kRecordSizes) {
    const std::uint64_t records = records_for(registry, record);
    for (const Place& place : places({"mem", "tmpfs", "local"})) {
      const std::string limit = limit_pages(registry, place, record, records);
      const auto peers = peer_puts(registry, place, record, false);
      for (const unsigned threads : producer_counts(record)) {
        auto repetition = [=](Sample& s) {
          if (const Status status = run(place, records, record, threads, s); !status.ok()) s.failure = status.message();
        };
        // The peers have one writer.
        registry.add(log_case_name("sustained", place, record, threads), repetition, limit,
                     threads == 1 ? peers : std::map<std::string, std::string>{}, note);
      }
    }
  }
}

}  // namespace tier::bench
