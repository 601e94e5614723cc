/// tier fs cp: copies a file between file systems, also from and to plain paths.
///
/// Invariants  the target appears whole and durable or not at all: the bytes go to a temporary name beside it, are
/// synced,
///             and take its name at the end. Runs of zeros become holes where the target can keep holes.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include <fmt/core.h>

#include "command.h"
#include "exit_codes.h"
#include "place.h"
#include "progress.h"
#include "stop.h"
#include "store.h"
#include "units.h"

namespace tier::cli {
namespace {

struct CopyOptions {
  std::string from;
  std::string to;
};

constexpr std::size_t kPiece = 1 << 20;
constexpr std::size_t kHoleUnit = 64 << 10;

bool all_zero(ByteSpan bytes) noexcept {
  return !bytes.empty() && bytes[0] == std::byte{0} &&
         std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

Status write_piece(File& target, std::uint64_t offset, ByteSpan piece, bool holes) {
  if (!holes) return target.write_at(offset, piece);
  for (std::size_t at = 0; at < piece.size(); at += kHoleUnit) {
    const ByteSpan unit = piece.subspan(at, std::min(kHoleUnit, piece.size() - at));
    if (!all_zero(unit)) TIER_CHECK(target.write_at(offset + at, unit));
  }
  return {};
}

Result<std::uint64_t> copy_bytes(File& source, File& target, bool holes, Progress& progress) {
  const auto buffer = std::make_unique<std::byte[]>(kPiece);
  std::uint64_t offset = 0;
  for (;;) {
    if (Stop::requested()) return Status(Code::kCancelled, "interrupted; nothing was left behind");
    TIER_TRY(const std::size_t n, source.read_at(offset, {buffer.get(), kPiece}));
    if (n == 0) break;
    TIER_CHECK(write_piece(target, offset, {buffer.get(), n}, holes));
    offset += n;
    progress.update(0, offset);
  }
  TIER_CHECK(target.truncate(offset));  // a hole at the end
  TIER_CHECK(target.sync(SyncKind::kAll));
  return offset;
}

Result<std::uint64_t> copy(const Place& from, const Place& to) {
  TIER_TRY(const FileInfo info, from.fs->stat(from.path));
  if (info.directory) {
    return fail(Code::kUnsupported, 0, "a directory is not copied; name the files in it", "'%s'", from.path.c_str());
  }
  TIER_TRY(const auto source, from.fs->open(from.path, {}));
  const std::string temporary = fmt::format("{}.tier-cp-{:016x}", to.path, Runtime::system().random->next());
  OpenOptions make;
  make.write = true;
  make.create = Create::kExclusive;
  TIER_TRY(auto target, to.fs->open(temporary, make));
  Progress progress("copying", info.size);
  auto copied = copy_bytes(*source, *target, to.fs->capabilities().has(Capability::kSparse), progress);
  target.reset();
  const Status renamed = copied.ok() ? to.fs->rename(temporary, to.path) : copied.status();
  if (renamed.ok()) return copied;
  // The first error is the one to tell; a temporary file that cannot be removed either is named in its name.
  if (const Status removed = to.fs->remove(temporary); !removed.ok()) complain(removed.message());
  return renamed;
}

int run(const CopyOptions& o) {
  Stop::watch();
  auto from = open_place(o.from);
  if (!from.ok()) return report(from.status(), o.from);
  auto to = open_place(o.to);
  if (!to.ok()) return report(to.status(), o.to);
  // Into a directory: under the same name.
  if (const auto there = to->fs->stat(to->path); there.ok() && there->directory) {
    to->path = join(to->path, from->path.substr(from->path.rfind('/') + 1));
  }
  Clock& clock = *Runtime::system().clock;
  const std::uint64_t start = clock.monotonic_ns();
  const auto copied = copy(*from, *to);
  if (copied.code() == Code::kCancelled) {
    complain(copied.status().text());
    return kExitInterrupted;
  }
  if (!copied.ok()) return report(copied.status(), o.to);
  const double seconds = static_cast<double>(clock.monotonic_ns() - start) / 1e9;
  fmt::print(stderr, "copied {} in {} ({}/s); durable\n", human_bytes(static_cast<double>(*copied)),
             human_duration(seconds * 1e9), human_bytes(static_cast<double>(*copied) / seconds));
  return kExitOk;
}

}  // namespace

void add_fs_cp(CLI::App& noun, Action& chosen) {
  auto o = std::make_shared<CopyOptions>();
  CLI::App* verb = add_verb(noun, chosen, "cp", "Copy a file between file systems", o, run);
  verb->add_option("FROM", o->from, "URL#path, or a plain path")->required()->type_name("");
  verb->add_option("TO", o->to, "URL#path or a plain path; a directory takes the same name")->required()->type_name("");
  verb->footer(
      "The target appears whole and durable, or not at all. One that is there is replaced.\n\n"
      "Examples:\n"
      "  tier fs cp /etc/services 'local:///var/lib/app#services'\n"
      "  tier fs cp 'local:///var/lib/app#services' .");
}

}  // namespace tier::cli
