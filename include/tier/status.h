/// Status: why something failed, in sixteen trivially copyable bytes.
///
/// Shape       a code to branch on, the system's errno if there was one, a static sentence that says what to do, and a
///             ticket for the place (file, offset, address, sequence) kept in a process-wide ring of recent failures.
/// Invariants  (S1) making, copying and dropping a Status never allocates.
///             (S2) a place is either the one this failure wrote or absent, never another failure's.
/// Threads     any.
/// Outcomes    codes up to kVoid are normal outcomes that callers branch on; the rest are failures of the environment,
///             of the data or of the call.
/// Cost        success: one register. Failure with a place: one short lock and a snprintf into the ring.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

namespace tier {

enum class Code : std::uint8_t {
  kOk = 0,
  // Normal outcomes.
  kNotFound,    ///< no such file, record, sequence or address (yet)
  kTruncated,   ///< was there, and has been given up by truncation or retention
  kQueueFull,   ///< no room in a queue or ring now; try again after others made progress
  kTimedOut,    ///< a deadline passed; nothing was undone, ask again
  kBusy,        ///< somebody else uses this range or object; try again
  kNotReady,    ///< recovery or preparation still runs
  kClosing,     ///< the object is being closed or is closed
  kCancelled,   ///< given up at the caller's request
  kVoid,        ///< the record was abandoned by its producer; its sequence stays spent
  // The call.
  kInvalid,      ///< an argument or option is out of range; the text names it
  kTooLarge,     ///< over a limit; the place names size and limit
  kExists,       ///< already there
  kUnsupported,  ///< this file system, build or format version cannot do it
  // The environment.
  kIo,           ///< a system call failed; see errno
  kDiskFull,     ///< no space or quota left; heals when space returns
  kAccess,       ///< permission denied or read-only
  kLocked,       ///< another owner holds the store
  kOutOfMemory,  ///< the allocator or a memory budget said no
  // The data.
  kCorruption,  ///< bytes on the medium are not what was written
  kPoisoned,    ///< a sync failed earlier: nothing more is acknowledged until reopen
};

/// "not_found", "disk_full", ...: stable names for logs and machines.
const char* code_name(Code code) noexcept;

class [[nodiscard]] Status {
 public:
  /// Success.
  constexpr Status() noexcept = default;
  /// A failure without a place. `text` must outlive the process (a literal).
  constexpr Status(Code code, const char* text, int system_errno = 0) noexcept
      : text_(text), errno_(static_cast<std::int16_t>(system_errno)), code_(code) {}

  constexpr bool ok() const noexcept { return code_ == Code::kOk; }
  constexpr explicit operator bool() const noexcept { return ok(); }
  constexpr Code code() const noexcept { return code_; }
  constexpr int system_errno() const noexcept { return errno_; }
  /// The static sentence, "" on success.
  constexpr const char* text() const noexcept { return text_ != nullptr ? text_ : ""; }
  /// Where it happened, or "" when there is no place or it is older than the ring of recent failures.
  std::string place() const;
  /// "disk_full: cannot extend the segment; free some space: file 'a/b' at 4096 (No space left on device, errno 28)".
  std::string message() const;

  /// The same failure under another code and sentence, its place and errno kept.
  constexpr Status as(Code code, const char* text) const noexcept {
    Status s = *this;
    s.code_ = code;
    s.text_ = text;
    return s;
  }

  friend Status fail(Code code, int system_errno, const char* text, const char* place_format, ...) noexcept;

 private:
  const char* text_ = nullptr;
  std::uint32_t ticket_ = 0;  // 0: no place
  std::int16_t errno_ = 0;
  Code code_ = Code::kOk;
  std::uint8_t reserved_ = 0;
};
static_assert(sizeof(Status) == 16 && std::is_trivially_copyable_v<Status>);

/// A failure with its place, printf style: fail(Code::kIo, errno, "cannot read; check the disk", "file '%s' at %llu", ...).
[[gnu::cold]] [[gnu::format(printf, 4, 5)]] Status fail(Code code, int system_errno, const char* text,
                                                        const char* place_format, ...) noexcept;

/// The code that an errno stands for: ENOSPC and EDQUOT kDiskFull, ENOENT kNotFound, EACCES/EPERM/EROFS kAccess, ...
Code code_of_errno(int system_errno) noexcept;

}  // namespace tier
