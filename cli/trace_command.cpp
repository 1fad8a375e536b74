#include "cli/trace_command.h"

#include <memory>
#include <string>

#include "cli/output.h"
#include "cli/step_range.h"
#include "cli/trace_convert.h"
#include "cli/trace_edit.h"
#include "cli/whole_number.h"
#include "traces/error.h"
#include "traces/inspect.h"

namespace redecode {
namespace {

struct TraceFile {
  std::string path, steps;
  uint64_t limit = DumpOptions{}.limit;
};

int run_info(const CommandContext& context, const TraceFile& o) {
  const FileInfo info = inspect_file(o.path);
  emit(context, to_text(info), to_json(info));
  return 0;
}

int run_dump(const CommandContext& context, const TraceFile& o) {
  const StepRange range = parse_step_range(o.steps);
  DumpOptions options;
  options.first = range.first;
  options.last = range.last;
  options.limit = o.limit;
  options.json = context.json;
  const std::string text = dump_file(o.path, options);
  emit(context, text, text);
  return 0;
}

int run_verify(const CommandContext& context, const TraceFile& o) {
  const VerifyResult result = verify_file(o.path);
  emit(context, to_text(result), to_json(result));
  if (!result.sound) throw Error(result.code, result.fault, result.where);
  return result.info.summary.end == FileEnd::clean ? 0 : 1;
}

using Run = int (*)(const CommandContext&, const TraceFile&);

CLI::App* add(CLI::App& parent, CommandContext& context, const std::string& name,
              const std::string& summary, const std::shared_ptr<TraceFile>& o, Run run) {
  CLI::App* command =
      add_command(parent, context, name, summary, "redecode trace " + name + " fleet.rdt");
  command->add_option("file", o->path, "Trace (.rdt) or run (.rdr)")->required();
  on_run(command, context, [&context, o, run] { return run(context, *o); });
  return command;
}

}  // namespace

void add_trace(CLI::App& app, CommandContext& context) {
  CLI::App* trace = app.add_subcommand("trace", "What is in a trace or run file");
  trace->footer("Example:\n  redecode trace info fleet.rdt");
  trace->require_subcommand(1);
  auto o = std::make_shared<TraceFile>();
  add(*trace, context, "info", "Header and totals", o, run_info);
  CLI::App* dump = add(*trace, context, "dump", "Its records, one a line", o, run_dump);
  dump->add_option("--steps", o->steps, "Only steps A..B, both inclusive");
  dump->add_option("--limit", o->limit, "Records shown at most")
      ->capture_default_str()
      ->check(whole_number());
  add(*trace, context, "verify",
      "Check every byte; exit 1 when the file is cut, 3 when it is damaged", o, run_verify);
  add_trace_edit(*trace, context);
  add_trace_convert(*trace, context);
}

}  // namespace redecode
