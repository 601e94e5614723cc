/// Progress: one line on stderr, rewritten ten times a second, for work that takes longer than a second.
///
/// Silent unless stderr is a terminal. The line is erased before the verb reports.
#pragma once

#include <cstdint>
#include <string>

#include "tier/runtime.h"

namespace tier::cli {

class Progress {
 public:
  /// `total_bytes` 0: unknown, so no share and no time left.
  Progress(std::string label, std::uint64_t total_bytes);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Cheap enough for every few thousand records.
  void update(std::uint64_t records, std::uint64_t bytes) {
    if (shown_) draw(records, bytes);
  }
  void clear();

 private:
  void draw(std::uint64_t records, std::uint64_t bytes);

  std::string label_;
  std::uint64_t total_bytes_;
  bool shown_;  // stderr is a terminal
  bool drawn_ = false;
  std::uint64_t start_ns_;
  std::uint64_t next_ns_;
};

}  // namespace tier::cli
