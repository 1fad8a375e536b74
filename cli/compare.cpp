#include "cli/compare.h"

#include <memory>
#include <optional>

#include "cli/output.h"
#include "compare/compare_runs.h"
#include "compare/report.h"
#include "traces/error.h"

namespace redecode {
namespace {

constexpr const char* kExample = "redecode compare golden.rdr run.rdr --trace fleet.rdt";

struct CompareCommand {
  std::string golden, candidate, trace;
  CompareOptions options;
};

int run_compare(const CommandContext& context, const CompareCommand& o) {
  std::optional<std::filesystem::path> trace;
  if (!o.trace.empty()) trace = o.trace;
  const CompareResult result = compare_runs(o.golden, o.candidate, trace, o.options);
  emit(context, report_text(result), report_json(result));
  if (result.verdict.kind != VerdictKind::incomparable) return exit_code(result.verdict.kind);
  std::string reasons;
  for (const std::string& reason : result.verdict.reasons)
    reasons += (reasons.empty() ? "" : "; ") + reason;
  throw Error(ErrorCode::incomparable, "cannot be compared: " + reasons,
              o.golden + " and " + o.candidate);
}

}  // namespace

void add_compare(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      add_command(app, context, "compare", "Compare two runs of one trace, bit for bit", kExample);
  auto o = std::make_shared<CompareCommand>();
  command->add_option("golden", o->golden, "Run that is right (.rdr)")->required();
  command->add_option("candidate", o->candidate, "Run to judge (.rdr)")->required();
  command->add_option("--trace", o->trace, "Their trace (.rdt): names sessions");
  command->add_option("--max-ulps", o->options.max_ulps, "Tolerance in units in the last place")
      ->check(CLI::Range(uint64_t{0}, uint64_t{UINT32_MAX}));
  command->add_flag("--allow-prefix", o->options.allow_prefix,
                    "Runs of different length may be identical in what they share");
  on_run(command, context, [&context, o] { return run_compare(context, *o); });
}

}  // namespace redecode
