/// log/sync: every append waits until its record is durable (Durability::kSync), beside pwrite+fdatasync to a file that
/// has its blocks, and beside the peers' synced puts. Several producers share group commits.
#include <string>

#include "harness/limits.h"
#include "harness/payload.h"
#include "log/log_cases.h"
#include "peers/peer.h"

namespace tier::bench {
namespace {

constexpr std::size_t kRecord = 128;

Status run(const Place& place, const BurstPlan& plan, Sample& s) {
  const Scratch scratch(place);
  TIER_CHECK(scratch.status());
  LogOptions options;
  options.durability = Durability::kSync;
  TIER_TRY(const std::unique_ptr<Log> log, Log::open(scratch.file_system(), scratch.path(), options));
  const Payload payload(kRecord, plan.threads);
  // The first appends meet a segment that is still being prepared.
  for (int i = 0; i < 20; ++i) {
    TIER_TRY(const Sequence sequence, log->append(payload.at(0, 0)));
    static_cast<void>(sequence);
  }
  FirstFailure failure;
  const LogStatistics before = log->statistics();
  measure(plan, s, [&](unsigned thread, std::uint64_t i) { failure.check(log->append(payload.at(thread, i))); });
  note_blocks(before, log->statistics(), s);
  failure.report(s);
  return close_log(*log);
}

}  // namespace

void register_cases(Registry& registry) {
  for (const Place& place : places({"local"}, true)) {
    const std::string limit = limit_durable_write(registry, place, kRecord);
    // A block may fill a page of its own: the other yardstick stands beside it, as a peer.
    const std::string page = limit_durable_write(registry, place, 4096);
    for (const unsigned threads : {1u, 8u}) {
      BurstPlan plan;
      plan.threads = threads;
      plan.bytes_per_call = kRecord;
      plan.calls_per_burst = registry.effort().pick(std::uint64_t{500}, std::uint64_t{150});
      plan.calls_max = 4 * plan.calls_per_burst * threads;
      plan.seconds = registry.effort().pick(2.0, 0.6);
      auto repetition = [place, plan](Sample& s) {
        if (const Status status = run(place, plan, s); !status.ok()) s.failure = status.message();
      };
      auto peers = threads == 1 ? peer_puts(registry, place, kRecord, true) : std::map<std::string, std::string>{};
      peers.emplace("pwrite+fdatasync-4096", page);
      registry.add(log_case_name("sync", place, kRecord, threads), repetition, limit, std::move(peers),
                   "every append waits for its own durability; not pinned");
    }
  }
}

}  // namespace tier::bench
