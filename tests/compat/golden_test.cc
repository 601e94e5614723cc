/// The formats on disk stay what they are: today's code reads the bytes that version 1 wrote, and writes the same bytes from
/// the same inputs. Method: golden files in tests/compat/v1, one a structure; a store put together from them opens.
/// A change of format adds a folder, it never changes one. (TIER_WRITE_GOLDEN=1 writes files that are missing.)
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

#include "engine/format.h"
#include "log/format.h"
#include "log/hint.h"
#include "testing/sim_runtime.h"
#include "tier/log.h"

namespace tier {
namespace {

using log_format::BlockHeader;
using log_format::LogManifest;

constexpr std::uint64_t kStore = 0x1122'3344'5566'7788u;
constexpr std::uint64_t kSegment = 4096;
constexpr std::uint32_t kEpoch = 5;

std::string text_of(ByteSpan bytes) { return std::string(as_text(bytes)); }
template <class T>
std::string bytes_of(const T& structure) {
  return text_of({reinterpret_cast<const std::byte*>(&structure), sizeof structure});
}

/// The golden file, after comparing it with what the code writes now.
std::string golden(const std::string& name, const std::string& now) {
  const std::filesystem::path path = std::filesystem::path(TIER_TESTS_DIRECTORY) / "compat" / "v1" / name;
  if (std::getenv("TIER_WRITE_GOLDEN") != nullptr && !std::filesystem::exists(path)) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << now;
  }
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  EXPECT_TRUE(bytes == now) << path << ": the code now writes other bytes";
  return bytes;
}

Mark clean_mark() { return {Address{0}, 0, kEpoch}; }

std::string log_manifest() {
  LogManifest m{};
  m.version = 1;
  m.crc = crc32c({reinterpret_cast<const std::byte*>(&m) + 4, sizeof m - 4});
  return bytes_of(m);
}

Manifest manifest_of(std::uint64_t generation) {
  Manifest m;
  m.store_id = kStore;
  m.generation = generation;
  std::memcpy(m.kind.data(), "log", 3);
  m.segment_size = kSegment;
  m.epoch = kEpoch;
  m.clean = true;
  m.clean_mark = clean_mark();
  const std::string owner = log_manifest();
  m.owner_bytes = static_cast<std::uint32_t>(owner.size());
  std::memcpy(m.owner.data(), owner.data(), owner.size());
  return m;
}

std::string manifest_file() {
  return golden("manifest", text_of(encode_manifest(manifest_of(8))) + text_of(encode_manifest(manifest_of(9))));
}
std::string segment_header() {
  return golden("segment_header", text_of(encode_segment_header(kStore, 0, kSegment, kEpoch, 0xabcd)));
}
std::string mark_page() {
  return golden("mark", text_of(encode_mark(kStore, 0, {{Address{195}, 4, kEpoch}, 3})));
}

/// Four records: "first", an empty one, 70 times 'x', and a void one of 3 bytes.
std::string block(std::uint32_t epoch = kEpoch) {
  std::string payload;
  const auto frame = [&](std::string_view bytes, std::uint32_t flags) {
    const std::uint32_t word = static_cast<std::uint32_t>(bytes.size()) | flags;
    payload += bytes_of(word);
    payload += bytes;
  };
  frame("first", 0);
  frame("", 0);
  frame(std::string(70, 'x'), 0);
  frame(std::string(3, '\0'), log_format::kVoidBit);
  BlockHeader h{};
  h.magic = log_format::kBlockMagic;
  h.version = 1;
  h.kind = log_format::BlockKind::kRecords;
  h.epoch = epoch;
  h.store_id = kStore;
  h.count = 4;
  h.payload_bytes = static_cast<std::uint32_t>(payload.size());
  h.payload_crc = crc32c(as_bytes(payload));
  h.wall_ns = 1'700'000'000'000'000'000u;
  log_format::seal_header(h);
  return bytes_of(h) + payload;
}

TEST(Golden, ManifestSlots) {
  const std::string bytes = manifest_file();
  ASSERT_EQ(bytes.size(), kManifestBytes);
  for (unsigned slot = 0; slot < 2; ++slot) {
    const auto m = decode_manifest(as_bytes(std::string_view(bytes).substr(slot * kHeaderPage, kHeaderPage)), slot);
    ASSERT_TRUE(m.ok()) << m.status().message();
    EXPECT_EQ(m->store_id, kStore);
    EXPECT_EQ(m->generation, 8u + slot);
    EXPECT_EQ(m->kind_text(), "log");
    EXPECT_EQ(m->segment_size, kSegment);
    EXPECT_EQ(m->epoch, kEpoch);
    EXPECT_TRUE(m->clean);
    EXPECT_EQ(m->owner_bytes, sizeof(LogManifest));
  }
}

TEST(Golden, SegmentHeader) {
  const std::string bytes = segment_header();
  const auto header = decode_segment_header(as_bytes(bytes));
  ASSERT_TRUE(header.ok()) << header.status().message();
  EXPECT_EQ(header->store_id, kStore);
  EXPECT_EQ(header->segment, 0u);
  EXPECT_EQ(header->segment_size, kSegment);
  EXPECT_EQ(header->epoch, kEpoch);
  EXPECT_EQ(header->salt, 0xabcdu);
}

TEST(Golden, Mark) {
  const StoredMark mark = decode_mark(as_bytes(mark_page()), kStore, 0);
  EXPECT_EQ(mark.generation, 3u);
  EXPECT_EQ(mark.mark.address.value, 195u);
  EXPECT_EQ(mark.mark.value, 4u);
  EXPECT_EQ(mark.mark.epoch, kEpoch);
}

TEST(Golden, LogManifest) {
  const std::string bytes = golden("log_manifest", log_manifest());
  EXPECT_EQ(bytes.size(), sizeof(LogManifest));
}

TEST(Golden, Block) {
  const std::string bytes = golden("block", block());
  BlockHeader h;
  ASSERT_GE(bytes.size(), sizeof h);
  std::memcpy(&h, bytes.data(), sizeof h);
  EXPECT_EQ(log_format::check_header(h), nullptr);
  EXPECT_EQ(h.count, 4u);
}

TEST(Golden, HintPage) {
  auto fs = *open_file_system("mem:");
  auto writer = HintWriter::open(*fs, "");
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  ASSERT_NE(*writer, nullptr);
  HintPage page{};
  page.store_id = kStore;
  page.epoch = kEpoch;
  page.committed = 12;
  page.durable = 10;
  page.durable_end = 777;
  (*writer)->write(page);
  std::string now(sizeof page, '\0');
  auto file = fs->open("HINT", {.write = true});
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->read_exactly_at(0, {reinterpret_cast<std::byte*>(now.data()), now.size()}).ok());
  const std::string bytes = golden("hint", now);
  ASSERT_TRUE((*file)->write_at(0, as_bytes(bytes)).ok());
  const auto read = read_hint(*fs, "", kStore, kEpoch);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->committed, 12u);
  EXPECT_EQ(read->durable, 10u);
  EXPECT_EQ(read->durable_end, 777u);
  EXPECT_FALSE(read_hint(*fs, "", kStore, kEpoch + 1).has_value());
}

/// A store of the golden structures; with the block in it, or before it was written.
std::shared_ptr<FileSystem> store(bool with_block, Runtime& runtime) {
  auto fs = *open_file_system("mem:", {.runtime = &runtime});
  const auto put = [&](const char* name, const std::string& bytes) {
    auto file = *fs->open(name, {.write = true, .create = Create::kExclusive});
    EXPECT_TRUE(file->write_at(0, as_bytes(bytes)).ok());
  };
  put("MANIFEST", manifest_file());
  std::string segment = segment_header();
  segment.resize(kSegmentDataOffset + kSegment);
  if (with_block) {
    const std::string b = golden("block", block());
    segment.replace(kSegmentDataOffset, b.size(), b);
    const std::string page = mark_page();
    segment.replace(kHeaderPage, page.size(), page);
  }
  put("000000000000.seg", segment);
  return fs;
}

LogOptions options_of(Runtime& runtime) {
  LogOptions o;
  o.allow_small_segments = true;
  o.segment_size = Bytes{kSegment};
  o.ring_size = Bytes{4096};
  o.batch_bytes = Bytes{1024};
  o.max_record = Bytes{1024};
  o.create = Create::kNever;
  o.runtime = &runtime;
  return o;
}

TEST(Golden, AStoreOfVersionOneOpensReadsAndGoesOn) {
  testing::SimRuntime sim(1);
  sim.run([&] {
    auto log = Log::open(store(true, sim.runtime()), "", options_of(sim.runtime()));
    ASSERT_TRUE(log.ok()) << log.status().message();
    EXPECT_EQ((*log)->recovery().to.value, 4u);
    EXPECT_EQ((*log)->recovery().epoch, kEpoch + 1);
    std::string text;
    ASSERT_TRUE((*log)->read(Sequence{0}, text).ok());
    EXPECT_EQ(text, "first");
    ASSERT_TRUE((*log)->read(Sequence{1}, text).ok());
    EXPECT_EQ(text, "");
    ASSERT_TRUE((*log)->read(Sequence{2}, text).ok());
    EXPECT_EQ(text, std::string(70, 'x'));
    EXPECT_EQ((*log)->read(Sequence{3}, text).code(), Code::kVoid);
    const auto next = (*log)->append_durable(as_bytes("goes on"));
    ASSERT_TRUE(next.ok()) << next.status().message();
    EXPECT_EQ(next->value, 4u);
  });
}

TEST(Golden, TheLogWritesTheGoldenBlockFromTheSameRecords) {
  testing::SimRuntime sim(1);
  sim.run([&] {
    auto fs = store(false, sim.runtime());
    auto log = Log::open(fs, "", options_of(sim.runtime()));
    ASSERT_TRUE(log.ok()) << log.status().message();
    {
      auto first = (*log)->reserve(5);  // holds the block back until all four are there
      ASSERT_TRUE(first.ok());
      ASSERT_TRUE((*log)->append("").ok());
      ASSERT_TRUE((*log)->append(std::string(70, 'x')).ok());
      { auto abandoned = (*log)->reserve(3); }
      std::memcpy(first->bytes().data(), "first", 5);
      first->publish();
    }
    ASSERT_TRUE((*log)->flush().ok());
    const std::string expected = block(kEpoch + 1);
    std::string written(expected.size(), '\0');
    ASSERT_TRUE((*log)->engine().read(Address{0}, {reinterpret_cast<std::byte*>(written.data()), written.size()}).ok());
    BlockHeader h;
    std::memcpy(&h, written.data(), sizeof h);
    h.wall_ns = 1'700'000'000'000'000'000u;  // the one input that no test can hold still
    log_format::seal_header(h);
    written.replace(0, sizeof h, bytes_of(h));
    EXPECT_TRUE(written == expected);
  });
}

}  // namespace
}  // namespace tier
