/// log/append: what one append costs its producer, the copy included, while the ring is not full and the committer
/// works.
///
/// Durability is `async`: the committer writes in the background, on another core where there is one. The ring is the
/// largest (64 MiB) and warm. Producers append in bursts that fill at most an eighth of it and flush between bursts,
/// outside the timed part; the stamped percentiles therefore hold no wait for room. log/sustained shows what happens
/// without these pauses.
#include <algorithm>
#include <string>

#include "harness/limits.h"
#include "harness/payload.h"
#include "log/log_cases.h"
#include "peers/peer.h"

namespace tier::bench {
namespace {

constexpr std::uint64_t kRing = 64u << 20;
constexpr std::uint64_t kBurstBytes = kRing / 8;
// What a record costs in the ring beyond its bytes, generously; only the length of a burst depends on it.
constexpr std::uint64_t kFrame = 32;

BurstPlan plan_for(const Registry& registry, std::size_t record, unsigned threads) {
  BurstPlan plan;
  plan.threads = threads;
  plan.bytes_per_call = record;
  plan.calls_per_burst = std::clamp<std::uint64_t>(kBurstBytes / (record + kFrame), 4, 100'000) / threads;
  const std::uint64_t bytes_max = registry.effort().pick(std::uint64_t{512} << 20, std::uint64_t{192} << 20);
  plan.calls_max = bytes_max / (record + kFrame);
  plan.seconds = registry.effort().pick(0.6, 0.2);
  return plan;
}

Status run(const Place& place, const BurstPlan& plan, std::size_t record, Sample& s) {
  const Scratch scratch(place);
  LogOptions options;
  options.durability = Durability::kAsync;
  options.ring_size = Bytes{kRing};
  TIER_TRY(const std::unique_ptr<Log> log, open_warm_log(scratch, options));
  const Payload payload(record, plan.threads);
  FirstFailure failure;
  const LogStatistics before = log->statistics();
  measure(
      plan, s, [&](unsigned thread, std::uint64_t i) { failure.check(log->append(payload.at(thread, i))); },
      [&] { failure.check(log->flush()); });
  note_blocks(before, log->statistics(), s);
  failure.report(s);
  return close_log(*log);
}

}  // namespace

void register_cases(Registry& registry) {
  const char* const note =
      "async, warm ring of 64 MiB, bursts of at most 8 MiB, drained between bursts outside the timed part";
  for (const std::size_t record : kRecordSizes) {
    for (const unsigned threads : producer_counts(record)) {
      const std::string limit = limit_claim_and_copy(registry, record, threads);
      const BurstPlan plan = plan_for(registry, record, threads);
      for (const Place& place : places({"mem", "tmpfs", "local"})) {
        auto repetition = [place, plan, record](Sample& s) {
          if (const Status status = run(place, plan, record, s); !status.ok()) s.failure = status.message();
        };
        auto peers = threads == 1 ? peer_puts(registry, place, record, false) : std::map<std::string, std::string>{};
        registry.add(log_case_name("append", place, record, threads), repetition, limit, std::move(peers), note);
      }
    }
  }
}

}  // namespace tier::bench
