/// LogCursor: the one way to read records in order; see Cursor in tier/log.h.
#pragma once

#include <memory>

#include "log/block_reader.h"
#include "log/read_state.h"
#include "tier/log.h"

namespace tier {

class LogCursor final : public Cursor {
 public:
  LogCursor(std::shared_ptr<ReadState> state, Sequence from, Sequence to, const CursorOptions& options);

  Result<std::optional<Record>> next() override;
  Result<Record> wait_next(Deadline until) override;
  Sequence position() const noexcept override { return Sequence{sequence_}; }
  Status seek(Sequence to) override;

  /// The record at position(), void ones included; false at the end of what is visible.
  struct Raw {
    Record record;
    bool is_void = false;
  };
  Result<bool> next_raw(Raw& out);
  /// The position between two blocks just before the block that holds `sequence`.
  Result<LogPosition> position_before(std::uint64_t sequence);

 private:
  const Frontier& visible() const noexcept { return options_.committed ? state_->committed : state_->durable; }
  enum class Taken : std::uint8_t { kRecord, kBlockDone, kDamaged };
  Taken take(Raw& out) noexcept;
  Result<bool> load_block();
  Status take_block();
  Status damaged_frame() const;
  Status step_over(std::uint64_t sequence);
  Result<LogPosition> nearest_anchor(std::uint64_t sequence);
  Status damaged(const LogPosition& at, const char* what) const;

  std::shared_ptr<ReadState> state_;
  CursorOptions options_;
  BlockReader reader_;
  std::uint64_t to_;
  std::uint64_t sequence_;           // next to give
  bool located_ = false;             // next_ is known
  LogPosition next_;                 // behind the block in hand
  Block block_;
  const std::byte* at_ = nullptr;    // within block_, the frame of record in_block_
  std::uint64_t in_block_ = 0;
  std::uint64_t block_end_ = 0;      // one past the last sequence of block_; 0: no block in hand
};

}  // namespace tier
