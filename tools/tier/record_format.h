/// How cat and tail write a record.
///
/// Shape       raw     its bytes and an LF: a file that ended in LF comes back byte for byte
///             json    one object a line: {"sequence":7,"size":5,"data":"hello"}; "base64" in place of "data" where the
///             bytes
///                     are no valid UTF-8
///             hex     sequence, a tab, the bytes in hexadecimal
///             length  four little-endian bytes of size, then the bytes: any bytes can be told apart
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "output.h"
#include "tier/log.h"

namespace tier::cli {

enum class Format : std::uint8_t { kRaw, kJson, kHex, kLength };

class RecordWriter {
 public:
  RecordWriter(Output& output, Format format) : output_(output), format_(format) {}

  void write(const Record& record) {
    if (format_ == Format::kRaw) {
      output_.put(record.bytes);
      output_.put('\n');
    } else {
      write_other(record);
    }
  }

 private:
  void write_other(const Record& record);

  Output& output_;
  Format format_;
  std::string line_;  // reused
};

bool is_utf8(std::string_view text) noexcept;
void append_json_string(std::string& to, std::string_view utf8);
void append_base64(std::string& to, ByteSpan bytes);

}  // namespace tier::cli
