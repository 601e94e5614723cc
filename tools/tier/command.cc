#include "command.h"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

#include "exit_codes.h"
#include "units.h"

namespace tier::cli {
namespace {

std::string sentence(const Status& status) {
  const std::string place = status.place();
  return place.empty() ? status.text() : fmt::format("{}: {}", place, status.text());
}

}  // namespace

void add_log_url(CLI::App& verb, std::string& url) {
  verb.add_option_function<std::string>(
          "URL",
          [&url](const std::string& text) {
            if (const auto parsed = parse_url(text); !parsed.ok()) {
              throw CLI::ValidationError("URL", sentence(parsed.status()));
            }
            url = text;
          },
          "The log: local:///directory#path, or local:///directory")
      ->required()
      ->type_name("");
}

CLI::Option* add_number(CLI::App& verb, const char* name, std::optional<std::uint64_t>& number, const char* type,
                        const char* about) {
  return verb
      .add_option_function<std::string>(
          name,
          [&number, option = std::string(name)](const std::string& text) {
            std::uint64_t value = 0;
            const char* const end = text.data() + text.size();
            const auto [rest, error] = std::from_chars(text.data(), end, value);
            if (error != std::errc{} || rest != end) {
              throw CLI::ValidationError(option, "'" + text + "' is no whole number from 0 to 18446744073709551615");
            }
            number = value;
          },
          about)
      ->type_name(type);
}

CLI::Option* add_size(CLI::App& verb, const char* name, std::uint64_t& bytes, const char* about) {
  return verb
      .add_option_function<std::string>(
          name,
          [&bytes, option = std::string(name)](const std::string& text) {
            const auto size = parse_size(text);
            if (!size.ok()) throw CLI::ValidationError(option, sentence(size.status()));
            bytes = *size;
          },
          about)
      ->type_name("SIZE");
}

CLI::Option* add_duration(CLI::App& verb, const char* name, Duration& duration, const char* about) {
  return verb
      .add_option_function<std::string>(
          name,
          [&duration, option = std::string(name)](const std::string& text) {
            const auto parsed = parse_duration(text);
            if (!parsed.ok()) throw CLI::ValidationError(option, sentence(parsed.status()));
            duration = *parsed;
          },
          about)
      ->type_name("TIME");
}

Result<std::unique_ptr<Log>> open_log_to_read(const std::string& url) {
  LogOptions options;
  options.create = Create::kNever;
  options.read_only = true;
  return Log::open(url, options);
}

int report_open_failure(const Status& status, const std::string& url) {
  const int code = report(status, url);
  if (status.code() == Code::kNotFound) {
    hint(fmt::format("make a log there with: tier log append '{}' --input FILE", url));
  }
  return code;
}

}  // namespace tier::cli
