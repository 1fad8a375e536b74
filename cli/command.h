// cli/command.h - CommandContext: what every command of the binary shares, and how one is added.
//
// A command's add function declares its options and calls on_run; main parses, then runs it. It
// prints its result with emit (cli/output.h), and says by its return value how the process ends: 0
// nothing found, 1 a finding. All other ends are thrown: Error, see traces/error.h.
#pragma once
#include <CLI/CLI.hpp>
#include <atomic>
#include <functional>
#include <string>

namespace redecode {

struct CommandContext {
  bool json = false;                        // exactly one JSON object on stdout
  bool quiet = false;                       // no progress on stderr
  const std::atomic<bool>* stop = nullptr;  // set by SIGINT and SIGTERM; polled between steps
  int exit_code = 0;                        // of the process, once the command has run
  std::function<int()> run;                 // the command that was named, set while parsing

  bool stopped() const { return stop != nullptr && stop->load(std::memory_order_relaxed); }
};

// A subcommand of `parent` with --json, --quiet and an Example section. `example` is one or more
// command lines.
inline CLI::App* add_command(CLI::App& parent, CommandContext& context, const std::string& name,
                             const std::string& summary, const std::string& example) {
  CLI::App* command = parent.add_subcommand(name, summary);
  command->footer("Example:\n  " + example);
  command->add_flag("--json", context.json, "Print one JSON object on stdout");
  command->add_flag("--quiet", context.quiet, "No progress on stderr");
  return command;
}

// `run` is called after all options are parsed; its result is the exit code.
inline void on_run(CLI::App* command, CommandContext& context, std::function<int()> run) {
  command->callback([&context, run = std::move(run)] { context.run = run; });
}

}  // namespace redecode
