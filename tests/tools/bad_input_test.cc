/// Goal: bad input gets a clear error, the right exit code, and changes nothing.
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "command_testing.h"

namespace tier::testing {
namespace {

using namespace std::string_literals;

TEST(Usage, VersionAndHelpGoToStandardOutput) {
  const Ran version = run_tier({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_TRUE(version.out.starts_with("tier ")) << version.out;
  EXPECT_EQ(version.err, "");
  const Ran help = run_tier({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_TRUE(contains(help.out, "Exit codes")) << help.out;
}

TEST(Usage, TheHelpOfEveryVerbTeachesWithAnExample) {
  for (const auto& words : std::vector<std::vector<std::string>>{{"log", "create"},
                                                                 {"log", "append"},
                                                                 {"log", "cat"},
                                                                 {"log", "tail"},
                                                                 {"log", "info"},
                                                                 {"log", "verify"},
                                                                 {"log", "rm"},
                                                                 {"fs", "ls"},
                                                                 {"fs", "stat"},
                                                                 {"fs", "cp"},
                                                                 {"fs", "info"},
                                                                 {"demo"}}) {
    std::vector<std::string> line = words;
    line.push_back("--help");
    const Ran help = run_tier(line);
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_TRUE(contains(help.out, "Example")) << words.back() << "\n" << help.out;
    std::string command = "  tier";
    for (const std::string& word : words) command += " " + word;
    EXPECT_TRUE(contains(help.out, command)) << help.out;
  }
}

TEST(Usage, AWrongLineEndsWith2AndSaysWhereHelpIs) {
  const Directory directory;
  const std::string url = directory.url();
  const std::vector<std::vector<std::string>> lines = {
      {},
      {"log"},
      {"prune"},
      {"log", "prune", url},
      {"log", "append"},
      {"log", "append", url, "--no-such-option"},
      {"log", "append", url, "--split", "words"},
      {"log", "append", url, "--durability", "always"},
      {"log", "append", url, "--segment-size", "big"},
      {"log", "append", url, "--segment-size", "-1"},
      {"log", "append", url, "--segment-size", "64MQ"},
      {"log", "append", url, "--count", "some"},
      {"log", "append", url, "--json", "--print-durable"},
      {"log", "cat", url, "--format", "xml"},
      {"log", "cat", url, "--from", "-3"},
      {"log", "tail", url, "--timeout", "soon"},
      {"fs", "cp", url},
  };
  for (const auto& line : lines) {
    const Ran ran = run_tier(line);
    std::string text;
    for (const std::string& word : line) text += word + " ";
    EXPECT_EQ(ran.exit_code, 2) << text << ran.err;
    EXPECT_TRUE(contains(ran.err, "--help")) << text << ran.err;
    EXPECT_EQ(ran.out, "") << text;
  }
  EXPECT_EQ(directory.listing(), "");
}

TEST(Usage, AWrongUrlEndsWith2AndIsNamed) {
  const Directory directory;
  for (const std::string& url :
       {"floppy:///a"s, ""s, "no-scheme"s, "local:"s, "local://"s, "local://relative/path"s, "local://host/path"s,
        "local://" + directory.path() + "/../up", "local://" + directory.path() + "#../up",
        "local://" + directory.path() + "#/absolute", "local://" + directory.path() + "#a//b",
        "local://" + directory.path() + "#a%2f..%2fb", "local://" + directory.path() + "#a%00b",
        "local://" + directory.path() + "#%zz", "local://" + directory.path() + "#a#b", "mem:a/b"s}) {
    for (const char* verb : {"append", "create", "cat", "tail", "info", "verify", "rm"}) {
      const Ran ran = run_tier({"log", verb, url});
      EXPECT_EQ(ran.exit_code, 2) << verb << " " << url << "\n" << ran.err;
      EXPECT_TRUE(ran.err.starts_with("tier: URL: ")) << ran.err;
    }
  }
  EXPECT_EQ(directory.listing(), "");
}

TEST(BadInput, WhereThereIsNoLogReadingFailsAndMakesNothing) {
  const Directory directory;
  std::filesystem::create_directory(directory.path("plain"));
  directory.write("plain/notes.txt", "mine");
  const std::string before = directory.listing();
  for (const std::string& url : {directory.url("nothing"), directory.url("plain"), directory.url("plain/notes.txt")}) {
    for (const auto& line : std::vector<std::vector<std::string>>{{"log", "cat", url},
                                                                  {"log", "tail", url, "--no-follow"},
                                                                  {"log", "info", url},
                                                                  {"log", "verify", url},
                                                                  {"log", "rm", url, "--yes"},
                                                                  {"log", "append", url, "--no-create"}}) {
      const Ran ran = run_tier(line);
      EXPECT_EQ(ran.exit_code, 1) << line[1] << " " << url << "\n" << ran.err;
      EXPECT_TRUE(ran.err.starts_with("tier: ")) << ran.err;
      EXPECT_EQ(ran.out, "");
    }
  }
  EXPECT_EQ(directory.listing(), before);
}

TEST(BadInput, AMissingParentAFileInTheWayAndAMissingInputMakeNothing) {
  const Directory directory;
  directory.write("file", "mine");
  const std::string before = directory.listing();
  const auto refused = [&](const std::vector<std::string>& line, const char* named) {
    const Ran ran = run_tier(line, "a\n");
    EXPECT_EQ(ran.exit_code, 1) << ran.err;
    EXPECT_TRUE(contains(ran.err, named)) << ran.err;
    EXPECT_EQ(directory.listing(), before);
  };
  refused({"log", "append", directory.url("missing/log")}, "missing");
  refused({"log", "append", "local://" + directory.path("missing/log")}, "missing");
  refused({"log", "append", "local://" + directory.path("file")}, "file");
  refused({"log", "append", directory.url("file")}, "file");
  refused({"log", "create", directory.url("missing/log")}, "missing");
  refused({"log", "append", directory.url(), "--input", directory.path("missing")}, "missing");
  refused({"log", "append", directory.url(), "--input", directory.path()}, "directory");
  refused({"log", "append", directory.url(), "--repeat"}, "--repeat");
  refused({"log", "append", directory.url(), "--segment-size", "3MiB"}, "power of two");
  refused({"log", "append", directory.url(), "--segment-size", "512"}, "out of range");
  refused({"log", "append", directory.url(), "--max-record", "1GiB"}, "max_record");
}

TEST(BadInput, AReadOnlyDirectoryIsNamed) {
  if (::geteuid() != 0) GTEST_SKIP() << "runs the command as another user: needs root";
  constexpr int kNobody = 65534;
  const Directory directory;
  std::filesystem::permissions(directory.path(), std::filesystem::perms(0755));
  if (run_tier({"--version"}, {}, kNobody).exit_code != 0) GTEST_SKIP() << "others may not run the built command here";
  const Ran ran = run_tier({"log", "append", directory.url()}, "a\n", kNobody);
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_TRUE(contains(ran.err, "access")) << ran.err;
  EXPECT_EQ(directory.listing(), "");
}

TEST(BadInput, ARecordOverTheLimitNamesLineSizeAndLimitAndKeepsWhatCameBefore) {
  const Directory directory;
  const std::string text = "one\ntwo\n" + std::string((1u << 20) + 1, 'x') + "\nfour\n";
  const Ran ran = run_tier({"log", "append", directory.url()}, text);
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_TRUE(contains(ran.err, "line 3")) << ran.err;
  EXPECT_TRUE(contains(ran.err, "1048577 bytes")) << ran.err;
  EXPECT_TRUE(contains(ran.err, "the limit is 1048576")) << ran.err;
  EXPECT_TRUE(contains(ran.err, "--max-record")) << ran.err;
  EXPECT_TRUE(contains(ran.err, "appended 2 records")) << ran.err;
  EXPECT_EQ(run_tier({"log", "cat", directory.url()}).out, "one\ntwo\n");
  // The hint is true.
  ASSERT_EQ(run_tier({"log", "append", directory.url(), "--max-record", "8MiB"}, text).exit_code, 0);
  EXPECT_TRUE(run_tier({"log", "cat", directory.url(), "--from", "2"}).out == text);
}

TEST(BadInput, AnEndlessLineCostsNoMemory) {
  const Directory directory;
  const Ran ran = run_tier({"log", "append", directory.url()}, std::string(20u << 20, 'x'));
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_TRUE(contains(ran.err, "line 1 of standard input has 20971520 bytes")) << ran.err;
}

TEST(BadInput, ATornLengthPrefixIsNamed) {
  const Directory directory;
  const Ran ran = run_tier({"log", "append", directory.url(), "--split", "length"}, "\x01\0\0\0a\x05\0\0\0bc"s);
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_TRUE(contains(ran.err, "record 2")) << ran.err;
  EXPECT_EQ(run_tier({"log", "cat", directory.url()}).out, "a\n");
  const Ran huge = run_tier({"log", "append", directory.url(), "--split", "length"}, "\xff\xff\xff\xff"s);
  EXPECT_EQ(huge.exit_code, 1);
  EXPECT_TRUE(contains(huge.err, "4294967295")) << huge.err;
}

TEST(BadInput, CreatingTwiceSaysSo) {
  const Directory directory;
  EXPECT_EQ(run_tier({"log", "create", directory.url(), "--segment-size", "1MiB"}).exit_code, 0);
  const Ran again = run_tier({"log", "create", directory.url()});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_TRUE(contains(again.err, "exists")) << again.err;
  EXPECT_EQ(run_tier({"log", "create", directory.url(), "--if-missing"}).exit_code, 0);
}

TEST(BadInput, AManifestThatIsNoneAndASegmentThatIsEmptyAreRefused) {
  const Directory directory;
  ASSERT_EQ(run_tier({"log", "append", directory.url()}, "a\n").exit_code, 0);
  const std::string manifest = directory.read("log/MANIFEST");
  directory.write("log/MANIFEST", std::string(manifest.size(), 'x'));
  for (const char* verb : {"cat", "info", "verify", "append"}) {
    const Ran ran = run_tier({"log", verb, directory.url()});
    EXPECT_EQ(ran.exit_code, 1) << verb;
    EXPECT_TRUE(contains(ran.err, "MANIFEST")) << ran.err;
  }
  const Ran rm = run_tier({"log", "rm", directory.url(), "--yes"});
  EXPECT_EQ(rm.exit_code, 1);
  EXPECT_TRUE(contains(rm.err, "MANIFEST")) << rm.err;
  directory.write("log/MANIFEST", manifest);
  EXPECT_EQ(run_tier({"log", "cat", directory.url()}).out, "a\n");

  std::filesystem::resize_file(directory.path("log/000000000000.seg"), 0);
  for (const char* verb : {"cat", "append"}) {
    const Ran ran = run_tier({"log", verb, directory.url()});
    EXPECT_EQ(ran.exit_code, 1) << verb;
    EXPECT_TRUE(contains(ran.err, "000000000000.seg")) << ran.err;
  }
}

TEST(Rm, RemovesItsFilesAndNothingElse) {
  const Directory directory;
  ASSERT_EQ(run_tier({"log", "append", directory.url()}, "a\n").exit_code, 0);
  const std::string before = directory.listing();
  const Ran asked = run_tier({"log", "rm", directory.url()});
  EXPECT_EQ(asked.exit_code, 1);
  EXPECT_TRUE(contains(asked.err, "--yes")) << asked.err;
  EXPECT_EQ(directory.listing(), before);
  directory.write("log/notes.txt", "mine");
  EXPECT_EQ(run_tier({"log", "rm", directory.url(), "--yes"}).exit_code, 0);
  EXPECT_EQ(directory.listing(), directory.path("log") + "\n" + directory.path("log/notes.txt") + " 4\n");

  ASSERT_EQ(run_tier({"log", "append", directory.url("other")}, "a\n").exit_code, 0);
  EXPECT_EQ(run_tier({"log", "rm", directory.url("other"), "--yes"}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(directory.path("other")));
}

}  // namespace
}  // namespace tier::testing
