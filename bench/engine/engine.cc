/// Appends, overwrites and reads through Engine, one thread, nothing synced inside the timed part.
#include "tier/engine.h"

#include <algorithm>
#include <string>
#include <vector>

#include "harness/limits.h"
#include "harness/measure.h"
#include "harness/payload.h"

namespace tier::bench {
namespace {

constexpr std::uint64_t kBytesMax = 192u << 20;
/// What is overwritten and read again and again: as large as what the limit goes through.
std::uint64_t area_of(const Place& place) { return std::uint64_t{place.directory.empty() ? 256u : 64u} << 20; }

enum class Verb { kAppend, kWrite, kRead };

BurstPlan plan_for(const Registry& registry, std::size_t size, bool bounded) {
  BurstPlan plan;
  plan.calls_per_burst = std::clamp<std::uint64_t>((4u << 20) / size, 256, 50'000);
  if (bounded) plan.calls_max = kBytesMax / size;
  plan.seconds = registry.effort().pick(0.4, 0.1);
  plan.bytes_per_call = size;
  return plan;
}

Status run(const Place& place, const BurstPlan& plan, std::size_t size, Verb verb, Sample& s) {
  const Scratch scratch(place);
  TIER_CHECK(scratch.status());
  TIER_TRY(const std::unique_ptr<Engine> engine,
           Engine::open(scratch.file_system(), scratch.path(), {.create = Create::kIfMissing}));
  const Payload payload(size, 1);
  FirstFailure failure;
  if (verb == Verb::kAppend) {
    measure(plan, s, [&](unsigned, std::uint64_t i) { failure.check(engine->append(payload.at(0, i))); });
  } else {
    const std::uint64_t area = area_of(place);
    Address first;
    const std::vector<std::byte> chunk(1u << 20, std::byte{1});
    for (std::uint64_t n = 0; n < area; n += chunk.size()) {
      TIER_TRY(const Address at, engine->append(chunk));
      if (n == 0) first = at;
    }
    TIER_CHECK(engine->sync());
    std::vector<std::byte> into(size);
    std::uint64_t offset = 0;
    measure(plan, s, [&](unsigned, std::uint64_t i) {
      const Address at = first + Bytes{offset};
      if (verb == Verb::kRead) {
        failure.check(engine->read(at, into));
      } else {
        failure.check(engine->write(at, payload.at(0, i)));
      }
      offset = (offset + size) % (area - size);
    });
  }
  failure.report(s);
  return engine->close();
}

void add(Registry& registry, const Place& place, std::size_t size, Verb verb) {
  const bool memory = place.directory.empty();
  const BurstPlan plan = plan_for(registry, size, verb == Verb::kAppend);
  const char* name = verb == Verb::kAppend ? "append" : verb == Verb::kWrite ? "overwrite" : "read";
  std::string limit;
  if (verb == Verb::kRead) {
    limit = memory ? limit_memcpy_from(registry, size) : limit_pread(registry, place, size);
  } else {
    limit = memory ? limit_memcpy(registry, size) : limit_pwrite(registry, place, size);
  }
  auto repetition = [plan, place, size, verb](Sample& s) {
    if (const Status status = run(place, plan, size, verb, s); !status.ok()) s.failure = status.message();
  };
  registry.add(case_name("engine/", name, "/", place.kind, "/", size, "/1t"), repetition, limit);
}

}  // namespace

void register_cases(Registry& registry) {
  for (const Place& place : places({"mem", "local"})) {
    for (const std::size_t size : {64u, 4096u}) {
      for (const Verb verb : {Verb::kAppend, Verb::kWrite, Verb::kRead}) add(registry, place, size, verb);
    }
  }
}

}  // namespace tier::bench
