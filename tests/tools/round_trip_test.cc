/// Goal: what goes in comes out byte for byte, in every split and format. Method: nasty inputs through the built
/// command.
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "command_testing.h"

namespace tier::testing {
namespace {

using namespace std::string_literals;

/// Lines of all kinds that end in LF; more than one piece of input, so that records straddle pieces.
std::string many_lines() {
  std::string text;
  for (int i = 0; i < 60'000; ++i) {
    text += "line " + std::to_string(i) +
            std::string(static_cast<std::size_t>(i % 97), static_cast<char>(i % 256 == 10 ? 0 : i % 256));
    text += '\n';
  }
  return text;
}

struct Nasty {
  const char* name;
  std::string text;
};

std::vector<Nasty> nasty_inputs() {
  return {
      {"plain", "one\ntwo\nthree\n"},
      {"crlf", "one\r\ntwo\r\n\r\n"},
      {"lone_cr", "one\rtwo\rthree\n\r\n"},
      {"nul", "a\0b\n\0\n\0\0\n"s},
      {"invalid_utf8", "\xff\xfe\n\xc3\n\xed\xa0\x80\nok\n"},
      {"empty_lines", "\n\n\n"},
      {"one_empty_line", "\n"},
      {"empty", ""},
      {"long_line", std::string(1'000'000, 'x') + "\n" + std::string(1u << 20, 'y') + "\nz\n"},
      {"many", many_lines()},
  };
}

TEST(RoundTrip, LinesThatEndInLfComeBackByteForByte) {
  for (const Nasty& nasty : nasty_inputs()) {
    SCOPED_TRACE(nasty.name);
    const Directory directory;
    directory.write("input", nasty.text);
    const Ran appended = run_tier({"log", "append", directory.url(), "--input", directory.path("input")});
    ASSERT_EQ(appended.exit_code, 0) << appended.err;
    const Ran read = run_tier({"log", "cat", directory.url()});
    EXPECT_EQ(read.exit_code, 0) << read.err;
    EXPECT_EQ(read.err, "");
    EXPECT_TRUE(read.out == nasty.text) << "got " << read.out.size() << " bytes of " << nasty.text.size();
  }
}

TEST(RoundTrip, StandardInputIsTheDefault) {
  const Directory directory;
  ASSERT_EQ(run_tier({"log", "append", directory.url()}, "a\nb\n").exit_code, 0);
  ASSERT_EQ(run_tier({"log", "append", directory.url(), "--input", "-"}, "c\n").exit_code, 0);
  EXPECT_EQ(run_tier({"log", "cat", directory.url()}).out, "a\nb\nc\n");
}

TEST(RoundTrip, ALastLineWithoutLfIsARecordAndGetsOne) {
  const Directory directory;
  ASSERT_EQ(run_tier({"log", "append", directory.url()}, "a\nb").exit_code, 0);
  EXPECT_EQ(run_tier({"log", "cat", directory.url()}).out, "a\nb\n");
}

TEST(RoundTrip, NulSplitKeepsLineFeeds) {
  const Directory directory;
  ASSERT_EQ(run_tier({"log", "append", directory.url(), "--split", "nul"}, "a\nb\0\0c"s).exit_code, 0);
  EXPECT_EQ(run_tier({"log", "cat", directory.url(), "--format", "length"}).out, "\x03\0\0\0a\nb\0\0\0\0\x01\0\0\0c"s);
}

TEST(RoundTrip, LengthPrefixedRecordsCarryAnyBytes) {
  std::string framed;
  const auto add = [&](const std::string& record) {
    for (int shift = 0; shift < 32; shift += 8) framed += static_cast<char>((record.size() >> shift) & 0xff);
    framed += record;
  };
  add("");
  add("\n\0\r\n"s);
  add(std::string(300'000, '\n'));
  add("\xff");
  const Directory directory;
  ASSERT_EQ(run_tier({"log", "append", directory.url(), "--split", "length"}, framed).exit_code, 0);
  const Ran read = run_tier({"log", "cat", directory.url(), "--format", "length"});
  EXPECT_TRUE(read.out == framed);
}

TEST(RoundTrip, EveryDurabilityEndsDurable) {
  for (const char* mode : {"sync", "batch", "async"}) {
    SCOPED_TRACE(mode);
    const Directory directory;
    const Ran appended = run_tier({"log", "append", directory.url(), "--durability", mode, "--json"}, "a\nbc\n\n");
    ASSERT_EQ(appended.exit_code, 0) << appended.err;
    const auto json = nlohmann::json::parse(appended.out);
    EXPECT_EQ(json["records"], 3);
    EXPECT_EQ(json["bytes"], 3);
    EXPECT_EQ(json["first"], 0);
    EXPECT_EQ(json["last"], 2);
    EXPECT_EQ(json["durable"], true);
    EXPECT_EQ(json["durability"], mode);
    EXPECT_TRUE(contains(appended.err, "all durable")) << appended.err;
    EXPECT_EQ(run_tier({"log", "cat", directory.url()}).out, "a\nbc\n\n");
  }
}

TEST(RoundTrip, SegmentsRollWithoutATrace) {
  const Directory directory;
  const std::string text = many_lines();  // over 3 MiB
  const Ran appended = run_tier({"log", "append", directory.url(), "--segment-size", "1MiB"}, text);
  ASSERT_EQ(appended.exit_code, 0) << appended.err;
  EXPECT_TRUE(run_tier({"log", "cat", directory.url()}).out == text);
  const auto info = nlohmann::json::parse(run_tier({"log", "info", directory.url(), "--json"}).out);
  EXPECT_GE(info["segments"], 3);
  // Appending to it needs no repeated --segment-size.
  ASSERT_EQ(run_tier({"log", "append", directory.url()}, "more\n").exit_code, 0);
  EXPECT_TRUE(run_tier({"log", "cat", directory.url()}).out == text + "more\n");
}

TEST(Cat, SelectsByFromAndCount) {
  const Directory directory;
  ASSERT_EQ(run_tier({"log", "append", directory.url()}, "0\n1\n2\n3\n4\n").exit_code, 0);
  EXPECT_EQ(run_tier({"log", "cat", directory.url(), "--from", "3"}).out, "3\n4\n");
  EXPECT_EQ(run_tier({"log", "cat", directory.url(), "--from", "1", "--count", "2"}).out, "1\n2\n");
  EXPECT_EQ(run_tier({"log", "cat", directory.url(), "--count", "0"}).out, "");
  EXPECT_EQ(run_tier({"log", "cat", directory.url(), "--from", "5"}).out, "");
  const Ran beyond = run_tier({"log", "cat", directory.url(), "--from", "6"});
  EXPECT_EQ(beyond.exit_code, 1);
  EXPECT_TRUE(contains(beyond.err, "sequence 6")) << beyond.err;
}

TEST(Cat, JsonIsOneObjectALine) {
  const Directory directory;
  ASSERT_EQ(run_tier({"log", "append", directory.url()}, "a\"\\\t\x01\xc3\xa4\r\n\xff\xfe\n\n").exit_code, 0);
  const Ran read = run_tier({"log", "cat", directory.url(), "--format", "json"});
  std::vector<nlohmann::json> objects;
  for (std::size_t at = 0; at < read.out.size();) {
    const std::size_t end = read.out.find('\n', at);
    objects.push_back(nlohmann::json::parse(read.out.substr(at, end - at)));
    at = end + 1;
  }
  ASSERT_EQ(objects.size(), 3u);
  EXPECT_EQ(objects[0], (nlohmann::json{{"sequence", 0}, {"size", 8}, {"data", "a\"\\\t\x01\xc3\xa4\r"}}));
  EXPECT_EQ(objects[1], (nlohmann::json{{"sequence", 1}, {"size", 2}, {"base64", "//4="}}));
  EXPECT_EQ(objects[2], (nlohmann::json{{"sequence", 2}, {"size", 0}, {"data", ""}}));
}

TEST(Cat, HexShowsSequenceAndBytes) {
  const Directory directory;
  ASSERT_EQ(run_tier({"log", "append", directory.url()}, "a\xff\n\n").exit_code, 0);
  EXPECT_EQ(run_tier({"log", "cat", directory.url(), "--format", "hex"}).out, "0\t61ff\n1\t\n");
}

TEST(Append, CountStopsAndRepeatGoesRound) {
  const Directory directory;
  directory.write("input", "a\nb\nc\n");
  ASSERT_EQ(run_tier({"log", "append", directory.url(), "--input", directory.path("input"), "--count", "2"}).exit_code,
            0);
  ASSERT_EQ(run_tier({"log", "append", directory.url(), "--input", directory.path("input"), "--repeat", "--count", "7"})
                .exit_code,
            0);
  EXPECT_EQ(run_tier({"log", "cat", directory.url()}).out, "a\nb\na\nb\nc\na\nb\nc\na\n");
}

TEST(Append, RepeatOfAnEmptyFileEnds) {
  const Directory directory;
  directory.write("input", "");
  EXPECT_EQ(run_tier({"log", "append", directory.url(), "--input", directory.path("input"), "--repeat"}).exit_code, 0);
}

}  // namespace
}  // namespace tier::testing
