/// The verbs of the command and what they share: `tier NOUN VERB`, long options, one file a verb.
///
/// A verb adds itself to its noun; parsing chooses one action, which main() runs after the whole line was understood.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "tier/log.h"

namespace tier::cli {

/// What the command line asked for; returns the exit code.
using Action = std::function<int()>;

void add_log_create(CLI::App& noun, Action& chosen);
void add_log_append(CLI::App& noun, Action& chosen);
void add_log_cat(CLI::App& noun, Action& chosen);
void add_log_tail(CLI::App& noun, Action& chosen);
void add_log_info(CLI::App& noun, Action& chosen);
void add_log_verify(CLI::App& noun, Action& chosen);
void add_log_rm(CLI::App& noun, Action& chosen);
void add_fs_ls(CLI::App& noun, Action& chosen);
void add_fs_stat(CLI::App& noun, Action& chosen);
void add_fs_cp(CLI::App& noun, Action& chosen);
void add_fs_info(CLI::App& noun, Action& chosen);
void add_demo(CLI::App& app, Action& chosen);

/// A verb's options live in a shared struct from the moment the verb is added until its action has run.
template <class Options>
CLI::App* add_verb(CLI::App& noun, Action& chosen, const char* name, const char* about,
                   std::shared_ptr<Options> options, int (*run)(const Options&)) {
  CLI::App* verb = noun.add_subcommand(name, about);
  verb->callback([options, run, &chosen] { chosen = [options, run] { return run(*options); }; });
  return verb;
}

// Options that are checked while the line is parsed, so that a wrong one changes nothing.

/// A store's URL, first on the line: "local:///dir#path".
void add_log_url(CLI::App& verb, std::string& url);
/// A count or sequence: digits only.
CLI::Option* add_number(CLI::App& verb, const char* name, std::optional<std::uint64_t>& number, const char* type,
                        const char* about);
CLI::Option* add_size(CLI::App& verb, const char* name, std::uint64_t& bytes, const char* about);
CLI::Option* add_duration(CLI::App& verb, const char* name, Duration& duration, const char* about);

template <class Enum>
CLI::Option* add_choice(CLI::App& verb, const char* name, Enum& value,
                        std::initializer_list<std::pair<const char*, Enum>> choices, const char* about) {
  std::string names;
  std::string current;
  std::map<std::string, Enum> known;
  for (const auto& [text, meaning] : choices) {
    names += (names.empty() ? "" : "|") + std::string(text);
    if (meaning == value) current = text;
    known.emplace(text, meaning);
  }
  return verb
      .add_option_function<std::string>(
          name,
          [&value, known, names, option = std::string(name)](const std::string& text) {
            const auto hit = known.find(text);
            if (hit == known.end()) throw CLI::ValidationError(option, "'" + text + "' is none of " + names);
            value = hit->second;
          },
          about)
      ->type_name(names)
      ->default_str(current);
}

/// Opens a log to read it, also beside a running writer.
Result<std::unique_ptr<Log>> open_log_to_read(const std::string& url);
/// Complains about a log that could not be opened, and says what to try.
int report_open_failure(const Status& status, const std::string& url);

}  // namespace tier::cli
