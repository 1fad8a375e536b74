#include "replayer/step_lab.h"

#include <algorithm>
#include <string>

#include "engine/checks/classify.h"
#include "engine/decoder/inspector.h"
#include "replayer/replay.h"
#include "traces/edit/history.h"
#include "traces/error.h"

namespace redecode {

StepLab::StepLab(const Trace& trace, StepIndex step, const Mode& mode, int threads) {
  const auto at = std::ranges::find(trace.steps, step, &Step::index);
  if (at == trace.steps.end())
    throw Error(ErrorCode::usage, "the trace has no step " + std::to_string(step));
  engine_ = std::make_unique<EngineInstance>(
      EngineRequest{trace.header.model.spec, trace.header.engine, mode, threads, false, true});
  check_model(trace, engine_->identity());
  const auto needed = requests_needed(trace.steps, step, step);
  for (auto before = trace.steps.begin(); before != at; ++before)
    engine_->decoder().restore(restrict_rows(*before, needed));
  engine_->decoder().stage(*at);
}

StepOutput StepLab::run(std::string_view order) {
  engine_->decoder().set_order(order);
  return engine_->decoder().run_staged();
}

std::vector<Finding> StepLab::inspect() {
  engine_->decoder().set_inspect(true);
  run("fifo");
  engine_->decoder().set_inspect(false);
  return engine_->decoder().inspector().findings();
}

StepStructure StepLab::structure() {
  StepStructure out;
  out.findings = inspect();
  const Decoder& decoder = engine_->decoder();
  out.program = decoder.last_program();
  out.submission = decoder.last_was_graph() ? Submission::graph : Submission::eager;
  place_persistents(*out.program.persistents, out.extents);
  place_transients(out.program, *decoder.last_bindings(), out.extents);
  HazardChecker checker(RacePairs::all);
  checker.add(decoder.last_batch().step, out.program, out.extents, out.submission, out.races);
  std::erase_if(out.races, [](const Finding& f) { return f.kind != FindingKind::race; });
  name_checks(decoder.last_batch().step, out.program, out.races);
  return out;
}

}  // namespace redecode
