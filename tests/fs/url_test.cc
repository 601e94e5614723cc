/// parse_url, check_path and the registry: what is accepted, and that everything else is refused with its reason.
#include "fs/fs_fixture.h"

namespace tier::testing {
namespace {

TEST(Url, IsTakenApart) {
  struct Case {
    const char* url;
    const char* scheme;
    const char* location;
    const char* path;
    const char* file_system;
  };
  for (const Case& c : {
           Case{"mem:", "mem", "", "", "mem:"},
           Case{"mem:scratch", "mem", "scratch", "", "mem:scratch"},
           Case{"mem:scratch#events", "mem", "scratch", "events", "mem:scratch"},
           Case{"mem:#a/b", "mem", "", "a/b", "mem:"},
           Case{"mem:with%20space", "mem", "with space", "", "mem:with%20space"},
           Case{"local:///", "local", "/", "", "local:///"},
           Case{"local:///var/lib/app", "local", "/var/lib/app", "", "local:///var/lib/app"},
           Case{"local:///var/lib/app/", "local", "/var/lib/app", "", "local:///var/lib/app/"},
           Case{"local:///var/lib/app#events", "local", "/var/lib/app", "events", "local:///var/lib/app"},
           Case{"local:///var#", "local", "/var", "", "local:///var"},
           Case{"local:///a%23b%3Fc#d%23e", "local", "/a#b?c", "d#e", "local:///a%23b%3Fc"},
           Case{"local:///a%2fb", "local", "/a/b", "", "local:///a%2fb"},
           Case{"local:///%2525", "local", "/%25", "", "local:///%2525"},  // decoded once
           Case{"local:///..a/b..", "local", "/..a/b..", "", "local:///..a/b.."},
           Case{"local:///caf\xc3\xa9", "local", "/caf\xc3\xa9", "", "local:///caf\xc3\xa9"},
       }) {
    const Result<Url> url = parse_url(c.url);
    ASSERT_TRUE(url.ok()) << c.url << ": " << url.status().message();
    EXPECT_EQ(url->scheme, c.scheme) << c.url;
    EXPECT_EQ(url->location, c.location) << c.url;
    EXPECT_EQ(url->path, c.path) << c.url;
    EXPECT_EQ(url->file_system, c.file_system) << c.url;
  }
}

TEST(Url, IsRefusedWithItsReason) {
  struct Case {
    std::string url;
    const char* reason;
  };
  const auto nul = [](const char* before) { return std::string(before) + '\0' + "x"; };
  for (const Case& c : {
           Case{"", "empty"},
           Case{"var/lib", "scheme"},
           Case{"/var/lib", "scheme"},
           Case{":", "scheme"},
           Case{":///x", "scheme"},
           Case{"bogus:x", "unknown scheme"},
           Case{"MEM:", "unknown scheme"},
           Case{"file:///x", "unknown scheme"},
           Case{"s3://bucket", "unknown scheme"},
           Case{" mem:", "unknown scheme"},
           Case{"local:", "missing"},
           Case{"local://", "missing"},
           Case{"local:relative", "absolute"},
           Case{"local:/one/slash", "absolute"},
           Case{"local://host/dir", "without a host"},
           Case{"local://relative", "absolute"},
           Case{"local:///a/../b", "'..'"},
           Case{"local:///..", "'..'"},
           Case{"local:///a/./b", "'..'"},
           Case{"local:///a//b", "empty component"},
           Case{"local:////a", "absolute"},
           Case{"local:///a/%2e%2e/b", "'..'"},
           Case{"local:///a/%2E%2e", "'..'"},
           Case{"local:///a%2f..%2fb", "'..'"},
           Case{"local:///a%00b", "NUL"},
           Case{nul("local:///a"), "NUL"},
           Case{nul("mem:"), "NUL"},
           Case{"local:///a%", "hex"},
           Case{"local:///a%2", "hex"},
           Case{"local:///a%zz", "hex"},
           Case{"local:///a?mode=direct", "'?'"},
           Case{"local:///" + std::string(256, 'x'), "too long"},
           Case{"local:///" + std::string(20000, 'x'), "too long"},
           Case{"mem:a/b", "no '/'"},
           Case{"mem://a", "no '/'"},
           Case{"mem:%2fa", "no '/'"},
           Case{"mem:..", "'..'"},
           Case{"mem:" + std::string(256, 'x'), "too long"},
           Case{"mem:#/abs", "absolute"},
           Case{"mem:#..", "'..'"},
           Case{"mem:#a/../b", "'..'"},
           Case{"mem:#a/", "empty component"},
           Case{"mem:#a//b", "empty component"},
           Case{"mem:#a#b", "one '#'"},
           Case{"mem:#%2e%2e/x", "'..'"},
           Case{"mem:#a%00", "NUL"},
           Case{"mem:#%", "hex"},
       }) {
    const Result<Url> url = parse_url(c.url);
    EXPECT_CODE(Code::kInvalid, url);
    EXPECT_NE(std::string(url.status().text()).find(c.reason), std::string::npos)
        << c.url << ": " << url.status().message();
    EXPECT_FALSE(url.status().place().empty());
    EXPECT_FALSE(open_file_system(c.url).ok());
  }
}

TEST(Url, EveryShortStringIsAcceptedOrRefused) {
  constexpr char kAlphabet[] = {'m', 'e', ':', '/', '#', '%', '2', '.', '\0', '?'};
  for (const std::string start : {"mem:", "local:///", "local:", "mem:#"})
    for (const char a : kAlphabet)
      for (const char b : kAlphabet)
        for (const char c : kAlphabet) {
          const std::string text = start + a + b + c;
          const Result<Url> url = parse_url(text);
          if (!url.ok()) {
            EXPECT_CODE(Code::kInvalid, url);
            continue;
          }
          EXPECT_TRUE(check_path(url->path, true).ok()) << text;
          EXPECT_EQ(url->location.find('\0'), std::string::npos) << text;
          EXPECT_EQ(url->location.find("/../"), std::string::npos) << text;
        }
}

TEST(Url, OfAStoreDoesNotOpenAsAFileSystem) {
  EXPECT_CODE(Code::kUnsupported, open_file_system("mem:#events"));
  EXPECT_OK(open_file_system(parse_url("mem:#events")->file_system));
}

TEST(Path, IsCheckedOnce) {
  EXPECT_OK(check_path("a"));
  EXPECT_OK(check_path("a/b.c/..d/e.."));
  EXPECT_OK(check_path("", true));
  EXPECT_CODE(Code::kInvalid, check_path(""));
  EXPECT_OK(check_path(std::string(255, 'x')));
  EXPECT_CODE(Code::kInvalid, check_path(std::string(256, 'x')));
  std::string deep = "x";
  while (deep.size() < 4095) deep += "/x";
  EXPECT_OK(check_path(deep));
  EXPECT_CODE(Code::kInvalid, check_path(deep + "/x"));
  // A message shows control bytes as text.
  EXPECT_NE(check_path("/a\nb").message().find("/a\\x0ab"), std::string::npos) << check_path("/a\nb").message();
}

Result<std::shared_ptr<FileSystem>> open_extra(const Url& url, const FileSystemOptions& options) {
  EXPECT_EQ(url.scheme, "extra");
  EXPECT_EQ(url.location, "here and there");
  EXPECT_NE(options.runtime, nullptr);
  return open_file_system("mem:", options);
}

TEST(Registry, TakesNewSchemesOnce) {
  EXPECT_CODE(Code::kInvalid, open_file_system("extra:x"));
  EXPECT_OK(register_file_system("extra", open_extra));
  EXPECT_CODE(Code::kExists, register_file_system("extra", open_extra));
  EXPECT_CODE(Code::kExists, register_file_system("mem", open_extra));
  EXPECT_OK(open_file_system("extra:here%20and%20there"));
}

TEST(Registry, RefusesWhatIsNoScheme) {
  for (const std::string bad : {"", "A", "1x", "a:b", "a b", "caf\xc3\xa9"})
    EXPECT_CODE(Code::kInvalid, register_file_system(bad, open_extra));
  EXPECT_CODE(Code::kInvalid, register_file_system("fine", nullptr));
}

}  // namespace
}  // namespace tier::testing
