/// Goal: the small parts of the command: sizes, durations, UTF-8, base64, JSON strings.
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tools/tier/place.h"
#include "tools/tier/record_format.h"
#include "tools/tier/store.h"
#include "tools/tier/units.h"

namespace tier::cli {
namespace {

TEST(Units, SizesAreReadAsPeopleWriteThem) {
  const auto size = [](const char* text) { return parse_size(text).value_or(std::uint64_t{1} << 63); };
  EXPECT_EQ(size("0"), 0u);
  EXPECT_EQ(size("17"), 17u);
  EXPECT_EQ(size("17B"), 17u);
  EXPECT_EQ(size("64MiB"), 64u << 20);
  EXPECT_EQ(size("64M"), 64u << 20);
  EXPECT_EQ(size("64mb"), 64u << 20);
  EXPECT_EQ(size("1.5k"), 1536u);
  EXPECT_EQ(size("2T"), std::uint64_t{2} << 40);
  for (const char* bad :
       {"", " ", "x", "M", "1X", "1MiBs", "-1", "+1", "1e3", "0x10", "nan", "inf", "1.5", "99999999999T", "1 M"}) {
    EXPECT_EQ(parse_size(bad).code(), Code::kInvalid) << "'" << bad << "'";
  }
}

TEST(Units, DurationsAreReadAsPeopleWriteThem) {
  EXPECT_EQ(*parse_duration("2"), 2s);
  EXPECT_EQ(*parse_duration("500ms"), 500ms);
  EXPECT_EQ(*parse_duration("0.5h"), 30min);
  for (const char* bad : {"", "s", "1 s", "-1s", "1y", "1e30", "9999999999999h"}) {
    EXPECT_EQ(parse_duration(bad).code(), Code::kInvalid) << "'" << bad << "'";
  }
}

TEST(Units, NumbersAreWrittenForPeople) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
  EXPECT_EQ(counted(1, "record"), "1 record");
  EXPECT_EQ(counted(0, "record"), "0 records");
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1536), "1.50 KiB");
  EXPECT_EQ(human_bytes(256.0 * 1024 * 1024), "256 MiB");
}

TEST(Utf8, OnlyWhatTheStandardAllows) {
  for (const char* good : {"", "plain", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xef\xbf\xbf",
                           "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "a\xc3\xa4z"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
  }
  for (const char* bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x9f\x80", "\xed\xa0\x80", "\xe2\x82",
                          "\xf0\x8f\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xe2\x28\xa1"}) {
    EXPECT_FALSE(is_utf8(bad)) << bad;
  }
}

TEST(Base64, PadsAsItShould) {
  const auto encoded = [](std::string_view text) {
    std::string out;
    append_base64(out, as_bytes(text));
    return out;
  };
  EXPECT_EQ(encoded(""), "");
  EXPECT_EQ(encoded("f"), "Zg==");
  EXPECT_EQ(encoded("fo"), "Zm8=");
  EXPECT_EQ(encoded("foo"), "Zm9v");
  EXPECT_EQ(encoded("foob"), "Zm9vYg==");
}

TEST(JsonString, EveryByteBelow128ComesBack) {
  std::string text;
  for (int c = 0; c < 128; ++c) text += static_cast<char>(c);
  text += "\xc3\xa4";
  std::string json;
  append_json_string(json, text);
  EXPECT_EQ(nlohmann::json::parse(json).get<std::string>(), text);
}

TEST(Store, KnowsItsOwnFiles) {
  for (const char* own : {"LOCK", "MANIFEST", "MANIFEST.new", "HINT", "000000000000.seg", "123456789012.seg.new"}) {
    EXPECT_TRUE(belongs_to_store(own)) << own;
  }
  for (const char* other :
       {"", "lock", "LOCK.new", "HINT.new", "notes.txt", "00000000000.seg", "0000000000000.seg", "00000000000x.seg", ".seg"}) {
    EXPECT_FALSE(belongs_to_store(other)) << other;
  }
}

TEST(Place, ToldFromPlainPaths) {
  for (const char* url : {"mem:", "local:///a", "local:///a#b", "x:y"}) EXPECT_TRUE(is_url(url)) << url;
  for (const char* plain : {"", "a", "/a/b", "./a:b", "/a:b", ":", "a/b:c"}) EXPECT_FALSE(is_url(plain)) << plain;
}

}  // namespace
}  // namespace tier::cli
