/// tier fs info: what a file system can do, what space it has, and how long its syncs take.
#include <array>
#include <vector>

#include <fmt/core.h>
#include <liburing.h>
#include <nlohmann/json.hpp>

#include "command.h"
#include "exit_codes.h"
#include "place.h"
#include "store.h"
#include "tier/histogram.h"
#include "units.h"

namespace tier::cli {
namespace {

struct InfoOptions {
  std::string url;
  bool measure = false;
  bool json = false;
};

struct Named {
  Capability bit;
  const char* name;
  const char* about;
};
constexpr std::array<Named, 10> kCapabilities = {{
    {Capability::kDurable, "durable", "contents outlive the process"},
    {Capability::kOverwrite, "overwrite", "bytes can be written again in place"},
    {Capability::kSparse, "sparse", "unwritten ranges cost no space"},
    {Capability::kPunch, "punch", "holes give space back"},
    {Capability::kAllocate, "allocate", "space can be reserved"},
    {Capability::kMapping, "mapping", "files can be used as memory"},
    {Capability::kDirectIo, "direct_io", "reads and writes can bypass the page cache"},
    {Capability::kAsync, "async", "operations can be left in flight"},
    {Capability::kAtomicRename, "atomic_rename", "a new file replaces an old one at once"},
    {Capability::kLocking, "locking", "an owner excludes others and dies with its process"},
}};

struct Measured {
  FileMode asked;
  FileMode mode;  // in force
  Histogram sync_ns;
};

/// Small writes to space that is already there, each made durable, as a log does it.
Result<Measured> measure(FileSystem& fs, const std::string& directory, FileMode mode) {
  constexpr std::uint64_t kPiece = 4096;
  constexpr std::uint64_t kWrites = 64;
  Clock& clock = *Runtime::system().clock;
  const std::string name = join(directory, fmt::format(".tier-measure-{:016x}", Runtime::system().random->next()));
  alignas(4096) std::array<std::byte, kPiece> piece{};
  OpenOptions make;
  make.write = true;
  make.create = Create::kExclusive;
  make.mode = mode;
  TIER_TRY(auto file, fs.open(name, make));
  Measured m{mode, file->mode(), {}};
  const auto work = [&]() -> Status {
    for (std::uint64_t i = 0; i < kWrites; ++i) TIER_CHECK(file->write_at(i * kPiece, piece));
    TIER_CHECK(file->sync(SyncKind::kAll));
    piece.fill(std::byte{1});
    for (std::uint64_t i = 0; i < kWrites; ++i) {
      const std::uint64_t start = clock.monotonic_ns();
      TIER_CHECK(file->write_at(i * kPiece, piece));
      TIER_CHECK(file->sync(SyncKind::kData));
      m.sync_ns.record(clock.monotonic_ns() - start);
    }
    return {};
  };
  const Status worked = work();
  file.reset();
  const Status removed = fs.remove(name);
  TIER_CHECK(worked);
  TIER_CHECK(removed);
  return m;
}

/// Whether this kernel lets this process use io_uring; containers often forbid it.
bool io_uring_works() {
  io_uring ring;
  if (io_uring_queue_init(2, &ring, 0) != 0) return false;
  io_uring_queue_exit(&ring);
  return true;
}

void print_text(const std::string& url, FileSystem& fs, const Result<SpaceInfo>& space,
                const std::vector<Measured>& times, bool measured) {
  fmt::print("{:<15}{}\n", "file system", url);
  for (const Named& c : kCapabilities) {
    fmt::print("{:<15}{:<4} {}\n", c.name, fs.capabilities().has(c.bit) ? "yes" : "no", c.about);
  }
  fmt::print("{:<15}{:<4} this kernel lets this process use it\n", "io_uring", io_uring_works() ? "yes" : "no");
  if (space.ok()) {
    fmt::print("{:<15}{} free of {}\n", "space", human_bytes(static_cast<double>(space->available)),
               human_bytes(static_cast<double>(space->capacity)));
  }
  if (!measured) fmt::print("{:<15}not measured; --measure writes a small temporary file\n", "sync latency");
  for (const Measured& m : times) {
    fmt::print("{:<15}p50 {}, p99 {}: 4 KiB written and synced, {}{}\n", "sync latency",
               human_duration(static_cast<double>(m.sync_ns.percentile(0.5))),
               human_duration(static_cast<double>(m.sync_ns.percentile(0.99))), file_mode_name(m.asked),
               m.mode == m.asked ? std::string() : fmt::format(" (answered by {})", file_mode_name(m.mode)));
  }
}

void print_json(const std::string& url, FileSystem& fs, const Result<SpaceInfo>& space,
                const std::vector<Measured>& times) {
  nlohmann::ordered_json json;
  json["url"] = url;
  for (const Named& c : kCapabilities) json["capabilities"][c.name] = fs.capabilities().has(c.bit);
  json["io_uring"] = io_uring_works();
  json["space"] = nullptr;
  if (space.ok()) json["space"] = {{"capacity", space->capacity}, {"available", space->available}};
  json["sync_latency"] = nlohmann::ordered_json::array();
  for (const Measured& m : times) {
    json["sync_latency"].push_back({{"asked_mode", file_mode_name(m.asked)},
                                    {"mode", file_mode_name(m.mode)},
                                    {"bytes", 4096},
                                    {"p50_ns", m.sync_ns.percentile(0.5)},
                                    {"p99_ns", m.sync_ns.percentile(0.99)}});
  }
  fmt::print("{}\n", json.dump(2));
}

int run(const InfoOptions& o) {
  auto place = open_place(o.url);
  if (!place.ok()) return report(place.status(), o.url);
  auto there = place->fs->stat(place->path);
  if (!there.ok()) return report(there.status(), o.url);
  if (!there->directory) place->path = place->path.substr(0, place->path.find_last_of('/') + 1);
  if (!place->path.empty() && place->path.back() == '/') place->path.pop_back();
  std::vector<Measured> times;
  if (o.measure) {
    for (const FileMode mode : {FileMode::kBuffered, FileMode::kDirect, FileMode::kDirectWriteThrough}) {
      auto m = measure(*place->fs, place->path, mode);
      if (!m.ok()) return report(m.status(), o.url);
      times.push_back(*m);
    }
  }
  const auto space = place->fs->space();
  if (o.json) {
    print_json(place->fs->url(), *place->fs, space, times);
  } else {
    print_text(place->fs->url(), *place->fs, space, times, o.measure);
  }
  return kExitOk;
}

}  // namespace

void add_fs_info(CLI::App& noun, Action& chosen) {
  auto o = std::make_shared<InfoOptions>();
  CLI::App* verb = add_verb(noun, chosen, "info", "Say what a file system can do and how long its syncs take", o, run);
  verb->add_option("URL", o->url, "A file system, URL#path, or a plain path")->required()->type_name("");
  verb->add_flag("--measure", o->measure, "Measure sync latency with a small temporary file, which is removed again");
  verb->add_flag("--json", o->json, "As one JSON object");
  verb->footer(
      "Writes nothing without --measure.\n\n"
      "Examples:\n"
      "  tier fs info local:///var/lib/app\n"
      "  tier fs info . --measure");
}

}  // namespace tier::cli
