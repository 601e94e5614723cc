/// The `tier` command: tier NOUN VERB. See command.h for its shape and exit_codes.h for what it returns.
#include <csignal>
#include <cstdio>
#include <exception>

#include <fmt/core.h>

#include "command.h"
#include "exit_codes.h"
#include "tier/version.h"

namespace tier::cli {
namespace {

/// Help as a table of option, value and meaning; the library's own repeats "REQUIRED" and "Excludes" between them.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() == 0 || option->get_type_name().empty() ? "" : " " + option->get_type_name();
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string usual = option->get_default_str();
    return option->get_description() + (usual.empty() ? "" : fmt::format(" [{}]", usual));
  }
};

/// "tier log: there is no verb 'prune'" for a word where a noun or verb should stand; what the parser says otherwise.
std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  std::string verbs;
  for (const CLI::App* verb : at->get_subcommands([](const CLI::App*) { return true; })) {
    verbs += fmt::format("{}{}", verbs.empty() ? "" : ", ", verb->get_name());
  }
  if (verbs.empty()) return error.what();
  const std::vector<std::string> words = app.remaining(true);
  if (words.empty()) return fmt::format("a command is missing; one of: {}", verbs);
  return fmt::format("'{}' is no command here; one of: {}", words.front(), verbs);
}

/// The verb that the line got to, for the hint: "tier log append".
std::string command_of(const CLI::App& app) {
  std::string name = "tier";
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    name += " " + at->get_name();
  }
  return name;
}

int run(int argc, char** argv) {
  CLI::App app("Tier: files by URL and append logs on top of them.", "tier");
  app.set_version_flag("--version", "tier " TIER_VERSION, "Print the version and end");
  app.set_help_flag("--help", "Print this help and end");
  app.formatter(std::make_shared<HelpFormatter>());
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done (also when the reader of the output went away), 1 failed, 2 wrong usage,\n"
      "130 interrupted, after what was taken had been made durable.\n\n"
      "Try:\n"
      "  tier log append local:///tmp/first --input /etc/services\n"
      "  tier log cat local:///tmp/first --from 10 --count 3\n"
      "  tier log append --help");

  Action chosen;
  CLI::App* log = app.add_subcommand("log", "Append logs: many records, one order, durable by group commit");
  log->require_subcommand(1);
  add_log_create(*log, chosen);
  add_log_append(*log, chosen);
  add_log_cat(*log, chosen);
  add_log_tail(*log, chosen);
  add_log_info(*log, chosen);
  add_log_verify(*log, chosen);
  add_log_rm(*log, chosen);
  CLI::App* fs = app.add_subcommand("fs", "File systems by URL: look, copy, measure");
  fs->require_subcommand(1);
  add_fs_ls(*fs, chosen);
  add_fs_stat(*fs, chosen);
  add_fs_cp(*fs, chosen);
  add_fs_info(*fs, chosen);
  add_demo(app, chosen);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {  // --help, --version
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    if (argc == 1) {
      fmt::print(stderr, "{}", app.help());
      return kExitUsage;
    }
    complain(explain(app, e));
    hint(fmt::format("see: {} --help", command_of(app)));
    return kExitUsage;
  }
  return chosen();
}

}  // namespace
}  // namespace tier::cli

int main(int argc, char** argv) {
  // A reader that goes away is seen where the output is written (output.h).
  std::signal(SIGPIPE, SIG_IGN);
  // The library throws nothing; this is for an allocation that failed here in the command.
  try {
    return tier::cli::run(argc, argv);
  } catch (const std::exception& e) {
    tier::cli::complain(e.what());
    return tier::cli::kExitFailed;
  }
}
