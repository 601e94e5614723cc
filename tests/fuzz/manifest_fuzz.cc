/// Any bytes as the MANIFEST of a store: decoding and opening never crash, and what opens was written as it reads.
///
/// The input is the file. Its checksums are also made right, so that mutations reach what lies behind them.
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

void require(bool holds) {
  if (!holds) std::abort();
}

void decode(tier::ByteSpan bytes) {
  for (unsigned slot = 0; slot < 2; ++slot) {
    const std::size_t at = slot * tier::kHeaderPage;
    const tier::ByteSpan page = bytes.subspan(std::min(at, bytes.size()));
    const auto manifest = tier::decode_manifest(page.first(std::min<std::size_t>(page.size(), tier::kHeaderPage)), slot);
    if (!manifest.ok()) continue;
    // What is accepted is exactly what would be written for it.
    const tier::HeaderPage again = tier::encode_manifest(*manifest);
    require(std::equal(again.begin(), again.end(), page.begin()));
  }
}

void open(tier::ByteSpan bytes) {
  auto fs = tier::open_file_system("mem:");
  require(fs.ok());
  {
    auto file = (*fs)->open("MANIFEST", {.write = true, .create = tier::Create::kExclusive});
    require(file.ok() && (*file)->write_at(0, bytes).ok());
  }
  for (const bool read_only : {true, false}) {
    tier::EngineOptions options;
    options.read_only = read_only;
    options.runtime = &tier::testing::no_sleep_runtime();
    options.tail_policy = tier::TailPolicy::kCaller;
    const auto engine = tier::Engine::open(*fs, "", options);
    if (engine.ok()) require((*engine)->tails().begin <= (*engine)->tails().allocated);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4 * tier::kManifestBytes) return 0;
  std::vector<std::byte> bytes(size);
  if (size != 0) std::memcpy(bytes.data(), data, size);
  decode(bytes);
  open(bytes);
  for (std::size_t at = 0; at + tier::kHeaderPage <= bytes.size() && at < tier::kManifestBytes; at += tier::kHeaderPage) {
    const std::uint32_t crc = tier::crc32c(tier::ByteSpan(bytes).subspan(at, tier::kHeaderPage - 4));
    std::memcpy(bytes.data() + at + tier::kHeaderPage - 4, &crc, sizeof crc);
  }
  decode(bytes);
  open(bytes);
  return 0;
}
