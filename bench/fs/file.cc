/// Writes and reads of 4 KiB through File, beside the same bytes moved by memcpy or by the system call alone. Both go
/// again and again through an area that is there already: 64 MiB of a disk's file, 256 MiB of memory, as their limits
/// do.
#include <memory>
#include <string>
#include <vector>

#include "harness/limits.h"
#include "harness/measure.h"
#include "harness/payload.h"

namespace tier::bench {
namespace {

std::uint64_t file_size(const Place& place) { return std::uint64_t{place.directory.empty() ? 256u : 64u} << 20; }

BurstPlan plan_for(const Registry& registry, std::size_t size) {
  BurstPlan plan;
  plan.calls_per_burst = (16u << 20) / size;
  plan.seconds = registry.effort().pick(0.3, 0.08);
  plan.bytes_per_call = size;
  return plan;
}

Result<std::unique_ptr<File>> make_file(const Scratch& scratch, std::uint64_t size) {
  if (!scratch.status().ok()) return scratch.status();
  TIER_CHECK(scratch.file_system()->create_directory(scratch.path()));
  TIER_TRY(std::unique_ptr<File> file,
           scratch.file_system()->open(scratch.path() + "/file", {.write = true, .create = Create::kExclusive}));
  const std::vector<std::byte> zeros(1u << 20);
  for (std::uint64_t at = 0; at < size; at += zeros.size()) TIER_CHECK(file->write_at(at, zeros));
  TIER_CHECK(file->sync(SyncKind::kAll));
  return file;
}

void add(Registry& registry, const Place& place, std::size_t size, bool write) {
  const BurstPlan plan = plan_for(registry, size);
  auto repetition = [plan, place, size, write](Sample& s) {
    const Scratch scratch(place);
    const auto file = make_file(scratch, file_size(place));
    if (!file.ok()) {
      s.failure = file.status().message();
      return;
    }
    const Payload payload(size, 1);
    std::vector<std::byte> into(size);
    FirstFailure failure;
    const std::uint64_t end = file_size(place);
    std::uint64_t at = 0;
    measure(plan, s, [&](unsigned, std::uint64_t i) {
      if (write) {
        failure.check((*file)->write_at(at, payload.at(0, i)));
      } else {
        failure.check((*file)->read_at(at, into));
      }
      at = (at + size) % end;
    });
    failure.report(s);
  };
  const bool memory = place.directory.empty();
  std::string limit;
  if (memory) {
    limit = write ? limit_memcpy(registry, size) : limit_memcpy_from(registry, size);
  } else {
    limit = write ? limit_pwrite(registry, place, size) : limit_pread(registry, place, size);
  }
  registry.add(case_name(write ? "fs/write/" : "fs/read/", place.kind, "/", size, "/1t"), repetition, limit);
}

}  // namespace

void register_cases(Registry& registry) {
  for (const Place& place : places({"mem", "local"})) {
    for (const std::size_t size : {4096u, 65536u}) {
      add(registry, place, size, true);
      add(registry, place, size, false);
    }
  }
}

}  // namespace tier::bench
