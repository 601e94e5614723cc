/// Goal: beside a running writer, on Ctrl-C, on SIGKILL and when the reader goes away the command does what it
/// promises. Method: real processes; what they print says when they are ready, so nothing depends on time.
#include <csignal>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "command_testing.h"

namespace tier::testing {
namespace {

/// A writer that has made `text` durable and waits for more input.
class Writer : public Running {
 public:
  Writer(const std::string& url, const std::string& text, std::uint64_t durable)
      : Running({"log", "append", url, "--print-durable"}) {
    write(text);
    std::string printed;
    do {
      printed = line();
    } while (!printed.empty() && std::strtoull(printed.c_str(), nullptr, 10) < durable);
    EXPECT_EQ(printed, std::to_string(durable)) << "the writer did not come up";
  }
};

TEST(BesideAWriter, ReadersSeeWhatIsDurableAndASecondWriterIsRefused) {
  const Directory directory;
  Writer writer(directory.url(), "a\nb\n", 2);
  EXPECT_EQ(run_tier({"log", "cat", directory.url()}).out, "a\nb\n");
  EXPECT_EQ(run_tier({"log", "tail", directory.url(), "--no-follow", "--count", "1"}).out, "b\n");
  EXPECT_EQ(run_tier({"log", "verify", directory.url()}).exit_code, 0);
  const auto info = nlohmann::json::parse(run_tier({"log", "info", directory.url(), "--json", "--payload"}).out);
  EXPECT_EQ(info["writer_running"], true);
  EXPECT_EQ(info["records"], 2);
  EXPECT_EQ(info["payload_bytes"], 2);

  const Ran second = run_tier({"log", "append", directory.url()}, "c\n");
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_TRUE(contains(second.err, "locked")) << second.err;
  EXPECT_TRUE(contains(second.err, "hint: ")) << second.err;
  const Ran rm = run_tier({"log", "rm", directory.url(), "--yes"});
  EXPECT_EQ(rm.exit_code, 1);
  EXPECT_TRUE(contains(rm.err, "locked")) << rm.err;

  writer.write("c\n");
  writer.close_input();
  EXPECT_EQ(writer.wait(), 0) << writer.err;
  EXPECT_EQ(run_tier({"log", "cat", directory.url()}).out, "a\nb\nc\n");
  const auto after = nlohmann::json::parse(run_tier({"log", "info", directory.url(), "--json"}).out);
  EXPECT_EQ(after["writer_running"], false);
  EXPECT_EQ(after["recovery"]["clean"], true);
}

TEST(BesideAWriter, TailFollows) {
  const Directory directory;
  Writer writer(directory.url(), "a\nb\n", 2);
  Running tail({"log", "tail", directory.url(), "--count", "1"});
  EXPECT_EQ(tail.line(), "b");
  writer.write("c\n");
  EXPECT_EQ(tail.line(), "c");
  writer.write("d\ne\n");
  EXPECT_EQ(tail.line(), "d");
  EXPECT_EQ(tail.line(), "e");
  tail.signal(SIGINT);
  EXPECT_EQ(tail.wait(), 130);
  EXPECT_EQ(tail.err, "");
}

TEST(Tail, EndsAfterItsTimeout) {
  const Directory directory;
  ASSERT_EQ(run_tier({"log", "append", directory.url()}, "a\nb\n").exit_code, 0);
  const Ran ran = run_tier({"log", "tail", directory.url(), "--from", "1", "--timeout", "50ms"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "b\n");
}

TEST(Tail, EndsQuietlyWhenItsReaderIsGone) {
  const Directory directory;
  ASSERT_EQ(run_tier({"log", "append", directory.url()}, "a\n").exit_code, 0);
  Running tail({"log", "tail", directory.url()});
  EXPECT_EQ(tail.line(), "a");
  tail.close_output();  // nothing more comes, so nothing is written: it has to notice by itself
  EXPECT_EQ(tail.wait(), 0);
  EXPECT_EQ(tail.err, "");
}

TEST(BrokenPipe, CatEndsQuietly) {
  const Directory directory;
  std::string text;
  for (int i = 0; i < 400'000; ++i) text += "line " + std::to_string(i) + "\n";
  directory.write("input", text);
  ASSERT_EQ(run_tier({"log", "append", directory.url(), "--input", directory.path("input")}).exit_code, 0);
  Running cat({"log", "cat", directory.url()});
  EXPECT_EQ(cat.line(), "line 0");
  cat.close_output();
  EXPECT_EQ(cat.wait(), 0);
  EXPECT_EQ(cat.err, "");
}

TEST(Interrupt, AppendMakesDurableReportsAndEndsWith130) {
  for (const int number : {SIGINT, SIGTERM}) {
    const Directory directory;
    Writer writer(directory.url(), "a\nb\n", 2);
    writer.signal(number);
    EXPECT_EQ(writer.wait(), 130);
    EXPECT_TRUE(contains(writer.err, "interrupted: appended 2 records")) << writer.err;
    EXPECT_TRUE(contains(writer.err, "all durable")) << writer.err;
    const auto info = nlohmann::json::parse(run_tier({"log", "info", directory.url(), "--json"}).out);
    EXPECT_EQ(info["recovery"]["clean"], true);
    EXPECT_EQ(run_tier({"log", "cat", directory.url()}).out, "a\nb\n");
  }
}

TEST(Interrupt, ARepeatingWriterStops) {
  const Directory directory;
  directory.write("input", "a\nb\nc\n");
  Running writer({"log", "append", directory.url(), "--input", directory.path("input"), "--repeat", "--print-durable"});
  EXPECT_NE(writer.line(), "");
  writer.signal(SIGINT);
  std::string last;
  for (std::string printed = writer.line(); !printed.empty(); printed = writer.line()) last = printed;
  EXPECT_EQ(writer.wait(), 130);
  // The last line it printed is all that it took.
  const auto info = nlohmann::json::parse(run_tier({"log", "info", directory.url(), "--json"}).out);
  EXPECT_EQ(std::to_string(info["records"].get<std::uint64_t>()), last);
}

TEST(Kill, WhatWasPrintedAsDurableIsThere) {
  const Directory directory;
  directory.write("input", "alpha\nbeta\n\ngamma\n");
  for (int round = 0; round < 3; ++round) {
    Running writer(
        {"log", "append", directory.url(), "--input", directory.path("input"), "--repeat", "--print-durable"});
    std::string printed;
    for (int i = 0; i < 3 + round; ++i) {
      if (std::string text = writer.line(); !text.empty()) printed = text;
    }
    writer.signal(SIGKILL);
    EXPECT_EQ(writer.wait(), 128 + SIGKILL);
    ASSERT_NE(printed, "");
    const auto info = nlohmann::json::parse(run_tier({"log", "info", directory.url(), "--json"}).out);
    EXPECT_GE(info["records"].get<std::uint64_t>(), std::strtoull(printed.c_str(), nullptr, 10));
    EXPECT_EQ(run_tier({"log", "verify", directory.url()}).exit_code, 0);
  }
  // Every round began the input anew, so each record is one of its lines and the first ones are known.
  const Ran read = run_tier({"log", "cat", directory.url(), "--count", "5"});
  EXPECT_EQ(read.out, "alpha\nbeta\n\ngamma\nalpha\n");
}

TEST(Damage, VerifyListsThePlaceAndCatStops) {
  const Directory directory;
  std::string text;
  for (int i = 0; i < 5'000; ++i) text += "record number " + std::to_string(i) + "\n";
  ASSERT_EQ(run_tier({"log", "append", directory.url()}, text).exit_code, 0);
  const std::string name = "log/000000000000.seg";
  std::string bytes = directory.read(name);
  const std::size_t at = bytes.find("record number 1234");
  ASSERT_NE(at, std::string::npos);
  bytes[at] = 'R';
  directory.write(name, bytes);

  const Ran verify = run_tier({"log", "verify", directory.url()});
  EXPECT_EQ(verify.exit_code, 1);
  EXPECT_TRUE(contains(verify.out, "damage: file '")) << verify.out;
  EXPECT_TRUE(contains(verify.out, "000000000000.seg' at offset ")) << verify.out;
  EXPECT_TRUE(contains(verify.out, "1 damaged place")) << verify.out;
  const Ran json = run_tier({"log", "verify", directory.url(), "--json"});
  EXPECT_EQ(json.exit_code, 1);
  const auto found = nlohmann::json::parse(json.out);
  EXPECT_EQ(found["ok"], false);
  ASSERT_EQ(found["damages"].size(), 1u);
  EXPECT_LE(found["damages"][0]["from"], 1234);
  EXPECT_GT(found["damages"][0]["to"], 1234);

  const Ran cat = run_tier({"log", "cat", directory.url()});
  EXPECT_EQ(cat.exit_code, 1);
  EXPECT_TRUE(contains(cat.err, "corruption")) << cat.err;
  EXPECT_TRUE(contains(cat.err, "log verify")) << cat.err;
  EXPECT_TRUE(text.starts_with(cat.out));
}

TEST(Demo, ProvesItsClaims) {
  const Directory directory;
  directory.write("input", "one\r\ntwo\n\nthree\xff\n");
  for (int round = 0; round < 2; ++round) {  // the second one replaces the first one's log
    const Ran ran = run_tier({"demo", "--input", directory.path("input"), "--directory", directory.path("demo")});
    EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
    EXPECT_TRUE(contains(ran.out, "byte for byte")) << ran.out;
    EXPECT_TRUE(contains(ran.out, "durable latency")) << ran.out;
  }
  EXPECT_EQ(run_tier({"log", "verify", directory.url("demo/log")}).exit_code, 0);
}

}  // namespace
}  // namespace tier::testing
