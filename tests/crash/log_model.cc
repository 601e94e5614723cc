#include "crash/log_model.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace tier::testing {
namespace {

/// A record in a message: its length and how it begins.
std::string show(std::string_view bytes) {
  std::string text = std::to_string(bytes.size()) + " bytes ";
  for (const char c : bytes.substr(0, 12)) {
    char hex[3];
    std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    text += hex;
  }
  return text;
}

using ull = unsigned long long;

}  // namespace

bool LogModel::fail(const char* format, ...) {
  if (!failure_.empty()) return false;
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  failure_ = text;
  return false;
}

LogModel::Entry& LogModel::entry(std::uint64_t sequence) {
  if (sequence >= entries_.size()) entries_.resize(sequence + 1);
  return entries_[sequence];
}

void LogModel::taken(Ticket ticket, std::uint64_t first) {
  const auto count = static_cast<std::uint32_t>(ticket->records.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    Entry& e = entry(first + i);
    if (e.kind != Entry::Kind::kUnknown) {
      fail("sequence %llu was given twice", static_cast<ull>(first + i));
      return;
    }
    e = {Entry::Kind::kRecord, i, count, std::move(ticket->records[i])};
    if (const auto seen = seen_.find(first + i); seen != seen_.end()) {
      if (seen->second != e.bytes)
        fail("a reader saw %s at sequence %llu, where %s was appended", show(seen->second).c_str(),
             static_cast<ull>(first + i), show(e.bytes).c_str());
      seen_.erase(seen);
    }
  }
  limbo_.erase(ticket);
}

void LogModel::abandoned(std::uint64_t sequence) {
  Entry& e = entry(sequence);
  if (e.kind != Entry::Kind::kUnknown) fail("sequence %llu was given twice", static_cast<ull>(sequence));
  e = {Entry::Kind::kVoid, 0, 1, {}};
}

void LogModel::durable(std::uint64_t end) {
  durable_ = std::max(durable_, end);
  written(end);
}

void LogModel::first(std::uint64_t first) {
  if (first > first_asked_)
    fail("records up to %llu are gone, but only %llu were given up", static_cast<ull>(first),
         static_cast<ull>(first_asked_));
  if (first > durable_)
    fail("records up to %llu are given up, durable are %llu", static_cast<ull>(first), static_cast<ull>(durable_));
  first_ = std::max(first_, first);
}

void LogModel::saw(std::uint64_t sequence, std::string_view bytes) {
  if (sequence < entries_.size() && entries_[sequence].kind != Entry::Kind::kUnknown) {
    const Entry& e = entries_[sequence];
    if (e.kind == Entry::Kind::kVoid)
      fail("a reader saw a record at sequence %llu, which was abandoned", static_cast<ull>(sequence));
    else if (e.bytes != bytes)
      fail("a reader saw %s at sequence %llu, where %s was appended", show(bytes).c_str(), static_cast<ull>(sequence),
           show(e.bytes).c_str());
    return;
  }
  const auto [at, fresh] = seen_.emplace(sequence, bytes);
  if (!fresh && at->second != bytes)
    fail("two readers saw different records at sequence %llu", static_cast<ull>(sequence));
}

/// Whether the unknown sequences from `sequence` on are whole attempts, each used once.
bool LogModel::explain_limbo(const Found& found, std::uint64_t sequence, std::vector<Ticket>& unused) const {
  const auto unknown = [&](std::uint64_t s) {
    return s >= entries_.size() || entries_[s].kind == Entry::Kind::kUnknown;
  };
  while (sequence < found.to && !unknown(sequence)) ++sequence;
  if (sequence >= found.to) return true;
  for (std::size_t i = 0; i < unused.size(); ++i) {
    const std::vector<std::string>& records = unused[i]->records;
    if (found.to - sequence < records.size()) continue;
    bool fits = true;
    for (std::size_t j = 0; j < records.size() && fits; ++j) {
      const auto& there = found.records[sequence + j - found.from];
      fits = unknown(sequence + j) && there && *there == records[j];
    }
    if (!fits) continue;
    const Ticket used = unused[i];
    unused.erase(unused.begin() + static_cast<std::ptrdiff_t>(i));
    if (explain_limbo(found, sequence + used->records.size(), unused)) return true;
    unused.insert(unused.begin() + static_cast<std::ptrdiff_t>(i), used);
  }
  return false;
}

bool LogModel::check(const Found& found, bool killed) {
  if (found.from < first_ || found.from > std::max(first_asked_, first_))
    return fail("the log begins at %llu; truncation acknowledged up to %llu, asked for up to %llu",
                static_cast<ull>(found.from), static_cast<ull>(first_), static_cast<ull>(first_asked_));  // Q3
  if (found.to < durable_)
    return fail("acknowledged records are lost: durable up to %llu, found up to %llu", static_cast<ull>(durable_),
                static_cast<ull>(found.to));  // Q1
  if (killed && found.to < written_)
    return fail("written records are lost after a kill: written up to %llu, found up to %llu",
                static_cast<ull>(written_), static_cast<ull>(found.to));
  if (found.to < entries_.size() && entries_[found.to].batch_at != 0)
    return fail("the log ends at %llu, inside a batch of %u", static_cast<ull>(found.to), entries_[found.to].batch_of);
  for (std::uint64_t s = found.from; s < found.to; ++s) {
    const auto& there = found.records[s - found.from];
    if (s < entries_.size() && entries_[s].kind == Entry::Kind::kVoid) {
      if (there)
        return fail("sequence %llu was abandoned and has a record: %s", static_cast<ull>(s), show(*there).c_str());
    } else if (s < entries_.size() && entries_[s].kind == Entry::Kind::kRecord) {
      if (!there || *there != entries_[s].bytes)
        return fail("sequence %llu holds %s, appended was %s", static_cast<ull>(s),
                    there ? show(*there).c_str() : "a void record", show(entries_[s].bytes).c_str());
    } else if (const auto seen = seen_.find(s); seen != seen_.end() && (!there || *there != seen->second)) {
      return fail("sequence %llu holds another record than the one that a reader saw", static_cast<ull>(s));
    }
  }
  std::vector<Ticket> unused;
  for (auto it = limbo_.begin(); it != limbo_.end(); ++it) unused.push_back(it);
  if (!explain_limbo(found, found.from, unused))
    return fail("between %llu and %llu are records that nobody appended there, or half a batch",
                static_cast<ull>(found.from),
                static_cast<ull>(found.to));  // Q2
  return true;
}

void LogModel::adopt(const Found& found) {
  entries_.resize(found.to);
  for (std::uint64_t s = 0; s < found.to; ++s) {
    Entry& e = entries_[s];
    e.batch_at = 0;
    e.batch_of = 1;
    if (s < found.from) {
      e = {Entry::Kind::kVoid, 0, 1, {}};
    } else if (e.kind == Entry::Kind::kUnknown) {
      const auto& there = found.records[s - found.from];
      e.kind = there ? Entry::Kind::kRecord : Entry::Kind::kVoid;
      e.bytes = there.value_or("");
    }
  }
  limbo_.clear();
  seen_.clear();
  durable_ = written_ = found.to;
  first_ = found.from;
  first_asked_ = found.from;
}

}  // namespace tier::testing
