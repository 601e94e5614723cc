#include "tier/status.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace tier {
namespace {

/// The places of the most recent failures (S2). A spin flag guards it: failures are rare, the section is a copy, and a
/// Status may be made where nothing can be handed in.
struct PlaceRing {
  static constexpr std::uint32_t kSlots = 256;
  static constexpr std::size_t kText = 240;
  struct Slot {
    std::uint32_t ticket = 0;
    char text[kText] = {};
  };
  std::atomic_flag busy = ATOMIC_FLAG_INIT;
  std::uint32_t next = 0;
  std::array<Slot, kSlots> slots;

  void lock() noexcept {
    while (busy.test_and_set(std::memory_order_acquire)) {  // [P1] pairs with unlock()
    }
  }
  void unlock() noexcept { busy.clear(std::memory_order_release); }  // [P1]
};

constinit PlaceRing places;

}  // namespace

const char* code_name(Code code) noexcept {
  switch (code) {
    case Code::kOk: return "ok";
    case Code::kNotFound: return "not_found";
    case Code::kTruncated: return "truncated";
    case Code::kQueueFull: return "queue_full";
    case Code::kTimedOut: return "timed_out";
    case Code::kBusy: return "busy";
    case Code::kNotReady: return "not_ready";
    case Code::kClosing: return "closing";
    case Code::kCancelled: return "cancelled";
    case Code::kVoid: return "void";
    case Code::kInvalid: return "invalid";
    case Code::kTooLarge: return "too_large";
    case Code::kExists: return "exists";
    case Code::kUnsupported: return "unsupported";
    case Code::kIo: return "io";
    case Code::kDiskFull: return "disk_full";
    case Code::kAccess: return "access";
    case Code::kLocked: return "locked";
    case Code::kOutOfMemory: return "out_of_memory";
    case Code::kCorruption: return "corruption";
    case Code::kPoisoned: return "poisoned";
  }
  return "unknown";
}

Code code_of_errno(int system_errno) noexcept {
  switch (system_errno) {
    case 0: return Code::kOk;
    case ENOENT: return Code::kNotFound;
    case EEXIST: return Code::kExists;
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return Code::kDiskFull;
    case EACCES:
    case EPERM:
    case EROFS: return Code::kAccess;
    case ENOMEM: return Code::kOutOfMemory;
    case EOPNOTSUPP:
    case ENOSYS: return Code::kUnsupported;
    case EBUSY: return Code::kBusy;
    case ETIMEDOUT: return Code::kTimedOut;
    case EINVAL:
    case ENOTDIR:
    case EISDIR:
    case ENOTEMPTY:
    case ENAMETOOLONG:
    case ELOOP:
    case EXDEV: return Code::kInvalid;
    default: return Code::kIo;
  }
}

Status fail(Code code, int system_errno, const char* text, const char* place_format, ...) noexcept {
  char place[PlaceRing::kText];
  std::va_list args;
  va_start(args, place_format);
  std::vsnprintf(place, sizeof place, place_format, args);
  va_end(args);

  Status s(code, text, system_errno);
  places.lock();
  if (++places.next == 0) ++places.next;  // ticket 0 means none
  s.ticket_ = places.next;
  PlaceRing::Slot& slot = places.slots[s.ticket_ % PlaceRing::kSlots];
  slot.ticket = s.ticket_;
  std::memcpy(slot.text, place, sizeof place);
  places.unlock();
  return s;
}

std::string Status::place() const {
  if (ticket_ == 0) return {};
  char text[PlaceRing::kText] = {};
  places.lock();
  const PlaceRing::Slot& slot = places.slots[ticket_ % PlaceRing::kSlots];
  if (slot.ticket == ticket_) std::memcpy(text, slot.text, sizeof text);  // S2
  places.unlock();
  return text;
}

std::string Status::message() const {
  std::string m = code_name(code_);
  if (ok()) return m;
  m += ": ";
  m += text();
  if (const std::string where = place(); !where.empty()) {
    m += ": ";
    m += where;
  }
  if (errno_ != 0) {
    char buffer[128];
    m += " (";
    m += strerror_r(errno_, buffer, sizeof buffer);
    m += ", errno ";
    m += std::to_string(errno_);
    m += ')';
  }
  return m;
}

}  // namespace tier
