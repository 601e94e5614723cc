#include "record_format.h"

#include <iterator>

#include <fmt/format.h>

namespace tier::cli {
namespace {
constexpr char kHex[] = "0123456789abcdef";
constexpr char kBase64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
}  // namespace

bool is_utf8(std::string_view text) noexcept {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const unsigned char* const end = p + text.size();
  while (p != end) {
    if (*p < 0x80) {
      ++p;
      continue;
    }
    // Lead byte -> continuation bytes, and the range of the first of them, which rules out overlong forms, surrogates
    // and what lies beyond U+10FFFF (Unicode 15, table 3-7).
    int more = 0;
    unsigned char low = 0x80;
    unsigned char high = 0xBF;
    if (*p >= 0xC2 && *p <= 0xDF) {
      more = 1;
    } else if (*p >= 0xE0 && *p <= 0xEF) {
      more = 2;
      if (*p == 0xE0) low = 0xA0;
      if (*p == 0xED) high = 0x9F;
    } else if (*p >= 0xF0 && *p <= 0xF4) {
      more = 3;
      if (*p == 0xF0) low = 0x90;
      if (*p == 0xF4) high = 0x8F;
    } else {
      return false;
    }
    if (end - p <= more || p[1] < low || p[1] > high) return false;
    for (int i = 2; i <= more; ++i) {
      if (p[i] < 0x80 || p[i] > 0xBF) return false;
    }
    p += more + 1;
  }
  return true;
}

void append_json_string(std::string& to, std::string_view utf8) {
  to.push_back('"');
  std::size_t plain = 0;  // start of the run that needs no escape
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    const auto c = static_cast<unsigned char>(utf8[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    to.append(utf8, plain, i - plain);
    plain = i + 1;
    switch (c) {
      case '"': to += "\\\""; break;
      case '\\': to += "\\\\"; break;
      case '\n': to += "\\n"; break;
      case '\r': to += "\\r"; break;
      case '\t': to += "\\t"; break;
      default:
        to += "\\u00";
        to.push_back(kHex[c >> 4]);
        to.push_back(kHex[c & 15]);
    }
  }
  to.append(utf8, plain);
  to.push_back('"');
}

void append_base64(std::string& to, ByteSpan bytes) {
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = bytes.size() - i;
    std::uint32_t group = std::to_integer<std::uint32_t>(bytes[i]) << 16;
    if (left > 1) group |= std::to_integer<std::uint32_t>(bytes[i + 1]) << 8;
    if (left > 2) group |= std::to_integer<std::uint32_t>(bytes[i + 2]);
    to.push_back(kBase64[group >> 18]);
    to.push_back(kBase64[(group >> 12) & 63]);
    to.push_back(left > 1 ? kBase64[(group >> 6) & 63] : '=');
    to.push_back(left > 2 ? kBase64[group & 63] : '=');
  }
}

void RecordWriter::write_other(const Record& record) {
  const std::string_view text = as_text(record.bytes);
  line_.clear();
  switch (format_) {
    case Format::kRaw: break;  // written by write()
    case Format::kLength: {
      const auto size = static_cast<std::uint32_t>(text.size());  // records are far below 4 GiB
      output_.put(as_text(std::as_bytes(std::span(&size, 1))));
      output_.put(text);
      return;
    }
    case Format::kHex:
      fmt::format_to(std::back_inserter(line_), "{}\t", record.sequence.value);
      for (const char c : text) {
        line_.push_back(kHex[static_cast<unsigned char>(c) >> 4]);
        line_.push_back(kHex[static_cast<unsigned char>(c) & 15]);
      }
      break;
    case Format::kJson:
      fmt::format_to(std::back_inserter(line_), "{{\"sequence\":{},\"size\":{},", record.sequence.value, text.size());
      if (is_utf8(text)) {
        line_ += "\"data\":";
        append_json_string(line_, text);
      } else {
        line_ += "\"base64\":\"";
        append_base64(line_, record.bytes);
        line_.push_back('"');
      }
      line_.push_back('}');
      break;
  }
  line_.push_back('\n');
  output_.put(line_);
}

}  // namespace tier::cli
