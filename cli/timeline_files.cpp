#include "cli/timeline_files.h"

#include <algorithm>

#include "cli/output.h"
#include "engine/price/timed_run.h"
#include "engine/timeline/perfetto.h"
#include "engine/timeline/svg.h"
#include "traces/error.h"
#include "traces/thousands.h"

namespace redecode {

std::string write_pictures(const PictureOptions& options, const Program& program,
                           Submission submission, StepIndex step,
                           std::span<const Finding> findings) {
  std::string out;
  const OpGraph graph = op_graph(program, submission);
  if (!options.timeline.empty()) {
    const TimedRun run = timed_run(program, graph, load_device(options.device), submission);
    FileSink sink(options.timeline, options.force);
    const uint64_t events = write_timeline({program, graph, run, findings, step}, sink);
    sink.close();
    out += labelled("timeline", options.timeline + ": " + with_thousands(events) + " events, " +
                                    tenths(run.step_us) + " us predicted on " + options.device +
                                    "; open it in ui.perfetto.dev");
  }
  if (!options.svg.empty()) {
    const auto shown =
        std::ranges::find_if(findings, [&](const Finding& f) { return f.step == step; });
    if (shown == findings.end())
      throw Error(ErrorCode::usage, "there is no finding to draw", "--svg");
    FileSink sink(options.svg, options.force);
    sink.write(finding_svg(program, graph, *shown));
    sink.close();
    out += labelled("picture", options.svg + ": the first finding");
  }
  return out;
}

}  // namespace redecode
