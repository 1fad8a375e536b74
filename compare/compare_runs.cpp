#include "compare/compare_runs.h"

#include <algorithm>
#include <utility>

namespace redecode {
namespace {

const Step* find_step(const Trace& trace, StepIndex index) {
  const auto it = std::lower_bound(trace.steps.begin(), trace.steps.end(), index,
                                   [](const Step& step, StepIndex i) { return step.index < i; });
  return it != trace.steps.end() && it->index == index ? &*it : nullptr;
}

// Names the request of an op's row from the scheduled step: most rows have no output of their own.
void locate_in_trace(const Trace& trace, CompareResult& result) {
  Divergence& divergence = *result.divergence;
  const Step* step = find_step(trace, divergence.step);
  if (step == nullptr || divergence.row == kNoRow) return;
  if (divergence.row >= step->rows.size()) {
    result.padding_row = divergence.place == Place::op;
    return;
  }
  divergence.request = step->rows[divergence.row].request;
  divergence.position = step->rows[divergence.row].position;
}

void keep_first(const StepPairs& pairs, StepDifference&& step, CompareResult& result) {
  result.rows_compared = step.rows_compared;
  result.rows_differing = static_cast<uint32_t>(step.rows.size());
  result.tokens_differing = step.tokens_differing;
  result.candidate_order = pairs.candidate().order;
  result.divergence_probed = !pairs.golden().ops.empty() && !pairs.candidate().ops.empty();
  result.labels = label_rows(pairs.candidate(), step);
  result.divergence = std::move(step.first);
}

// Reads both runs to their ends.
void read_pairs(StepPairs& pairs, const CompareOptions& options, SessionCounter& sessions,
                FindingLog& findings, CompareResult& result) {
  while (pairs.next()) {
    StepDifference step = compare_step(pairs.golden(), pairs.candidate(), options.max_ulps);
    sessions.add(pairs.golden(), step);
    result.ops_probed |= !pairs.golden().ops.empty() && !pairs.candidate().ops.empty();
    result.ops_compared += step.ops_compared;
    result.ops_unmatched_golden += step.ops_unmatched_golden;
    result.ops_unmatched_candidate += step.ops_unmatched_candidate;
    if (!step.first) continue;
    if (result.steps_differing++ > 0) continue;
    findings.diverged_at(pairs.golden().step);
    keep_first(pairs, std::move(step), result);
  }
}

void explain_divergence(const CompareOptions& options, const std::vector<Finding>& findings,
                        CompareResult& result) {
  const Divergence& divergence = *result.divergence;
  std::vector<std::string> buffers;
  if (options.buffers_read && divergence.op)
    buffers = options.buffers_read(divergence.step, *divergence.op);
  result.explanation = explain(divergence, findings, buffers);
}

}  // namespace

CompareResult compare_runs(const OpenRun& open_golden, const OpenRun& open_candidate,
                           const Trace* trace, const CompareOptions& options) {
  const auto golden = open_golden();
  const auto candidate = open_candidate();
  CompareResult result;
  result.golden = golden->header();
  result.candidate = candidate->header();
  result.max_ulps = options.max_ulps;
  auto differences = header_differences(result.golden, result.candidate, options.max_ulps);
  if (trace != nullptr && trace->digest != result.golden.trace_digest) {
    differences.push_back(
        "the trace given is not the one that the golden replays: " + digest_hex(trace->digest) +
        " against " + digest_hex(result.golden.trace_digest));
  }
  if (!differences.empty()) {
    result.verdict = judge(differences, {}, {}, {}, options.allow_prefix);
    return result;
  }

  SessionMap map = trace != nullptr ? SessionMap(trace->steps) : SessionMap();
  SessionCounter sessions(map, options.session_rounds);
  FindingLog log(options.max_findings);
  StepPairs pairs(*golden, *candidate, [&](Finding&& finding) { log.add(std::move(finding)); });
  read_pairs(pairs, options, sessions, log, result);
  result.coverage = pairs.coverage();
  result.findings_total = log.total();
  result.findings_dropped = log.dropped();
  result.sessions_known = trace != nullptr;
  result.sessions = sessions.summary();

  std::optional<Finding> numeric;
  if (result.divergence) {
    const std::vector<Finding> findings = log.kept();
    if (trace != nullptr) locate_in_trace(*trace, result);
    result.session = map.find(result.divergence->request);
    explain_divergence(options, findings, result);
    numeric = numeric_finding(*result.divergence, findings);
    if (!result.labels.empty()) find_donors(*open_golden(), result.labels);
  }
  result.verdict = judge({}, result.coverage, result.divergence, numeric, options.allow_prefix);
  return result;
}

}  // namespace redecode
