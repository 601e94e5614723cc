#include "log/manifest.h"

#include <cstring>

namespace tier {
namespace {

std::uint32_t checksum(const log_format::LogManifest& m) noexcept {
  return crc32c({reinterpret_cast<const std::byte*>(&m) + 4, sizeof m - 4});
}

}  // namespace

Status parse_manifest(const Engine& engine, LogPosition& first) {
  first = {};
  const ByteSpan data = engine.owner_data();
  if (data.empty()) return {};
  log_format::LogManifest m{};
  if (data.size() < sizeof m)
    return fail(Code::kCorruption, 0, "the manifest's log part is too short; restore it from a copy", "log '%s', %zu bytes",
                engine.path().c_str(), data.size());
  std::memcpy(&m, data.data(), sizeof m);
  if (m.crc != checksum(m))
    return fail(Code::kCorruption, 0, "the manifest's log part does not check; restore it from a copy", "log '%s'",
                engine.path().c_str());
  if (m.version > log_format::kVersion)
    return fail(Code::kUnsupported, 0, "this log was written by a newer version; upgrade to read it",
                "log '%s', version %u, this build reads up to %u", engine.path().c_str(), m.version,
                log_format::kVersion);
  first.sequence = m.first_sequence;
  first.end = m.first_position;
  return {};
}

Status store_manifest(Engine& engine, const LogPosition& first) {
  log_format::LogManifest m{};
  m.version = log_format::kVersion;
  m.first_sequence = first.sequence;
  m.first_position = first.end;
  m.crc = checksum(m);
  return engine.put_owner_data({reinterpret_cast<const std::byte*>(&m), sizeof m});
}

}  // namespace tier
