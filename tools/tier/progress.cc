#include "progress.h"

#include <cstdio>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

#include "units.h"

namespace tier::cli {
namespace {
constexpr std::uint64_t kFirstNs = 1'000'000'000;  // anything shorter needs no line
constexpr std::uint64_t kEveryNs = 100'000'000;
}  // namespace

Progress::Progress(std::string label, std::uint64_t total_bytes)
    : label_(std::move(label)),
      total_bytes_(total_bytes),
      shown_(::isatty(STDERR_FILENO) == 1),
      start_ns_(Runtime::system().clock->monotonic_ns()),
      next_ns_(start_ns_ + kFirstNs) {}

void Progress::draw(std::uint64_t records, std::uint64_t bytes) {
  const std::uint64_t now = Runtime::system().clock->monotonic_ns();
  if (now < next_ns_) return;
  next_ns_ = now + kEveryNs;
  const double seconds = static_cast<double>(now - start_ns_) / 1e9;
  const double rate = static_cast<double>(bytes) / seconds;
  std::string line = fmt::format("{}  {}  {}  {}/s  {} records/s", label_, counted(records, "record"),
                                 human_bytes(static_cast<double>(bytes)), human_bytes(rate),
                                 human_rate(static_cast<double>(records) / seconds));
  if (total_bytes_ > 0 && bytes > 0 && bytes <= total_bytes_) {
    line += fmt::format("  {:.0f} %  {} left", 100 * static_cast<double>(bytes) / static_cast<double>(total_bytes_),
                        human_duration(static_cast<double>(total_bytes_ - bytes) / rate * 1e9));
  }
  fmt::print(stderr, "\r\033[K{}", line);
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::clear() {
  if (!drawn_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace tier::cli
