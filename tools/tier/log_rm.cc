/// tier log rm: removes a log's files, and its directory when nothing else is in it.
///
/// Invariants  only files that a store makes are touched, only in a directory that holds a log's manifest, and only
/// while
///             no writer has it. The manifest goes first, durably: a removal that stops half-way leaves no log behind.
#include <array>
#include <cstring>
#include <iostream>

#include <fmt/core.h>
#include <unistd.h>

#include "command.h"
#include "exit_codes.h"
#include "place.h"
#include "store.h"
#include "units.h"

namespace tier::cli {
namespace {

struct RmOptions {
  std::string url;
  bool yes = false;
};

/// The magic and the kind of store that either slot of the manifest begins with (docs/formats.md).
Status check_manifest(FileSystem& fs, const std::string& directory) {
  constexpr std::size_t kSlot = 4096;
  constexpr std::size_t kKindAt = 32;
  static constexpr std::string_view kMagic = "TrManest";
  static constexpr std::string_view kKind("log\0", 4);
  auto file = fs.open(join(directory, "MANIFEST"), {});
  if (file.code() == Code::kNotFound) {
    return fail(Code::kNotFound, 0, "there is no log here; nothing was removed", "directory '%s' of %s",
                directory.c_str(), fs.url().c_str());
  }
  if (!file.ok()) return file.status();
  std::array<std::byte, 2 * kSlot> bytes{};
  TIER_TRY(const std::size_t n, (*file)->read_at(0, bytes));
  for (const std::size_t slot : {std::size_t{0}, kSlot}) {
    const std::string_view text = as_text(ByteSpan(bytes).subspan(slot, kSlot));
    if (n > slot && text.starts_with(kMagic) && text.substr(kKindAt).starts_with(kKind)) return {};
  }
  return fail(Code::kInvalid, 0, "this is not the manifest of a log; nothing was removed", "file '%s'",
              join(directory, "MANIFEST").c_str());
}

bool confirmed(const RmOptions& o, std::size_t files, std::uint64_t bytes) {
  if (o.yes) return true;
  if (::isatty(STDIN_FILENO) == 0) {
    complain("this removes the log; say --yes where nobody can be asked");
    return false;
  }
  fmt::print(stderr, "Remove {} ({} on disk) of {}? [y/N] ", counted(files, "file"),
             human_bytes(static_cast<double>(bytes)), o.url);
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") return true;
  complain("nothing was removed");
  return false;
}

/// Removes the directory too when it is empty; true if it is gone.
bool remove_directory(FileSystem& fs, const Url& url) {
  if (!url.path.empty()) return fs.remove(url.path).ok();
  if (url.scheme != "local") return false;
  const auto outer = open_place(url.location);  // the root of a local file system is a name in its parent's
  return outer.ok() && !outer->path.empty() && outer->fs->remove(outer->path).ok();
}

Status remove_files(FileSystem& fs, const std::string& directory) {
  OpenOptions lock;
  lock.write = true;
  lock.create = Create::kIfMissing;
  lock.lock = true;
  TIER_TRY(auto held, fs.open(join(directory, "LOCK"), lock));
  TIER_CHECK(fs.remove(join(directory, "MANIFEST")));
  TIER_TRY(const auto files, list_store(fs, directory));  // anew: the directory is ours only now
  for (const StoreFile& file : files) {
    if (file.name != "LOCK") TIER_CHECK(fs.remove(join(directory, file.name), NameSync::kLater));
  }
  TIER_CHECK(fs.remove(join(directory, "LOCK"), NameSync::kLater));
  return fs.sync_directory(directory);
}

int run(const RmOptions& o) {
  const auto url = parse_url(o.url);
  if (!url.ok()) return report(url.status(), o.url);
  auto fs = open_file_system(url->file_system);
  if (!fs.ok()) return report(fs.status(), o.url);
  if (const Status s = check_manifest(**fs, url->path); !s.ok()) return report(s, o.url);
  const auto running = writer_runs(**fs, url->path);
  if (!running.ok()) return report(running.status(), o.url);
  if (*running) {
    complain("locked: a process writes this log; nothing was removed");
    return kExitFailed;
  }
  const auto files = list_store(**fs, url->path);
  if (!files.ok()) return report(files.status(), o.url);
  std::uint64_t bytes = 0;
  for (const StoreFile& file : *files) bytes += file.info.allocated;
  if (!confirmed(o, files->size(), bytes)) return kExitFailed;

  if (const Status s = remove_files(**fs, url->path); !s.ok()) return report(s, o.url);
  const bool gone = remove_directory(**fs, *url);
  fmt::print(stderr, "removed {}, {}{}\n", counted(files->size(), "file"), human_bytes(static_cast<double>(bytes)),
             gone ? "" : "; the directory stays");
  return kExitOk;
}

}  // namespace

void add_log_rm(CLI::App& noun, Action& chosen) {
  auto o = std::make_shared<RmOptions>();
  CLI::App* verb = add_verb(noun, chosen, "rm", "Remove a log for good", o, run);
  add_log_url(*verb, o->url);
  verb->add_flag("--yes", o->yes, "Do not ask");
  verb->footer(
      "Removes only the files of the log, and its directory if nothing else is in it. Refuses while a process\n"
      "writes it, and where there is no log.\n\n"
      "Example:\n"
      "  tier log rm local:///tmp/services --yes");
}

}  // namespace tier::cli
