/// Damage: a store whose bytes are not what was written gives the right records or a typed error, never a wrong record and
/// never a silent gap (L2, L5); a refused open leaves it as it is; verify() names the place.
/// Method: stores of a few small segments, built under the simulator's virtual time (so that no background mark comes in
/// between), captured as images; each image is damaged in one way, opened, read and compared.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "engine/format.h"
#include "log/format.h"
#include "log/log_fixture.h"
#include "testing/fault_fs.h"
#include "testing/sim_runtime.h"

namespace tier {
namespace {

using namespace testing;
using log_format::BlockHeader;

constexpr std::uint64_t kSegment = 4096;

struct Store {
  Image image;
  std::vector<std::string> records;
};

/// `n` synced records, each a block of its own, now and then a batch; stopped dead (or closed).
Store build(std::size_t n, bool closed, std::size_t size = 300, std::uint64_t seed = 1) {
  Store store;
  SimRuntime sim(seed);
  sim.run([&] {
    auto fs = open_fs("mem:", {.runtime = &sim.runtime()});
    LogOptions options = small_log(Durability::kSync, kSegment);
    options.runtime = &sim.runtime();
    auto log = open_log(fs, options);
    // A mark now and then says that all is durable: a store that stops has none at its very end.
    const auto marked = [&] {
      const auto mark = log->engine().mark_in(log->engine().tails().committed);
      return mark.ok() && mark->value == store.records.size();
    };
    while (store.records.size() < n || (!closed && marked())) {
      const std::size_t i = store.records.size();
      if (i % 5 == 3 && i + 2 <= n) {
        store.records.push_back(record_of(i, size / 2));
        store.records.push_back(record_of(i + 1, size / 3));
        const ByteSpan batch[] = {as_bytes(store.records[i]), as_bytes(store.records[i + 1])};
        EXPECT_OK(log->append_batch(batch));
      } else {
        store.records.push_back(record_of(i, size + i % 7));
        EXPECT_OK(log->append(store.records[i]));
      }
    }
    if (closed) {
      EXPECT_EQ(log->close().outcome, CloseOutcome::kClean);
    }
    store.image = capture(*fs);
  });
  return store;
}

/// A block of the image, found by its header.
struct Found {
  std::string file;
  std::size_t offset = 0;  // of the header in the file
  BlockHeader header{};
  std::size_t end() const { return offset + sizeof header + header.payload_bytes; }
};

std::vector<Found> blocks_of(const Image& image) {
  std::vector<Found> found;
  for (const auto& [name, bytes] : image) {
    if (!name.ends_with(".seg")) continue;
    for (std::size_t at = kSegmentDataOffset; at + sizeof(BlockHeader) <= bytes.size(); at += log_format::kBlockAlign) {
      Found f{name, at, {}};
      std::memcpy(&f.header, bytes.data() + at, sizeof f.header);
      if (log_format::check_header(f.header) == nullptr) found.push_back(f);
    }
  }
  return found;
}

void put_header(Image& image, const Found& block, const std::function<void(BlockHeader&)>& change, bool seal = true) {
  BlockHeader h = block.header;
  change(h);
  if (seal) log_format::seal_header(h);
  std::memcpy(image[block.file].data() + block.offset, &h, sizeof h);
}

/// What reading found: every record is right and in its place, whatever the end.
Code read_prefix(Log& log, const std::vector<std::string>& records, std::size_t* count = nullptr) {
  const ReadBack all = read_all(log);
  for (std::size_t i = 0; i < all.records.size(); ++i) {
    EXPECT_EQ(all.records[i].first, i) << "a gap";
    if (i >= records.size() || all.records[i].second != records[i]) {
      ADD_FAILURE() << "record " << i << " was never appended like that";
      return Code::kOk;
    }
  }
  if (count != nullptr) *count = all.records.size();
  return all.status.code();
}

bool is_typed(Code code) {
  return code == Code::kCorruption || code == Code::kUnsupported || code == Code::kNotFound || code == Code::kInvalid;
}

Image without_lock(Image image) {
  image.erase("LOCK");
  return image;
}

/// Opens for writing. At least `least` records, all right, or an error; a refusal changes nothing. True if it opened.
bool expect_right_or_refused(const Image& image, const std::vector<std::string>& records, std::size_t least,
                             const std::string& what) {
  auto fs = restore(image);
  auto log = Log::open(fs, "log", small_log(Durability::kSync, kSegment));
  if (!log.ok()) {
    EXPECT_TRUE(is_typed(log.code())) << what << ": " << log.status().message();
    EXPECT_FALSE(log.status().place().empty()) << what << ": " << log.status().message();
    EXPECT_TRUE(without_lock(capture(*fs)) == without_lock(image)) << what << ": a refused open changed the store";
    return false;
  }
  std::size_t count = 0;
  const Code ended = read_prefix(**log, records, &count);
  EXPECT_TRUE(ended == Code::kOk || ended == Code::kCorruption) << what << ": " << code_name(ended);
  if (ended == Code::kOk) {
    EXPECT_GE(count, least) << what << ": records that were acknowledged are missing without a word";
    EXPECT_EQ((*log)->recovery().to.value, count) << what;
  }
  return true;
}

TEST(TornTail, TheLastBlockCutAtEveryByteIsCutAndReportedAndThePrefixIsRecovered) {
  const Store store = build(16, false);
  const std::vector<Found> blocks = blocks_of(store.image);
  ASSERT_GE(blocks.size(), 10u);
  const Found last = *std::max_element(blocks.begin(), blocks.end(), [](const Found& a, const Found& b) {
    return a.header.first_sequence < b.header.first_sequence;
  });
  ASSERT_EQ(last.header.first_sequence + last.header.count, store.records.size());
  const std::vector<std::string> kept(store.records.begin(),
                                      store.records.begin() + static_cast<std::ptrdiff_t>(last.header.first_sequence));
  for (std::size_t cut = last.offset; cut < last.end(); ++cut) {
    Image image = store.image;
    std::string& bytes = image[last.file];
    if (std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(cut),
                    bytes.begin() + static_cast<std::ptrdiff_t>(last.end()), [](char c) { return c == 0; }))
      continue;  // nothing is missing
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(cut), bytes.begin() + static_cast<std::ptrdiff_t>(last.end()), '\0');
    auto fs = restore(image);
    auto log = open_log(fs, small_log(Durability::kSync, kSegment));
    ASSERT_NE(log, nullptr) << "cut at " << cut - last.offset;
    const LogRecovery recovery = log->recovery();
    EXPECT_FALSE(recovery.clean);
    ASSERT_EQ(recovery.to.value, kept.size());
    if (cut > last.offset + 8) {
      EXPECT_GT(recovery.cut_bytes, 0u) << "cut at " << cut - last.offset;
    }
    if (cut >= last.offset + sizeof(BlockHeader)) {
      EXPECT_EQ(recovery.cut_records, last.header.count);
    }
    expect_records(*log, kept);
    // The sequence is used again, and what was cut never comes back.
    auto next = log->append("instead");
    ASSERT_OK(next);
    ASSERT_EQ(next->value, kept.size());
    log.reset();
    if (cut % 16 != 0) continue;
    log = open_log(fs, small_log(Durability::kSync, kSegment));
    ASSERT_NE(log, nullptr);
    std::vector<std::string> expected = kept;
    expected.emplace_back("instead");
    expect_records(*log, expected);
  }
}

TEST(TornTail, AReaderSeesThePrefixAndChangesNothing) {
  const Store store = build(16, false);
  const std::vector<Found> blocks = blocks_of(store.image);
  const Found& last = blocks.back();
  for (std::size_t cut = last.offset + 1; cut < last.end(); cut += 13) {
    Image image = store.image;
    std::string& bytes = image[last.file];
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(cut), bytes.begin() + static_cast<std::ptrdiff_t>(last.end()), '\0');
    auto fs = restore(image);
    auto log = open_log(fs, read_only());
    ASSERT_NE(log, nullptr);
    std::size_t count = 0;
    ASSERT_EQ(read_prefix(*log, store.records, &count), Code::kOk);
    EXPECT_EQ(count, last.header.first_sequence);
    log.reset();
    EXPECT_TRUE(capture(*fs) == image);
  }
}

TEST(Damage, AnyBitFlippedInAClosedStoreIsHarmlessOrCorruption) {
  const Store store = build(24, true);
  auto fs = restore(store.image);
  std::uint64_t refused = 0, located = 0, harmless = 0;
  for (const auto& [name, bytes] : store.image) {
    if (bytes.empty()) continue;
    auto file = fs->open("log/" + name, {.write = true});
    ASSERT_OK(file);
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      // Every byte of every structure and record; of the zeros in the reserved parts every 29th.
      if (bytes[at] == 0 && at % 29 != 0) continue;
      const std::string what = name + " at " + std::to_string(at);
      const char flipped = static_cast<char>(bytes[at] ^ (1 << (at * 5 % 8)));
      ASSERT_OK((*file)->write_at(at, as_bytes({&flipped, 1})));
      auto log = Log::open(fs, "log", read_only());
      if (!log.ok()) {
        EXPECT_EQ(log.code(), Code::kCorruption) << what << ": " << log.status().message();
        EXPECT_FALSE(log.status().place().empty()) << what;
        ++refused;
      } else {
        std::size_t count = 0;
        const Code ended = read_prefix(**log, store.records, &count);
        if (ended == Code::kOk) {
          EXPECT_EQ(count, store.records.size()) << what << ": records are missing without a word";
          ++harmless;
        } else {
          EXPECT_EQ(ended, Code::kCorruption) << what;
          ++located;
        }
        std::vector<LogDamage> damages;
        auto verified = (*log)->verify(
            [](void* context, const LogDamage& d) { static_cast<std::vector<LogDamage>*>(context)->push_back(d); }, &damages);
        ASSERT_OK(verified);
        EXPECT_EQ(verified->damages, damages.size());
        ASSERT_EQ(verified->damages, ended == Code::kOk ? 0u : 1u) << what;
        if (ended != Code::kOk) {
          // It names the place: the range holds the byte, or the text the file whose header cannot be believed.
          const LogDamage& d = damages.front();
          const std::uint64_t address = std::stoull(name, nullptr, 16) * kSegment + at - kSegmentDataOffset;
          if (at >= kSegmentDataOffset) {
            EXPECT_TRUE(d.offset <= address && address < d.offset + d.length) << what << ": " << d.offset << '+' << d.length;
          } else {
            EXPECT_NE((d.file + d.what).find(name), std::string::npos) << what << ": " << d.file << ' ' << d.what;
          }
        }
        EXPECT_LE(verified->records, store.records.size());
        if (ended != Code::kOk) {
          EXPECT_GE(verified->records + 12, store.records.size()) << what << ": it reads on";
        }
      }
      log = Status(Code::kClosing, "");
      ASSERT_OK((*file)->write_at(at, as_bytes({&bytes[at], 1})));
      if (::testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(refused, 0u);
  EXPECT_GT(located, 0u);
  EXPECT_GT(harmless, 0u);
}

TEST(Damage, AnyBitFlippedInAStoppedStoreLosesNothingSilently) {
  const Store store = build(18, false);
  // Only the last block is not known to be durable: everything below its mark must be there, or an error.
  std::uint64_t mark = 0;
  const std::vector<Found> blocks = blocks_of(store.image);
  for (const Found& b : blocks) mark = std::max(mark, b.header.durable_mark);
  ASSERT_GT(mark, 10u);
  std::uint64_t opened = 0, refused = 0;
  for (const auto& [name, bytes] : store.image) {
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      if (bytes[at] == 0 ? at % 509 != 0 : at % 5 != 0) continue;
      Image image = store.image;
      image[name][at] = static_cast<char>(bytes[at] ^ (1 << (at * 3 % 8)));
      // A flip in the last block itself may be a torn write: then the log ends before it.
      if (expect_right_or_refused(image, store.records, mark, name + " at " + std::to_string(at))) ++opened;
      else ++refused;
      if (::testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(opened, 0u);
  EXPECT_GT(refused, 0u);
}

TEST(Damage, ZeroedStaleAndSwappedSectorsLoseNothingSilently) {
  const Store store = build(24, true);
  const Store older = build(10, true);  // another store: same places, other bytes
  std::vector<std::pair<std::string, std::size_t>> sectors;
  for (const auto& [name, bytes] : store.image)
    for (std::size_t at = 0; at + 512 <= bytes.size(); at += 512)
      if (bytes.substr(at, 512) != std::string(512, '\0')) sectors.emplace_back(name, at);
  ASSERT_GT(sectors.size(), 20u);
  for (std::size_t i = 0; i < sectors.size(); ++i) {
    const auto& [name, at] = sectors[i];
    const std::string what = name + " sector at " + std::to_string(at);
    Image zeroed = store.image;
    zeroed[name].replace(at, 512, std::string(512, '\0'));
    expect_right_or_refused(zeroed, store.records, store.records.size(), what + " zeroed");
    const auto& [other_name, other_at] = sectors[(i + 3) % sectors.size()];
    Image swapped = store.image;
    swapped[name].replace(at, 512, store.image.at(other_name), other_at, 512);
    swapped[other_name].replace(other_at, 512, store.image.at(name), at, 512);
    expect_right_or_refused(swapped, store.records, store.records.size(), what + " swapped");
    if (const auto old = older.image.find(name); old != older.image.end() && at + 512 <= old->second.size()) {
      Image foreign = store.image;
      foreign[name].replace(at, 512, old->second, at, 512);
      expect_right_or_refused(foreign, store.records, store.records.size(), what + " of another store");
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Damage, AMissingOrShortenedOrSwappedSegmentIsRefused) {
  const Store store = build(24, true);
  std::vector<std::string> segments;
  for (const auto& [name, bytes] : store.image)
    if (name.ends_with(".seg")) segments.push_back(name);
  ASSERT_GE(segments.size(), 3u);
  std::uint64_t least_refused = 0;
  for (std::size_t i = 0; i + 1 < segments.size(); ++i) {  // the last may be one that was only prepared
    Image missing = store.image;
    missing.erase(segments[i]);
    least_refused += !expect_right_or_refused(missing, store.records, store.records.size(), segments[i] + " missing");
    for (const std::size_t size : {std::size_t{0}, std::size_t{4096}, kSegmentDataOffset + 1, kSegmentDataOffset + kSegment - 1}) {
      Image shortened = store.image;
      shortened[segments[i]].resize(size);
      expect_right_or_refused(shortened, store.records, store.records.size(), segments[i] + " of " + std::to_string(size));
    }
    Image swapped = store.image;
    std::swap(swapped[segments[i]], swapped[segments[i + 1]]);
    expect_right_or_refused(swapped, store.records, store.records.size(), segments[i] + " swapped");
  }
  EXPECT_EQ(least_refused, segments.size() - 1);
}

TEST(Damage, BelowTheDurableMarkIsCorruptionThatNamesFileAndSequence) {
  const Store store = build(18, false);
  const std::vector<Found> blocks = blocks_of(store.image);
  const Found& victim = blocks[blocks.size() - 3];  // later blocks say that it was durable
  Image image = store.image;
  image[victim.file][victim.offset + sizeof(BlockHeader) + 5] ^= 1;
  auto fs = restore(image);
  const auto log = Log::open(fs, "log", small_log(Durability::kSync, kSegment));
  if (log.ok()) {  // a mark above it let recovery start there: then reading finds it
    std::string text;
    const Status s = (*log)->read(Sequence{victim.header.first_sequence}, text);
    EXPECT_CODE(kCorruption, s);
    EXPECT_NE(s.place().find(victim.file), std::string::npos) << s.message();
    EXPECT_NE(s.place().find("sequence " + std::to_string(victim.header.first_sequence)), std::string::npos) << s.message();
    return;
  }
  EXPECT_CODE(kCorruption, log);
  EXPECT_NE(log.status().place().find(victim.file), std::string::npos) << log.status().message();
  EXPECT_NE(log.status().place().find("sequence " + std::to_string(victim.header.first_sequence)), std::string::npos)
      << log.status().message();
  EXPECT_TRUE(without_lock(capture(*fs)) == without_lock(image));
}

TEST(Damage, ValidBlocksOfAnEarlierLifeAreNeverTakenUpAgain) {
  // Life 1 leaves a tail that life 2 cuts; life 2 writes something shorter. Then the old bytes come back above its end.
  const Store first = build(16, false);
  const std::vector<Found> blocks = blocks_of(first.image);
  const Found& last = blocks.back();
  Image torn = first.image;
  torn[last.file][last.end() - 1] ^= 1;
  auto fs = restore(torn);
  std::vector<std::string> records(first.records.begin(),
                                   first.records.begin() + static_cast<std::ptrdiff_t>(last.header.first_sequence));
  {
    auto log = open_log(fs, small_log(Durability::kSync, kSegment));
    ASSERT_NE(log, nullptr);
    ASSERT_EQ(log->recovery().to.value, records.size());
    records.emplace_back("new");
    ASSERT_OK(log->append("new"));
    EXPECT_EQ(log->close().outcome, CloseOutcome::kClean);
  }
  const Image second = capture(*fs);
  const std::vector<Found> now = blocks_of(second);
  const Found& end = now.back();
  ASSERT_EQ(end.header.first_sequence + end.header.count, records.size());
  for (const Found& old : blocks) {
    Image image = second;
    if (old.file != end.file || old.end() <= end.end()) continue;
    image[old.file].replace(old.offset, old.end() - old.offset, first.image.at(old.file), old.offset, old.end() - old.offset);
    expect_right_or_refused(image, records, records.size() - 1, "old block at " + std::to_string(old.offset));
  }
  // The same block behind the new end, its address, predecessor and sequence made to fit: only its epoch gives it away.
  const std::size_t place = align_up(end.end(), log_format::kBlockAlign);
  ASSERT_LE(place + sizeof(BlockHeader) + last.header.payload_bytes, second.at(end.file).size());
  Image forged = second;
  BlockHeader h = last.header;
  h.address = end.header.address + (place - end.offset);
  h.predecessor = end.header.address + (end.end() - end.offset);
  h.predecessor_crc = end.header.header_crc;
  h.first_sequence = records.size();
  h.durable_mark = records.size() - 1;
  log_format::seal_header(h);
  std::memcpy(forged[end.file].data() + place, &h, sizeof h);
  forged[end.file].replace(place + sizeof h, h.payload_bytes, first.image.at(last.file), last.offset + sizeof h, h.payload_bytes);
  expect_right_or_refused(forged, records, records.size() - 1, "a block of a lower epoch");
}

TEST(Damage, BadHeaderFieldsUnderAGoodChecksumAreNeverBelieved) {
  const Store store = build(20, true);
  const std::vector<Found> blocks = blocks_of(store.image);
  struct Change {
    const char* what;
    std::function<void(BlockHeader&)> apply;
  };
  const Change changes[] = {
      {"sequence up", [](BlockHeader& h) { ++h.first_sequence; }},
      {"sequence down", [](BlockHeader& h) { --h.first_sequence; }},
      {"sequence huge", [](BlockHeader& h) { h.first_sequence = ~std::uint64_t{0}; }},
      {"count up", [](BlockHeader& h) { ++h.count; }},
      {"count huge", [](BlockHeader& h) { h.count = ~0u; }},
      {"count zero", [](BlockHeader& h) { h.count = 0; }},
      {"length down", [](BlockHeader& h) { --h.payload_bytes; }},
      {"length up", [](BlockHeader& h) { ++h.payload_bytes; }},
      {"length zero", [](BlockHeader& h) { h.payload_bytes = 0; }},
      {"length huge", [](BlockHeader& h) { h.payload_bytes = ~0u; }},
      {"predecessor up", [](BlockHeader& h) { h.predecessor += 64; }},
      {"predecessor huge", [](BlockHeader& h) { h.predecessor = ~std::uint64_t{0}; }},
      {"predecessor zero", [](BlockHeader& h) { h.predecessor = h.predecessor == 0 ? 1 : 0; }},
      {"predecessor's checksum", [](BlockHeader& h) { h.predecessor_crc ^= 1, h.predecessor_crc += h.predecessor_crc == 0; }},
      {"address", [](BlockHeader& h) { h.address += 64; }},
      {"store", [](BlockHeader& h) { ++h.store_id; }},
      {"epoch zero", [](BlockHeader& h) { h.epoch = 0; }},
      {"mark huge", [](BlockHeader& h) { h.durable_mark = ~std::uint64_t{0}; }},
      {"codec", [](BlockHeader& h) { h.codec = 1; }},
      {"kind", [](BlockHeader& h) { h.kind = static_cast<log_format::BlockKind>(2); }},
      {"reserved", [](BlockHeader& h) { h.reserved[1] = 1; }},
  };
  for (std::size_t b = 0; b < blocks.size(); b += 3) {
    for (const Change& c : changes) {
      if (blocks[b].header.first_sequence == 0 &&
          (std::string(c.what) == "predecessor's checksum" || std::string(c.what) == "epoch zero"))
        continue;  // the first has none
      Image image = store.image;
      put_header(image, blocks[b], c.apply);
      const std::string what = std::string(c.what) + " of block " + std::to_string(b);
      auto fs = restore(image);
      auto log = Log::open(fs, "log", read_only());
      if (!log.ok()) {
        EXPECT_TRUE(is_typed(log.code())) << what << ": " << log.status().message();
        continue;
      }
      std::size_t count = 0;
      const Code ended = read_prefix(**log, store.records, &count);
      if (ended == Code::kOk) {
        EXPECT_EQ(count, store.records.size()) << what;
      } else {
        EXPECT_EQ(ended, Code::kCorruption) << what;
      }
      EXPECT_OK((*log)->verify(nullptr, nullptr));
      log = Status(Code::kClosing, "");
      expect_right_or_refused(image, store.records, store.records.size(), what);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(Damage, RecordLengthsThatLieUnderAGoodChecksumAreCorruption) {
  const Store store = build(12, true);
  const std::vector<Found> blocks = blocks_of(store.image);
  for (const std::uint32_t length : {0u, 1u, 299u, 301u, 0x7fff'ffffu, 0xffff'ffffu, 0x8000'0000u}) {
    const Found& victim = blocks[4];
    Image image = store.image;
    std::string& bytes = image[victim.file];
    std::memcpy(bytes.data() + victim.offset + sizeof(BlockHeader), &length, sizeof length);
    put_header(image, victim, [&](BlockHeader& h) {
      h.payload_crc = crc32c(as_bytes(std::string_view(bytes).substr(victim.offset + sizeof h, h.payload_bytes)));
    });
    auto fs = restore(image);
    auto log = open_log(fs, read_only());
    ASSERT_NE(log, nullptr);
    const ReadBack all = read_all(*log);
    EXPECT_CODE(kCorruption, all.status);
    auto verified = log->verify(nullptr, nullptr);
    ASSERT_OK(verified);
    EXPECT_GE(verified->damages, 1u) << length;
  }
}

TEST(Damage, VerifyReportsEveryDamagedRangeAndReadsOn) {
  const Store store = build(40, true);
  const std::vector<Found> blocks = blocks_of(store.image);
  ASSERT_GT(blocks.size(), 12u);
  Image image = store.image;
  std::uint64_t lost = 0;
  for (const std::size_t b : {std::size_t{2}, std::size_t{6}, blocks.size() - 2}) {
    image[blocks[b].file][blocks[b].offset + (b == 6 ? 20 : sizeof(BlockHeader) + 9)] ^= 4;  // one header, two payloads
    lost += blocks[b].header.count;
  }
  for (const bool mapped : {true, false}) {
    std::shared_ptr<FileSystem> fs = restore(image);
    if (!mapped) {
      auto copies = FaultFs::make(fs);
      copies->hide(Capability::kMapping);
      fs = copies;
    }
    auto log = open_log(fs, read_only());
    ASSERT_NE(log, nullptr);
    std::vector<LogDamage> damages;
    auto verified = log->verify(
        [](void* context, const LogDamage& d) { static_cast<std::vector<LogDamage>*>(context)->push_back(d); }, &damages);
    ASSERT_OK(verified);
    ASSERT_EQ(verified->damages, 3u);
    ASSERT_EQ(damages.size(), 3u);
    EXPECT_EQ(verified->records, store.records.size() - lost);
    EXPECT_EQ(verified->to.value, store.records.size());
    std::size_t k = 0;
    for (const std::size_t b : {std::size_t{2}, std::size_t{6}, blocks.size() - 2}) {
      EXPECT_EQ(damages[k].from.value, blocks[b].header.first_sequence);
      EXPECT_EQ(damages[k].to.value, blocks[b].header.first_sequence + blocks[b].header.count);
      EXPECT_NE(damages[k].file.find(blocks[b].file), std::string::npos);
      EXPECT_FALSE(damages[k].what.empty());
      ++k;
    }
  }
}

}  // namespace
}  // namespace tier
