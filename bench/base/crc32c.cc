/// The checksum of everything on disk, beside ISA-L called directly.
#include "tier/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <string>

#include "harness/measure.h"
#include "harness/payload.h"

namespace tier::bench {
namespace {

BurstPlan plan_for(const Registry& registry, std::size_t size) {
  BurstPlan plan;
  plan.calls_per_burst = std::clamp<std::uint64_t>((16u << 20) / size, 256, 100'000);
  plan.seconds = registry.effort().pick(0.3, 0.05);
  plan.bytes_per_call = size;
  return plan;
}

void keep(std::uint32_t value) noexcept { asm volatile("" : : "r"(value) : "memory"); }

}  // namespace

void register_cases(Registry& registry) {
  for (const std::size_t size : {64u, 256u, 4096u, 65536u}) {
    const BurstPlan plan = plan_for(registry, size);
    const std::string limit = case_name("limit/isal-crc32c/", size);
    auto direct = [plan, size](Sample& s) {
      const Payload payload(size, 1);
      measure(plan, s, [&](unsigned, std::uint64_t i) {
        // ISA-L's interface takes a mutable pointer and does not write through it.
        auto* p = const_cast<std::byte*>(payload.at(0, i).data());
        keep(crc32_iscsi(reinterpret_cast<unsigned char*>(p), static_cast<int>(size), 0));
      });
    };
    registry.add(limit, direct);
    auto ours = [plan, size](Sample& s) {
      const Payload payload(size, 1);
      measure(plan, s, [&](unsigned, std::uint64_t i) { keep(crc32c(payload.at(0, i))); });
    };
    registry.add(case_name("base/crc32c/", size, "/1t"), ours, limit);
  }
}

}  // namespace tier::bench
