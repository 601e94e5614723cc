/// Any bytes as the header area of a segment: decoding and opening never crash, and only a header of this store is taken.
///
/// The input is the header page and the two mark slots of segment 0 of a store with 512-byte segments, under a fixed good
/// manifest. Its checksums are also made right, so that mutations reach what lies behind them.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "engine/format.h"
#include "no_sleep.h"
#include "tier/crc32c.h"
#include "tier/engine.h"

namespace {

constexpr std::uint64_t kStore = 0x1122'3344'5566'7788u;
constexpr std::uint64_t kSegmentSize = 512;

void require(bool holds) {
  if (!holds) std::abort();
}

void decode(tier::ByteSpan bytes) {
  const auto identity = tier::decode_segment_header(bytes.first(std::min<std::size_t>(bytes.size(), tier::kHeaderPage)));
  if (identity.ok()) {
    const tier::HeaderPage again = tier::encode_segment_header(identity->store_id, identity->segment, identity->segment_size,
                                                               identity->epoch, identity->salt);
    require(std::equal(again.begin(), again.end(), bytes.begin()));
  }
  for (std::size_t at = tier::kHeaderPage; at < bytes.size(); at += tier::kHeaderPage) {
    const tier::ByteSpan page = bytes.subspan(at, std::min<std::size_t>(bytes.size() - at, tier::kHeaderPage));
    require(tier::decode_mark(page, kStore, 0).mark.address.value < tier::Address::kMax);
  }
}

void open(tier::ByteSpan bytes) {
  auto fs = tier::open_file_system("mem:");
  require(fs.ok());
  {
    tier::Manifest m;
    m.store_id = kStore;
    std::memcpy(m.kind.data(), "engine", 6);
    m.segment_size = kSegmentSize;
    m.epoch = 3;
    m.cut = 100;
    auto file = (*fs)->open("MANIFEST", {.write = true, .create = tier::Create::kExclusive});
    require(file.ok());
    for (m.generation = 1; m.generation <= 2; ++m.generation)
      require((*file)->write_at((m.generation & 1) * tier::kHeaderPage, tier::encode_manifest(m)).ok());
    auto segment = (*fs)->open(tier::segment_name(0), {.write = true, .create = tier::Create::kExclusive});
    require(segment.ok() && (*segment)->truncate(tier::kSegmentDataOffset + kSegmentSize).ok());
    require((*segment)->write_at(0, bytes.first(std::min<std::size_t>(bytes.size(), tier::kSegmentDataOffset))).ok());
  }
  for (const bool read_only : {true, false}) {
    tier::EngineOptions options;
    options.read_only = read_only;
    options.runtime = &tier::testing::no_sleep_runtime();
    auto engine = tier::Engine::open(*fs, "", options);
    if (!engine.ok()) continue;
    const tier::Tails t = (*engine)->tails();
    require(t.committed.value >= 100 && t.committed.value <= kSegmentSize);
    std::byte all[kSegmentSize];
    require((*engine)->read(tier::Address{0}, std::span(all).first(t.committed.value)).ok());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > tier::kSegmentDataOffset) return 0;
  std::vector<std::byte> bytes(size);
  if (size != 0) std::memcpy(bytes.data(), data, size);
  decode(bytes);
  open(bytes);
  if (bytes.size() >= tier::kHeaderPage) {
    const std::uint32_t crc = tier::crc32c(tier::ByteSpan(bytes).first(tier::kHeaderPage - 4));
    std::memcpy(bytes.data() + tier::kHeaderPage - 4, &crc, sizeof crc);
  }
  for (std::size_t at = tier::kHeaderPage; at + sizeof(tier::MarkSector) <= bytes.size(); at += tier::kMarkCopyStride) {
    constexpr std::size_t kCovered = sizeof(tier::MarkSector) - 4;
    const std::uint32_t crc = tier::crc32c(tier::ByteSpan(bytes).subspan(at, kCovered));
    std::memcpy(bytes.data() + at + kCovered, &crc, sizeof crc);
  }
  decode(bytes);
  open(bytes);
  return 0;
}
