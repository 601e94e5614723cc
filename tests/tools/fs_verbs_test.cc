/// Goal: ls, stat, cp and info on URLs and plain paths.
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "command_testing.h"

namespace tier::testing {
namespace {

TEST(FsLs, NamesInByteOrderWithSlashes) {
  const Directory directory;
  directory.write("b", "12345");
  directory.write("a", "");
  std::filesystem::create_directory(directory.path("c"));
  EXPECT_EQ(run_tier({"fs", "ls", "local://" + directory.path()}).out, "a\nb\nc/\n");
  EXPECT_EQ(run_tier({"fs", "ls", directory.path()}).out, "a\nb\nc/\n");
  EXPECT_EQ(run_tier({"fs", "ls", directory.url("c")}).out, "");
  const Ran json = run_tier({"fs", "ls", directory.path(), "--json"});
  const auto first = nlohmann::json::parse(json.out.substr(0, json.out.find('\n')));
  EXPECT_EQ(first["name"], "a");
  EXPECT_TRUE(contains(run_tier({"fs", "ls", directory.path(), "--long"}).out, " 5 ")) << json.out;
  EXPECT_EQ(run_tier({"fs", "ls", directory.url("missing")}).exit_code, 1);
}

TEST(FsStat, SaysSizeAndKind) {
  const Directory directory;
  directory.write("five", "12345");
  const auto file = nlohmann::json::parse(run_tier({"fs", "stat", directory.url("five"), "--json"}).out);
  EXPECT_EQ(file["size"], 5);
  EXPECT_EQ(file["directory"], false);
  EXPECT_EQ(file["locked"], false);
  const auto root = nlohmann::json::parse(run_tier({"fs", "stat", "local://" + directory.path(), "--json"}).out);
  EXPECT_EQ(root["directory"], true);
  const Ran missing = run_tier({"fs", "stat", directory.url("missing")});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_TRUE(contains(missing.err, "missing")) << missing.err;
}

TEST(FsStat, SeesTheLockOfAWriter) {
  const Directory directory;
  Running writer({"log", "append", directory.url(), "--print-durable"});
  writer.write("a\n");
  ASSERT_EQ(writer.line(), "1");
  const auto lock = nlohmann::json::parse(run_tier({"fs", "stat", directory.url("log/LOCK"), "--json"}).out);
  EXPECT_EQ(lock["locked"], true);
}

TEST(FsCp, CopiesBytesAndHolesBothWays) {
  const Directory directory;
  std::string bytes(3u << 20, '\0');
  bytes[0] = 'a';
  bytes[1'500'000] = 'b';
  bytes += std::string(100, '\0');
  directory.write("plain", bytes);
  EXPECT_EQ(run_tier({"fs", "cp", directory.path("plain"), directory.url("copy")}).exit_code, 0);
  EXPECT_TRUE(directory.read("copy") == bytes);
  EXPECT_EQ(run_tier({"fs", "cp", directory.url("copy"), directory.path("back")}).exit_code, 0);
  EXPECT_TRUE(directory.read("back") == bytes);
  // Over one that is there, and into a directory.
  directory.write("back", "old and longer than nothing");
  directory.write("small", "x");
  EXPECT_EQ(run_tier({"fs", "cp", directory.path("small"), directory.path("back")}).exit_code, 0);
  EXPECT_EQ(directory.read("back"), "x");
  std::filesystem::create_directory(directory.path("into"));
  EXPECT_EQ(run_tier({"fs", "cp", directory.path("small"), directory.path("into")}).exit_code, 0);
  EXPECT_EQ(directory.read("into/small"), "x");
}

TEST(FsCp, AFailureLeavesNothing) {
  const Directory directory;
  directory.write("small", "x");
  std::filesystem::create_directory(directory.path("directory"));
  const std::string before = directory.listing();
  EXPECT_EQ(run_tier({"fs", "cp", directory.path("missing"), directory.path("copy")}).exit_code, 1);
  EXPECT_EQ(run_tier({"fs", "cp", directory.path("directory"), directory.path("copy")}).exit_code, 1);
  EXPECT_EQ(run_tier({"fs", "cp", directory.path("small"), directory.path("missing/copy")}).exit_code, 1);
  EXPECT_EQ(run_tier({"fs", "cp", directory.path("small"), directory.url("missing/copy")}).exit_code, 1);
  EXPECT_EQ(directory.listing(), before);
}

TEST(FsInfo, SaysWhatItCanDoAndMeasuresOnlyWhenAsked) {
  const Directory directory;
  const std::string url = "local://" + directory.path();
  const auto info = nlohmann::json::parse(run_tier({"fs", "info", url, "--json"}).out);
  EXPECT_EQ(info["capabilities"]["durable"], true);
  EXPECT_EQ(info["capabilities"]["locking"], true);
  EXPECT_TRUE(info["capabilities"].contains("direct_io"));
  EXPECT_GT(info["space"]["capacity"], 0);
  EXPECT_TRUE(info["sync_latency"].empty());
  const auto measured = nlohmann::json::parse(run_tier({"fs", "info", url, "--json", "--measure"}).out);
  ASSERT_FALSE(measured["sync_latency"].empty());
  EXPECT_GT(measured["sync_latency"][0]["p50_ns"], 0);
  EXPECT_EQ(directory.listing(), "");
  EXPECT_TRUE(contains(run_tier({"fs", "info", "mem:"}).out, "mapping"));
  EXPECT_EQ(run_tier({"fs", "info", "floppy:"}).exit_code, 1);
}

}  // namespace
}  // namespace tier::testing
