/// Any bytes as the data of a log's segments: open, scan, read and verify end in the records or in an error, never in a
/// crash, a hang or a record that overruns its block.
///
/// Input: one byte says how much of the checksums is made right before the log is opened, so that the fuzzer gets past them;
/// the rest is the data area of the first segments.
///   bit 0  headers: store, address and version are put in and the header checksum is made right
///   bit 1  payload checksums, too, where the length allows
///   bit 2  predecessor and sequence are made to continue the block before
///   bit 3  opened for writing (recovery cuts the tail), else read-only
///   bit 4  the file system cannot map: reads are copies
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "engine/format.h"
#include "log/format.h"
#include "testing/fault_fs.h"
#include "testing/sim_runtime.h"
#include "tier/log.h"

namespace {

using namespace tier;
using log_format::BlockHeader;

constexpr std::uint64_t kSegment = 4096;
constexpr std::size_t kSegments = 3;

void require(bool condition) {
  if (!condition) std::abort();
}

/// The store that every input goes into: a log of three segments, made once, under the simulator: no thread is started.
struct Template {
  std::uint64_t store_id = 0;
  std::uint32_t epoch = 0;
  std::vector<std::pair<std::string, std::string>> files;
};

LogOptions options_of(Runtime& runtime) {
  LogOptions o;
  o.allow_small_segments = true;
  o.segment_size = Bytes{kSegment};
  o.ring_size = Bytes{4096};
  o.batch_bytes = Bytes{1024};
  o.max_record = Bytes{1024};
  o.runtime = &runtime;
  return o;
}

const Template& sound() {
  static const Template made = [] {
    Template t;
    testing::SimRuntime sim(1);
    sim.run([&] {
      auto fs = *open_file_system("mem:", {.runtime = &sim.runtime()});
      auto log = *Log::open(fs, "", options_of(sim.runtime()));
      t.store_id = log->engine().store_id();
      t.epoch = log->engine().epoch();
      const std::string record(900, 'r');
      for (int i = 0; i < 9; ++i) require(log->append_durable(as_bytes(record)).ok());
      const auto entries = fs->list("");
      for (const DirectoryEntry& e : *entries) {
        auto file = *fs->open(e.name, {});
        std::string bytes(file->size().value_or(0), '\0');
        require(file->read_exactly_at(0, {reinterpret_cast<std::byte*>(bytes.data()), bytes.size()}).ok());
        if (e.name.ends_with(".seg")) std::fill(bytes.begin() + kHeaderPage, bytes.end(), '\0');  // no marks, no blocks
        t.files.emplace_back(e.name, std::move(bytes));
      }
    });
    return t;
  }();
  return made;
}

void make_right(std::string& data, unsigned mode, const Template& store) {
  std::uint64_t predecessor = 0, sequence = 0;
  for (std::size_t at = 0; at + sizeof(BlockHeader) <= data.size(); at += log_format::kBlockAlign) {
    BlockHeader h;
    std::memcpy(&h, data.data() + at, sizeof h);
    if (h.magic != log_format::kBlockMagic) continue;
    h.version = std::min<std::uint16_t>(h.version, log_format::kVersion);
    h.kind = log_format::BlockKind::kRecords;
    h.codec = 0;
    h.store_id = store.store_id;
    h.address = at;
    h.epoch = std::min(h.epoch, store.epoch);
    h.reserved[0] = h.reserved[1] = 0;
    const std::size_t room = std::min(data.size(), at / kSegment * kSegment + kSegment) - at - sizeof h;
    if ((mode & 4) != 0) {
      h.predecessor = predecessor;
      h.predecessor_crc = 0;
      h.first_sequence = sequence;
      h.payload_bytes = std::min<std::uint32_t>(h.payload_bytes, static_cast<std::uint32_t>(room));
      predecessor = at + sizeof h + h.payload_bytes;
      sequence += h.count;
    }
    if ((mode & 2) != 0 && h.payload_bytes <= room)
      h.payload_crc = crc32c({reinterpret_cast<const std::byte*>(data.data()) + at + sizeof h, h.payload_bytes});
    log_format::seal_header(h);
    std::memcpy(data.data() + at, &h, sizeof h);
  }
}

void read_everything(Log& log) {
  const LogCursors c = log.cursors();
  require(c.first <= c.durable && c.durable <= c.committed && c.committed <= c.claimed);
  std::uint64_t records = 0;
  if (auto cursor = log.scan(c.first); cursor.ok()) {
    for (std::uint64_t last = 0;; ++records) {
      auto record = (*cursor)->next();
      if (!record.ok() || !*record) break;
      require((*record)->sequence.value >= last && (*record)->sequence < c.committed);
      require((*record)->bytes.size() < kSegment);
      last = (*record)->sequence.value + 1;
      std::uint32_t sum = 0;
      for (const std::byte b : (*record)->bytes) sum += static_cast<std::uint32_t>(b);  // every byte is there to be read
      if (sum == 0xffff'ffffu) std::abort();
    }
  }
  require(records <= kSegments * kSegment / 4);
  std::string text;
  for (const std::uint64_t s : {c.first.value, c.durable.value / 2, c.durable.value - 1, c.durable.value})
    static_cast<void>(log.read(Sequence{s}, text));
  const auto verified = log.verify(nullptr, nullptr);
  if (!verified.ok()) return;
  require(verified->blocks <= kSegments * kSegment / log_format::kBlockAlign);
  // A cursor gives the records of a block whose checksum is good until one does not fit; verify() rejects the whole block.
  if (verified->damages == 0) require(verified->records >= records);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
  if (size == 0) return 0;
  const unsigned mode = input[0];
  std::string data(reinterpret_cast<const char*>(input) + 1, std::min<std::size_t>(size - 1, kSegments * kSegment));
  if (data.size() >= sizeof(BlockHeader)) {
    BlockHeader h;
    std::memcpy(&h, data.data(), sizeof h);
    if (log_format::check_header(h) == nullptr) require(h.count > 0 && h.payload_bytes >= std::uint64_t{h.count} * 4);
  }
  const Template& store = sound();
  if ((mode & 1) != 0) make_right(data, mode, store);

  testing::SimRuntime sim(2);
  sim.run([&] {
    std::shared_ptr<FileSystem> fs = *open_file_system("mem:", {.runtime = &sim.runtime()});
    std::size_t segment = 0;
    for (const auto& [name, sound_bytes] : store.files) {
      std::string bytes = sound_bytes;
      if (name.ends_with(".seg")) {
        const std::size_t from = std::min(data.size(), segment++ * kSegment);
        const std::size_t n = std::min<std::size_t>(data.size() - from, kSegment);
        bytes.replace(kSegmentDataOffset, n, data, from, n);
      }
      auto file = *fs->open(name, {.write = true, .create = Create::kIfMissing});
      require(file->write_at(0, as_bytes(bytes)).ok());
    }
    if ((mode & 16) != 0) {
      auto copies = testing::FaultFs::make(fs);
      copies->hide(Capability::kMapping);
      fs = copies;
    }
    LogOptions options = options_of(sim.runtime());
    options.create = Create::kNever;
    options.read_only = (mode & 8) == 0;
    auto log = Log::open(fs, "", options);
    if (!log.ok()) {
      require(*log.status().text() != '\0');
      return;
    }
    read_everything(**log);
    if (options.read_only) return;
    const auto appended = (*log)->append_durable(as_bytes("works on"));
    if (!appended.ok()) return;
    std::string text;
    require((*log)->read(*appended, text).ok() && text == "works on");
  });
  return 0;
}
