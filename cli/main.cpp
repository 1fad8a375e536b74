// cli/main.cpp - the binary: wires the commands, and turns every end into an exit code and one
// line.
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include "cli/bench_record.h"
#include "cli/check.h"
#include "cli/command.h"
#include "cli/compare.h"
#include "cli/demo.h"
#include "cli/doctor.h"
#include "cli/explain.h"
#include "cli/explore.h"
#include "cli/output.h"
#include "cli/record.h"
#include "cli/replay.h"
#include "cli/serve.h"
#include "cli/signals.h"
#include "cli/stress.h"
#include "cli/trace_command.h"
#include "cli/traffic.h"
#include "replayer/engine_instance.h"
#include "traces/error.h"

namespace redecode {
namespace {

constexpr int kUsage = 2, kEnvironment = 4, kBug = 70;

int complain(int code, const std::string& message) {
  std::fprintf(stderr, "redecode: %s\n", one_line(message).c_str());
  return code;
}

// "redecode record" for the innermost command that was named.
std::string command_path(const CLI::App& app) {
  std::string path = "redecode";
  for (const CLI::App* at = &app; at != nullptr;) {
    const auto named = at->get_subcommands();
    at = named.empty() ? nullptr : named.front();
    if (at != nullptr) path += " " + at->get_name();
  }
  return path;
}

void add_commands(CLI::App& app, CommandContext& context) {
  app.set_version_flag("--version", writer_name());
  app.require_subcommand(0, 1);
  app.footer(
      "Example:\n  redecode record -o fleet.rdt --sessions 60 --rounds 4\n"
      "Exit codes: 0 nothing found, 1 a finding, 2 usage, 3 unusable input, 4 environment, "
      "70 a bug of redecode");
  add_record(app, context);
  add_replay(app, context);
  add_compare(app, context);
  add_check(app, context);
  add_explore(app, context);
  add_explain(app, context);
  add_demo(app, context);
  add_stress(app, context);
  add_serve(app, context);
  add_trace(app, context);
  add_traffic(app, context);
  add_bench(app, context);
  add_doctor(app, context);
}

// True when the command line is whole; else `code` is the exit code and all has been said.
bool parse(CLI::App& app, int argc, char** argv, int& code) {
  try {
    app.parse(argc, argv);
    return true;
  } catch (const CLI::Success& e) {  // --help, --version
    code = app.exit(e);
  } catch (const CLI::ParseError& e) {
    code = complain(kUsage, e.what());
    std::fprintf(stderr, "Run '%s --help' for the options.\n", command_path(app).c_str());
  }
  return false;
}

int run(int argc, char** argv) {
  CommandContext context;
  context.stop = &install_signal_handlers();
  CLI::App app(
      "Records what an LLM engine decoded, decodes it again, and says where two runs part.",
      "redecode");
  add_commands(app, context);
  if (!parse(app, argc, argv, context.exit_code)) return context.exit_code;
  if (!context.run) {
    std::fputs(app.help().c_str(), stderr);
    return kUsage;
  }
  context.exit_code = context.run();
  return context.exit_code;
}

}  // namespace
}  // namespace redecode

int main(int argc, char** argv) {
  using namespace redecode;
  try {
    return run(argc, argv);
  } catch (const Error& e) {
    return complain(exit_code(e.code()), e.what());
  } catch (const std::bad_alloc&) {
    return complain(kEnvironment, "out of memory");
  } catch (const std::system_error& e) {
    return complain(kEnvironment, e.what());
  } catch (const std::exception& e) {
    return complain(kBug, std::string("bug: ") + e.what());
  }
}
