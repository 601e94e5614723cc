#include "units.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include <fmt/core.h>

namespace tier::cli {
namespace {

/// "64MiB" into 64 and "mib"; false if it does not begin with a number.
bool split_unit(std::string_view text, double& number, std::string& unit) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc{} || !(number >= 0)) return false;
  for (const char* c = rest; c != end; ++c) {
    unit.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(*c))));
  }
  return true;
}

/// What one of the unit is worth; 0 for an unknown one.
double size_factor(std::string_view unit) {
  static constexpr std::string_view kLetters = "kmgt";
  if (unit.empty() || unit == "b") return 1;
  const std::size_t letter = kLetters.find(unit[0]);
  const std::string_view rest = unit.substr(1);
  if (letter == std::string_view::npos || (!rest.empty() && rest != "b" && rest != "ib")) return 0;
  return std::pow(1024.0, static_cast<double>(letter + 1));
}

double duration_factor(std::string_view unit) {
  if (unit == "ns") return 1;
  if (unit == "us") return 1e3;
  if (unit == "ms") return 1e6;
  if (unit.empty() || unit == "s") return 1e9;
  if (unit == "m" || unit == "min") return 60e9;
  if (unit == "h") return 3600e9;
  return 0;
}

Status refuse(const char* why, std::string_view text) {
  return fail(Code::kInvalid, 0, why, "'%.*s'", static_cast<int>(std::min<std::size_t>(text.size(), 80)), text.data());
}

}  // namespace

Result<std::uint64_t> parse_size(std::string_view text) {
  double number = 0;
  std::string unit;
  const double bytes = split_unit(text, number, unit) ? number * size_factor(unit) : -1;
  if (!(bytes >= 0) || bytes > 9e18 || bytes != std::floor(bytes) || size_factor(unit) == 0) {
    return refuse("no size; write bytes, or a number with K, M, G or T as in 64MiB", text);
  }
  return static_cast<std::uint64_t>(bytes);
}

Result<Duration> parse_duration(std::string_view text) {
  double number = 0;
  std::string unit;
  const double ns = split_unit(text, number, unit) ? number * duration_factor(unit) : -1;
  if (!(ns >= 0) || ns > 9e18 || duration_factor(unit) == 0) {
    return refuse("no duration; write seconds, or a number with ms, s, m or h as in 500ms", text);
  }
  return Duration(static_cast<std::int64_t>(ns));
}

std::string human_bytes(double bytes) {
  static constexpr std::array<const char*, 6> kNames = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kNames.size()) {
    bytes /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.0f} B", bytes);
  return fmt::format("{:.{}f} {}", bytes, bytes < 10 ? 2 : bytes < 100 ? 1 : 0, kNames[unit]);
}

std::string human_rate(double per_second) {
  if (per_second >= 1e9) return fmt::format("{:.2f} G", per_second / 1e9);
  if (per_second >= 1e6) return fmt::format("{:.2f} M", per_second / 1e6);
  if (per_second >= 1e3) return fmt::format("{:.1f} k", per_second / 1e3);
  return fmt::format("{:.0f}", per_second);
}

std::string human_duration(double ns) {
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 1e6) return fmt::format("{:.3g} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.3g} ms", ns / 1e6);
  if (ns < 120e9) return fmt::format("{:.3g} s", ns / 1e9);
  if (ns < 7200e9) return fmt::format("{:.0f} min", ns / 60e9);
  return fmt::format("{:.1f} h", ns / 3600e9);
}

std::string with_commas(std::uint64_t n) {
  std::string s = std::to_string(n);
  for (std::size_t at = s.size(); at > 3;) {
    at -= 3;
    s.insert(at, 1, ',');
  }
  return s;
}

std::string counted(std::uint64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", with_commas(n), noun, n == 1 ? "" : "s");
}

}  // namespace tier::cli
