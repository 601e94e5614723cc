#include "harness/limits.h"

#include <fcntl.h>
#include <isa-l/crc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "harness/measure.h"
#include "harness/payload.h"
#include "harness/raw_file.h"

namespace tier::bench {
namespace {

constexpr std::uint64_t kArea = 256u << 20;
constexpr std::uint64_t kFile = 64u << 20;
constexpr std::size_t kPage = 256u << 10;
constexpr std::size_t kSlack = 2u << 20;  // the largest record may start at the area's last byte

/// The 256 MiB area that memory limits copy into, mapped and touched once.
std::byte* area() {
  static std::byte* const bytes = [] {
    void* p = ::mmap(nullptr, kArea + kSlack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) std::abort();
    std::memset(p, 1, kArea + kSlack);
    return static_cast<std::byte*>(p);
  }();
  return bytes;
}

void clobber() noexcept { asm volatile("" ::: "memory"); }

BurstPlan memory_plan(const Registry& registry, std::size_t size, unsigned threads) {
  BurstPlan plan;
  plan.threads = threads;
  plan.calls_per_burst =
      std::clamp<std::uint64_t>((16u << 20) / std::max<std::size_t>(size, 64), 64, 200'000) / threads;
  plan.seconds = registry.effort().pick(0.15, 0.04);
  plan.bytes_per_call = size;
  return plan;
}

/// A page of checksummed records on its way to a file or to the area.
std::uint32_t crc_of(const std::byte* bytes, std::size_t n) {
  // ISA-L's interface takes a mutable pointer and does not write through it.
  auto* p = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes));
  return crc32_iscsi(p, static_cast<int>(n), 0);
}

std::string of_kind(const Place& place) { return place.kind == "local" ? std::string() : case_name("/", place.kind); }

std::string errno_text(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

std::shared_ptr<RawFile> raw(const Place& place, std::uint64_t size, Sample& s) {
  std::string why;
  auto file = RawFile::prepared(place_of_files(place).directory, size, why);
  if (file == nullptr) s.failure = why;
  return file;
}

}  // namespace

std::string limit_memcpy(Registry& registry, std::size_t size) {
  std::string name = case_name("limit/memcpy/", size);
  const BurstPlan plan = memory_plan(registry, size, 1);
  auto repetition = [plan, size](Sample& s) {
    std::byte* const to = area();
    const Payload payload(size, 1);
    std::uint64_t at = 0;
    measure(plan, s, [&](unsigned, std::uint64_t i) {
      std::memcpy(to + at, payload.at(0, i).data(), size);
      clobber();
      at = (at + size) % kArea;
    });
  };
  registry.add(name, repetition);
  return name;
}

std::string limit_memcpy_from(Registry& registry, std::size_t size) {
  std::string name = case_name("limit/memcpy-from/", size);
  const BurstPlan plan = memory_plan(registry, size, 1);
  auto repetition = [plan, size](Sample& s) {
    const std::byte* const from = area();
    std::vector<std::byte> to(size);
    std::uint64_t at = 0;
    measure(plan, s, [&](unsigned, std::uint64_t) {
      std::memcpy(to.data(), from + at, size);
      clobber();
      at = (at + size) % kArea;
    });
  };
  registry.add(name, repetition);
  return name;
}

std::string limit_claim_and_copy(Registry& registry, std::size_t size, unsigned threads) {
  std::string name = size == 0 ? case_name("limit/fetch_add") : case_name("limit/fetch_add+memcpy/", size);
  if (threads > 1) name = case_name(name, "/", threads, "t");
  const BurstPlan plan = memory_plan(registry, size, threads);
  auto repetition = [plan, size, threads](Sample& s) {
    std::byte* const to = area();
    const Payload payload(size, threads);
    alignas(64) std::atomic<std::uint64_t> tail{0};
    measure(plan, s, [&](unsigned thread, std::uint64_t i) {
      // relaxed: ranges are disjoint; nothing is published through the tail.
      const std::uint64_t at = tail.fetch_add(std::max<std::size_t>(size, 1), std::memory_order_relaxed);
      if (size != 0) std::memcpy(to + at % kArea, payload.at(thread, i).data(), size);
      clobber();
    });
  };
  registry.add(name, repetition);
  return name;
}

std::string limit_pages(Registry& registry, const Place& place, std::size_t size, std::uint64_t records) {
  const bool memory = place.kind == "mem";
  std::string name =
      memory ? case_name("limit/copy+crc+memcpy/", size) : case_name("limit/copy+crc+pwrite/", place.kind, "/", size);
  // The file holds all that a full run of the largest payload writes, so that no page is written twice before the sync.
  const std::uint64_t file_size = registry.effort().pick(std::uint64_t{1664} << 20, std::uint64_t{320} << 20);
  auto repetition = [place, memory, size, records, file_size](Sample& s) {
    std::shared_ptr<RawFile> file;
    if (!memory && (file = raw(place, file_size, s)) == nullptr) return;
    const Payload payload(size, 1);
    std::vector<std::byte> page(kPage + size + sizeof(std::uint32_t));
    std::uint64_t at = 0;
    std::size_t used = 16;
    bool failed = false;
    const auto put_page = [&] {
      const std::uint32_t crc = crc_of(page.data() + 16, used - 16);
      std::memcpy(page.data(), &crc, sizeof(crc));
      if (memory) {
        std::memcpy(area() + at, page.data(), used);
        at = (at + used) % (kArea - kPage);
      } else {
        failed |= ::pwrite(file->descriptor(), page.data(), used, static_cast<off_t>(at)) != static_cast<ssize_t>(used);
        at = (at + used) % (file_size - page.size());
      }
      used = 16;
    };
    static_cast<void>(area());
    const std::uint64_t start = StampClock::monotonic_ns();
    for (std::uint64_t i = 0; i < records; ++i) {
      const std::uint32_t length = static_cast<std::uint32_t>(size);
      std::memcpy(page.data() + used, &length, sizeof(length));
      std::memcpy(page.data() + used + sizeof(length), payload.at(0, i).data(), size);
      used += sizeof(length) + size;
      if (used >= kPage) put_page();
    }
    put_page();
    if (!memory) failed |= ::fdatasync(file->descriptor()) != 0;
    s.ns = static_cast<double>(StampClock::monotonic_ns() - start);
    s.ops = records;
    s.bytes = records * size;
    if (failed) s.failure = errno_text("pwrite");
  };
  registry.add(name, repetition);
  return name;
}

std::string limit_pwrite(Registry& registry, const Place& place, std::size_t size) {
  std::string name = case_name("limit/pwrite", of_kind(place), "/", size);
  BurstPlan plan = memory_plan(registry, std::max<std::size_t>(size, 1024), 1);
  auto repetition = [plan, place, size](Sample& s) {
    const auto file = raw(place, kFile, s);
    if (file == nullptr) return;
    const Payload payload(size, 1);
    std::uint64_t at = 0;
    bool failed = false;
    measure(plan, s, [&](unsigned, std::uint64_t i) {
      failed |= ::pwrite(file->descriptor(), payload.at(0, i).data(), size, static_cast<off_t>(at)) !=
                static_cast<ssize_t>(size);
      at = (at + size) % (kFile - size);
    });
    if (failed) s.failure = errno_text("pwrite");
  };
  registry.add(name, repetition);
  return name;
}

std::string limit_pread(Registry& registry, const Place& place, std::size_t size) {
  std::string name = case_name("limit/pread", of_kind(place), "/", size);
  BurstPlan plan = memory_plan(registry, std::max<std::size_t>(size, 1024), 1);
  auto repetition = [plan, place, size](Sample& s) {
    const auto file = raw(place, kFile, s);
    if (file == nullptr) return;
    std::vector<std::byte> into(size);
    std::uint64_t at = 0;
    bool failed = false;
    measure(plan, s, [&](unsigned, std::uint64_t) {
      failed |= ::pread(file->descriptor(), into.data(), size, static_cast<off_t>(at)) != static_cast<ssize_t>(size);
      at = (at + size) % (kFile - size);
    });
    if (failed) s.failure = errno_text("pread");
  };
  registry.add(name, repetition);
  return name;
}

std::string limit_durable_write(Registry& registry, const Place& place, std::size_t size) {
  std::string name = case_name("limit/pwrite+fdatasync", of_kind(place), "/", size);
  BurstPlan plan;
  plan.calls_per_burst = registry.effort().pick(std::uint64_t{500}, std::uint64_t{150});
  plan.calls_max = 4 * plan.calls_per_burst;
  plan.seconds = registry.effort().pick(2.0, 0.4);
  plan.bytes_per_call = size;
  auto repetition = [plan, place, size](Sample& s) {
    const auto file = raw(place, kFile, s);
    if (file == nullptr) return;
    const Payload payload(size, 1);
    std::uint64_t at = 0;
    bool failed = false;
    measure(plan, s, [&](unsigned, std::uint64_t i) {
      failed |= ::pwrite(file->descriptor(), payload.at(0, i).data(), size, static_cast<off_t>(at)) !=
                    static_cast<ssize_t>(size) ||
                ::fdatasync(file->descriptor()) != 0;
      at = (at + size) % (kFile - size);
    });
    if (failed) s.failure = errno_text("pwrite and fdatasync");
  };
  registry.add(name, repetition);
  return name;
}

std::string limit_replay(Registry& registry, const Place& place, std::size_t record, std::uint64_t records) {
  std::string name = case_name("limit/read+crc+walk", of_kind(place));
  struct State {
    std::shared_ptr<RawFile> file;
    std::uint64_t pages = 0;
    std::size_t in_page = 0;
  };
  auto state = std::make_shared<State>();
  // A page holds its checksum and whole frames of {length, record}.
  const std::size_t frame = record + sizeof(std::uint32_t);
  const auto prepare = [=](Sample& s) {
    state->in_page = (kPage - 16) / frame;
    state->pages = (records + state->in_page - 1) / state->in_page;
    state->file = raw(place, state->pages * kPage, s);
    if (state->file == nullptr) return;
    const Payload payload(record, 1);
    std::vector<std::byte> page(kPage);
    for (std::uint64_t p = 0; p < state->pages; ++p) {
      for (std::size_t i = 0; i < state->in_page; ++i) {
        const std::uint32_t length = static_cast<std::uint32_t>(record);
        std::memcpy(page.data() + 16 + i * frame, &length, sizeof(length));
        std::memcpy(page.data() + 16 + i * frame + sizeof(length), payload.at(0, i + p).data(), record);
      }
      const std::uint32_t crc = crc_of(page.data() + 16, kPage - 16);
      std::memcpy(page.data(), &crc, sizeof(crc));
      if (::pwrite(state->file->descriptor(), page.data(), kPage, static_cast<off_t>(p * kPage)) !=
          static_cast<ssize_t>(kPage)) {
        s.failure = errno_text("pwrite");
      }
    }
  };
  auto repetition = [=](Sample& s) {
    if (state->file == nullptr) prepare(s);
    if (!s.failure.empty()) return;
    std::vector<std::byte> page(kPage);
    std::uint64_t sum = 0;
    std::uint64_t walked = 0;
    const std::uint64_t start = StampClock::monotonic_ns();
    for (std::uint64_t p = 0; p < state->pages; ++p) {
      std::uint32_t crc = 0;
      if (::pread(state->file->descriptor(), page.data(), kPage, static_cast<off_t>(p * kPage)) !=
          static_cast<ssize_t>(kPage)) {
        s.failure = errno_text("pread");
        return;
      }
      std::memcpy(&crc, page.data(), sizeof(crc));
      if (crc_of(page.data() + 16, kPage - 16) != crc) s.failure = "the limit's own checksum is wrong";
      std::size_t at = 16;
      for (std::size_t i = 0; i < state->in_page; ++i, ++walked) {
        std::uint32_t length = 0;
        std::memcpy(&length, page.data() + at, sizeof(length));
        sum += length + static_cast<std::uint64_t>(page[at + sizeof(length)]);
        at += sizeof(length) + length;
      }
      clobber();
    }
    s.ns = static_cast<double>(StampClock::monotonic_ns() - start);
    s.ops = walked;
    s.bytes = walked * record;
    if (sum == 0) s.failure = "nothing was walked";
  };
  registry.add(name, repetition);
  return name;
}

}  // namespace tier::bench
