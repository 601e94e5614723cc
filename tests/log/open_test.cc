/// Opening: options, places that are no log, owners, older and newer stores. Every refusal names what is wrong and changes
/// nothing.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <string>
#include <vector>

#include "engine/format.h"
#include "log/log_fixture.h"
#include "tier/crc32c.h"

namespace tier {
namespace {

using namespace testing;

struct BadOption {
  const char* field;
  std::function<void(LogOptions&)> set;
};

TEST(LogOptions, AnOptionOutOfRangeIsInvalidNamesItsFieldAndCreatesNothing) {
  const BadOption bad[] = {
      {"ring_size", [](LogOptions& o) { o.ring_size = Bytes{32u << 10}; }},
      {"ring_size", [](LogOptions& o) { o.ring_size = Bytes{128u << 20}; }},
      {"ring_size", [](LogOptions& o) { o.ring_size = Bytes{(1u << 20) + 1}; }},
      {"ring_size", [](LogOptions& o) { o.ring_size = Bytes{2048}, o.allow_small_segments = true; }},
      {"segment_size", [](LogOptions& o) { o.segment_size = Bytes{512u << 10}; }},
      {"segment_size", [](LogOptions& o) { o.segment_size = Bytes{3u << 20}; }},
      {"segment_size", [](LogOptions& o) { o.segment_size = Bytes{std::uint64_t{128} << 30}; }},
      {"segment_size", [](LogOptions& o) { o.segment_size = Bytes{2048}, o.allow_small_segments = true; }},
      {"batch_bytes", [](LogOptions& o) { o.batch_bytes = Bytes{4095}; }},
      {"batch_bytes", [](LogOptions& o) { o.batch_bytes = Bytes{(4u << 20) + 1}; }},
      {"batch_records", [](LogOptions& o) { o.batch_records = 0; }},
      {"batch_records", [](LogOptions& o) { o.batch_records = (1u << 20) + 1; }},
      {"batch_interval", [](LogOptions& o) { o.batch_interval = 99us; }},
      {"batch_interval", [](LogOptions& o) { o.batch_interval = 61s; }},
      {"batch_interval", [](LogOptions& o) { o.batch_interval = -1s; }},
      {"max_record", [](LogOptions& o) { o.max_record = Bytes{(64u << 20) + 1}; }},
      {"queue_full_timeout", [](LogOptions& o) { o.queue_full_timeout = std::chrono::hours(24 * 400); }},
      {"index_stride", [](LogOptions& o) { o.index_stride = 15; }},
      {"index_stride", [](LogOptions& o) { o.index_stride = (1u << 20) + 1; }},
      {"durability", [](LogOptions& o) { o.durability = static_cast<Durability>(3); }},
      {"queue_full", [](LogOptions& o) { o.queue_full = static_cast<QueueFull>(2); }},
      {"align", [](LogOptions& o) { o.align = static_cast<BlockAlign>(2); }},
      {"create", [](LogOptions& o) { o.create = static_cast<Create>(3); }},
  };
  auto fs = memory();
  for (const BadOption& b : bad) {
    LogOptions options;
    b.set(options);
    const auto log = Log::open(fs, "log", options);
    EXPECT_CODE(kInvalid, log);
    EXPECT_NE(log.status().message().find(b.field), std::string::npos) << b.field << ": " << log.status().message();
  }
  for (const FileMode mode : {FileMode::kDirect, FileMode::kDirectWriteThrough}) {
    LogOptions options;
    options.mode = mode;
    EXPECT_CODE(kUnsupported, Log::open(fs, "log", options));
  }
  EXPECT_TRUE(fs->list("")->empty());
}

TEST(LogOptions, TheEndsOfEveryRangeAreAccepted) {
  LogOptions least;
  least.allow_small_segments = true;
  least.ring_size = Bytes{4096};
  least.segment_size = Bytes{4096};
  least.batch_bytes = Bytes{1};
  least.batch_records = 1;
  least.batch_interval = 100us;
  least.max_record = Bytes{1};
  least.queue_full_timeout = 0s;
  least.index_stride = 16;
  auto log = open_log(memory(), least);
  ASSERT_NE(log, nullptr);
  ASSERT_OK(log->append("a"));
  ASSERT_OK(log->wait_durable(Sequence{1}));
  LogOptions most;
  most.ring_size = Bytes{64u << 20};
  most.batch_bytes = Bytes{16u << 20};
  most.batch_records = 1u << 20;
  most.batch_interval = 60s;
  most.index_stride = 1u << 20;
  most.max_record = Bytes{64u << 20};
  log = open_log(memory(), most);
  ASSERT_NE(log, nullptr);
  ASSERT_OK(log->append_durable(as_bytes("a")));
}

TEST(LogOptions, AnExistingLogKeepsItsSegmentSizeAndRecordsMustFitIt) {
  auto fs = memory();
  open_log(fs, small_log()).reset();
  LogOptions other = small_log(Durability::kBatch, 64u << 10);
  const auto refused = Log::open(fs, "log", other);
  EXPECT_CODE(kInvalid, refused);
  EXPECT_NE(refused.status().message().find("max_record"), std::string::npos) << refused.status().message();
  other.max_record = Bytes{1024};
  auto log = open_log(fs, other);
  ASSERT_NE(log, nullptr);
  EXPECT_EQ(log->options().segment_size.value, 4096u);
}

TEST(LogOpen, CreateModesSayWhatTheyMean) {
  auto fs = memory();
  LogOptions options = small_log();
  options.create = Create::kNever;
  EXPECT_CODE(kNotFound, Log::open(fs, "log", options));
  EXPECT_CODE(kNotFound, Log::open(fs, "log", read_only()));
  EXPECT_TRUE(fs->list("")->empty());
  options.create = Create::kExclusive;
  auto log = open_log(fs, options);
  ASSERT_NE(log, nullptr);
  EXPECT_TRUE(log->recovery().created);
  log.reset();
  EXPECT_CODE(kExists, Log::open(fs, "log", options));
  options.create = Create::kNever;
  log = open_log(fs, options);
  ASSERT_NE(log, nullptr);
  EXPECT_FALSE(log->recovery().created);
}

TEST(LogOpen, ByUrlTheLastPathComponentIsCreatedAndAMissingParentIsAnError) {
  const TemporaryDirectory directory;
  LogOptions options = small_log();
  {
    auto log = Log::open(directory.url() + "/events", options);
    ASSERT_OK(log);
    ASSERT_OK((*log)->append_durable(as_bytes("a")));
  }
  EXPECT_CODE(kNotFound, Log::open(directory.url() + "/no/events", options));
  auto fragment = Log::open(directory.url() + "#more", options);
  EXPECT_OK(fragment);
  EXPECT_CODE(kNotFound, Log::open(directory.url() + "/nothing", read_only()));
  EXPECT_FALSE(std::filesystem::exists(directory.path() + "/nothing"));
  EXPECT_TRUE(std::filesystem::exists(directory.path() + "/events/MANIFEST"));
}

TEST(LogOpen, UrlsThatNameNoPlaceAreRefused) {
  const TemporaryDirectory directory;
  for (const std::string& url :
       {std::string("nosuch:///x"), std::string(""), std::string("relative/path"), std::string("local://relative"),
        std::string("local://"), directory.url() + "#../x", directory.url() + "#/x", directory.url() + "#a//b"}) {
    const auto log = Log::open(url, small_log());
    EXPECT_FALSE(log.ok()) << url;
    EXPECT_TRUE(log.code() == Code::kInvalid || log.code() == Code::kUnsupported) << url << ": " << log.status().message();
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(LogOpen, AFileInPlaceOfTheDirectoryIsRefusedAndKept) {
  const TemporaryDirectory directory;
  auto fs = open_fs(directory.url());
  put_file(*fs, "log", "not a directory");
  EXPECT_FALSE(Log::open(directory.url() + "/log", small_log()).ok());
  EXPECT_FALSE(Log::open(directory.url() + "#log", small_log()).ok());
  std::string text(15, '\0');
  auto file = fs->open("log", {});
  ASSERT_OK(file);
  ASSERT_OK((*file)->read_exactly_at(0, {reinterpret_cast<std::byte*>(text.data()), text.size()}));
  EXPECT_EQ(text, "not a directory");
}

TEST(LogOpen, ASecondWriterIsLockedOutInThisProcessUntilTheFirstGoes) {
  const TemporaryDirectory directory;
  for (auto fs : {memory(), open_fs(directory.url())}) {
    auto first = open_log(fs, small_log());
    ASSERT_NE(first, nullptr);
    ASSERT_OK(first->append_durable(as_bytes("a")));
    const Image before = capture(*fs);
    EXPECT_CODE(kLocked, Log::open(fs, "log", small_log()));
    EXPECT_EQ(capture(*fs), before);
    ASSERT_OK(first->append_durable(as_bytes("b")));
    first.reset();
    auto second = open_log(fs, small_log());
    ASSERT_NE(second, nullptr);
    expect_records(*second, {"a", "b"});
  }
}

TEST(LogOpen, AnEngineOfAnotherKindIsNotALog) {
  auto fs = memory();
  {
    EngineOptions options;
    options.create = Create::kExclusive;
    options.kind = "other";
    options.segment_size = Bytes{1u << 20};
    ASSERT_OK(Engine::open(fs, "log", options));
  }
  const Image before = capture(*fs);
  EXPECT_CODE(kInvalid, Log::open(fs, "log", plain_log()));
  EXPECT_CODE(kInvalid, Log::open(fs, "log", read_only()));
  EXPECT_EQ(capture(*fs), before);
}

/// A closed log of two dozen records in several segments.
Image sound_store(std::vector<std::string>* records = nullptr) {
  auto fs = memory();
  auto log = open_log(fs, small_log(Durability::kSync));
  for (std::size_t i = 0; i < 24; ++i) {
    const std::string record = record_of(i, 400);
    if (records != nullptr) records->push_back(record);
    EXPECT_OK(log->append(record));
  }
  log->close();
  return capture(*fs);
}

/// Opening `bad` answers `code` to a writer and to a reader, and leaves it as it is.
void expect_refused(const Image& bad, Code code) {
  auto fs = restore(bad);
  const auto writer = Log::open(fs, "log", small_log());
  EXPECT_EQ(writer.code(), code) << writer.status().message();
  EXPECT_FALSE(writer.status().place().empty()) << writer.status().message();
  Image after = capture(*fs);
  after.erase("LOCK");
  Image before = bad;
  before.erase("LOCK");
  EXPECT_TRUE(after == before);
  const auto reader = Log::open(fs, "log", read_only());
  EXPECT_EQ(reader.code(), code) << reader.status().message();
}

template <class Structure>
void edit(std::string& bytes, std::size_t offset, const std::function<void(Structure&)>& change) {
  Structure s;
  std::memcpy(static_cast<void*>(&s), bytes.data() + offset, sizeof s);
  change(s);
  s.crc32c = crc32c(ByteSpan{reinterpret_cast<const std::byte*>(&s), offsetof(Structure, crc32c)});
  std::memcpy(bytes.data() + offset, &s, sizeof s);
}

TEST(LogOpen, AStoreOfANewerVersionIsUnsupported) {
  Image image = sound_store();
  for (const std::size_t slot : {0u, 4096u}) edit<ManifestSlot>(image["MANIFEST"], slot, [](auto& m) { m.version = 2; });
  expect_refused(image, Code::kUnsupported);
}

TEST(LogOpen, ASegmentOfANewerVersionIsUnsupported) {
  Image image = sound_store();
  for (auto& [name, bytes] : image)
    if (name.ends_with(".seg")) edit<SegmentHeader>(bytes, 0, [](auto& h) { h.version = 2; });
  expect_refused(image, Code::kUnsupported);
}

TEST(LogOpen, AManifestWithAWrongMagicIsCorruption) {
  Image image = sound_store();
  for (const std::size_t slot : {0u, 4096u}) edit<ManifestSlot>(image["MANIFEST"], slot, [](auto& m) { m.magic ^= 1; });
  expect_refused(image, Code::kCorruption);
}

TEST(LogOpen, AZeroLengthOrShortOrLongLastSegmentIsCorruption) {
  const Image sound = sound_store();
  const std::string last = std::prev(sound.upper_bound("0~"))->first;
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, std::size_t{16384}, std::size_t{16384 + 4095},
                                 std::size_t{16384 + 4097}}) {
    Image image = sound;
    std::string name = last;
    // The last file may be one that was only prepared; the tail's is the last with a mark or a block.
    image[name].resize(size);
    expect_refused(image, Code::kCorruption);
  }
}

TEST(LogOpen, AnEmptyManifestIsCorruption) {
  Image image = sound_store();
  image["MANIFEST"].clear();
  expect_refused(image, Code::kCorruption);
}

TEST(LogOpen, ALogWithoutItsManifestIsNotMadeAnew) {
  Image image = sound_store();
  image.erase("MANIFEST");
  auto fs = restore(image);
  EXPECT_CODE(kCorruption, Log::open(fs, "log", small_log()));
  EXPECT_CODE(kNotFound, Log::open(fs, "log", read_only()));
  Image after = capture(*fs);
  EXPECT_TRUE(after == image);
}

TEST(LogOpen, AMissingMiddleSegmentIsCorruption) {
  Image image = sound_store();
  image.erase("000000000001.seg");
  expect_refused(image, Code::kCorruption);
}

TEST(LogOpen, ReopeningManyTimesChangesNoRecord) {
  std::vector<std::string> records;
  auto fs = memory();
  for (std::size_t life = 0; life < 60; ++life) {
    const Durability modes[] = {Durability::kSync, Durability::kBatch, Durability::kAsync};
    auto log = open_log(fs, small_log(modes[life % 3]));
    ASSERT_NE(log, nullptr);
    EXPECT_EQ(log->recovery().to.value, records.size());
    EXPECT_TRUE(log->recovery().clean || life == 0);
    EXPECT_EQ(log->recovery().cut_bytes, 0u);
    for (std::size_t i = 0; i < life % 5; ++i) {
      records.push_back(record_of(records.size(), life * 7 % 300));
      ASSERT_OK(log->append(records.back()));
    }
  }
  auto log = open_log(fs, small_log());
  ASSERT_NE(log, nullptr);
  expect_records(*log, records);
}

}  // namespace
}  // namespace tier
