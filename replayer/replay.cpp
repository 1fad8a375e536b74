#include "replayer/replay.h"

#include <algorithm>
#include <memory>
#include <set>

#include "replayer/across_gaps.h"
#include "traces/edit/history.h"
#include "traces/error.h"
#include "traces/run_file.h"

namespace redecode {
namespace {

void check_range(const Trace& trace, const StepRange& range) {
  if (range.first > range.last)
    throw Error(
        ErrorCode::usage,
        "the range is empty: " + std::to_string(range.first) + ".." + std::to_string(range.last),
        "--steps");
  if (trace.steps.empty()) throw Error(ErrorCode::usage, "the trace has no steps", "--steps");
  if (range.first > trace.steps.back().index)
    throw Error(ErrorCode::usage,
                "step " + std::to_string(range.first) + " is beyond the last, " +
                    std::to_string(trace.steps.back().index),
                "--steps");
}

// What the rows of the range need must be there from their first token on.
void check_whole(const Trace& trace, const StepRange& range) {
  if (!trace.start.running.empty())
    throw Error(ErrorCode::incomparable,
                "the trace begins while " + std::to_string(trace.start.running.size()) +
                    " requests run, and their first steps are not in it: replay the whole set, or "
                    "take a part out of it with `redecode trace cut`");
  for (const Gap& gap : trace.gaps) {
    if (gap.first > range.last) continue;
    const StepIndex first = trace.steps.front().index;
    throw Error(
        ErrorCode::incomparable,
        to_text(gap) + "; " +
            (gap.first > first ? "replay what comes before: --steps " + std::to_string(first) +
                                     ".." + std::to_string(gap.first - 1)
                               : "nothing before it can be replayed"));
  }
}

void check_twin(const Decoder& a, const StepOutput& of_a, const Decoder& b,
                const StepOutput& of_b) {
  const std::string where = "step " + std::to_string(of_a.step);
  if (a.last_ready_digest() != b.last_ready_digest())
    throw Error(ErrorCode::corrupt,
                "the same step was offered other choices the second time: something beside the "
                "order decides, a bug of redecode",
                where);
  if (digest_output(of_a) != digest_output(of_b))
    throw Error(ErrorCode::corrupt,
                "the same choices gave another output the second time, a bug of redecode", where);
}

}  // namespace

void check_model(const Trace& trace, const ModelIdentity& model) {
  const ModelIdentity& recorded = trace.header.model;
  const auto differ = [&](const std::string& what, Digest is, Digest was) {
    throw Error(ErrorCode::incomparable,
                what + " " + digest_hex(is) + ", the trace was recorded with " + digest_hex(was) +
                    " ('" + recorded.spec + "')",
                "model '" + model.spec + "'");
  };
  if (recorded.config_digest != model.config_digest)
    differ("its configuration is", model.config_digest, recorded.config_digest);
  if (recorded.weights_digest != model.weights_digest)
    differ("its weights are", model.weights_digest, recorded.weights_digest);
}

RunHeader run_header(const Trace& trace, const Mode& mode, const ModelIdentity& model) {
  RunHeader header;
  header.writer = writer_name();
  header.model = model;
  header.engine = trace.header.engine;
  header.mode = mode;
  header.trace_digest = trace.digest;
  return header;
}

ReplayResult replay(const Trace& trace, const ReplayOptions& options) {
  check_range(trace, options.range);
  if (!options.across_gaps) check_whole(trace, options.range);
  AcrossGaps across(trace.gaps, !trace.start.running.empty());
  const EngineRequest request{options.model.empty() ? trace.header.model.spec : options.model,
                              trace.header.engine,
                              options.mode,
                              options.threads,
                              options.inspect,
                              true};
  EngineInstance engine(request);
  std::unique_ptr<EngineInstance> twin;
  if (options.self_check) twin = std::make_unique<EngineInstance>(request);
  check_model(trace, engine.identity());
  engine.decoder().set_canary(options.canary);
  ReplayResult result;
  result.header = run_header(trace, options.mode, engine.identity());
  const StepRange range = options.range;
  const auto needed = range.first > trace.steps.front().index
                          ? requests_needed(trace.steps, range.first, range.last)
                          : std::set<RequestId>{};
  const auto total = static_cast<uint64_t>(
      std::ranges::count_if(trace.steps, [&](const Step& s) { return s.index <= range.last; }));
  uint64_t done = 0;
  for (const Step& recorded : trace.steps) {
    if (recorded.index > range.last) break;
    const Step step = options.across_gaps ? across.filter(recorded) : recorded;
    if (options.stop && options.stop()) {
      result.stopped = true;
      break;
    }
    if (step.index < range.first) {
      engine.decoder().restore(restrict_rows(step, needed));
      if (twin) twin->decoder().restore(restrict_rows(step, needed));
      ++result.restored_steps;
    } else {
      const StepOutput output = engine.decoder().run(step);
      if (twin) check_twin(engine.decoder(), output, twin->decoder(), twin->decoder().run(step));
      result.digest = combine(result.digest, digest_output(output));
      ++result.steps;
      result.rows += step.rows.size();
      result.outputs += output.rows.size();
      result.graph_steps += engine.decoder().last_was_graph() ? 1 : 0;
      if (options.output) options.output(output);
    }
    if (options.progress) options.progress(++done, total);
  }
  result.left_out.assign(across.left_out().begin(), across.left_out().end());
  result.rows_left_out = across.rows_left_out();
  const Inspector& inspector = engine.decoder().inspector();
  result.findings = inspector.findings();
  for (size_t i = 0; i < result.findings.size(); ++i)
    result.finding_counts.push_back(inspector.count(i));
  return result;
}

}  // namespace redecode
