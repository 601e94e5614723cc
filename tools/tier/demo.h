/// Demo: what `tier demo` does, step by step, and what it measured. scripts/quickstart runs it.
///
/// Shape       the input is copied beside the log first, so that a file that grows (a system's log) stays the same for
/// the
///             writers and for the proof. Sequence s of the log must be:
///               [0, n)      line s of the input                         appended in batch mode
///               [n, b)      line (s - n) mod n, one at a time            each waited for
///               [b, ...)    line (s - b) mod n, by the second writer     until it is killed
/// Invariants  (M1) what a step claims it has checked: a proof that fails ends the demo with an error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tier/histogram.h"
#include "tier/log.h"

namespace tier::cli {

struct DemoOptions {
  std::string input;
  std::string directory;  ///< holds the copy of the input and the log
};

class Demo {
 public:
  explicit Demo(const DemoOptions& options) : options_(options) {}
  /// kCancelled on Ctrl-C.
  Status run();

 private:
  Status prepare();
  Status append_input();
  Status measure_durable_latency();
  Status kill_a_writer();
  Status reopen();
  Status prove_records();
  Status read_by_sequence();
  Status tail();
  Status finish();
  void print_table() const;

  std::string_view expected(std::uint64_t sequence) const noexcept;
  Status open(Durability durability);

  const DemoOptions& options_;
  std::string input_path_;  ///< the copy
  std::string url_;
  std::string text_;
  std::vector<std::string_view> lines_;
  std::unique_ptr<Log> log_;
  std::uint64_t second_writer_from_ = 0;
  std::uint64_t acknowledged_ = 0;  ///< one past the last sequence that the killed writer had printed

  // Measured.
  std::uint64_t append_ns_ = 0;
  std::uint64_t writer_records_ = 0;  ///< acknowledged in writer_ns_
  std::uint64_t writer_ns_ = 0;
  Histogram durable_ns_;
  Histogram read_ns_;
  std::uint64_t open_ns_ = 0;
  LogRecovery recovery_;
  std::uint64_t replay_records_ = 0;
  std::uint64_t replay_bytes_ = 0;
  std::uint64_t replay_ns_ = 0;
  std::uint64_t log_bytes_ = 0;  ///< blocks with headers and padding, when replayed
};

}  // namespace tier::cli
