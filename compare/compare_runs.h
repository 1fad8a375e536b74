// compare/compare_runs.h - compares two runs of one trace: the entry point for tools.
//
// Both runs are read forward once, one step of each in memory; after a divergence the golden is
// read a second time, to say whose data the wrong rows hold. Never calls back: to see inside a
// step, replay both with op probes and compare again.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compare/align.h"
#include "compare/divergence.h"
#include "compare/donor.h"
#include "compare/explain.h"
#include "compare/sessions.h"
#include "compare/verdict.h"

namespace redecode {

struct CompareOptions {
  uint32_t max_ulps = 0;  // tolerance, see divergence.h; never other than 0 unless asked for
  bool allow_prefix =
      false;  // runs that do not hold the same steps may be identical in what they share
  uint32_t session_rounds =
      0;  // rounds that each session was to reach; 0: the most that one reached
  size_t max_findings = 200000;  // kept in memory to explain from, newest first
  // Names of the buffers that an op reads; only who knows the program can tell. May be empty.
  std::function<std::vector<std::string>(StepIndex, const DivergingOp&)> buffers_read;
};

struct CompareResult {
  RunHeader golden, candidate;
  uint32_t max_ulps = 0;
  Verdict verdict;
  Coverage coverage;  // all zero when the headers do not fit
  uint64_t steps_differing = 0;
  bool ops_probed = false;  // both runs were, in at least one common step
  uint64_t ops_compared = 0, ops_unmatched_golden = 0, ops_unmatched_candidate = 0;

  std::optional<Divergence> divergence;
  bool divergence_probed = false;       // both runs were probed at its step
  bool padding_row = false;             // its row is padding; known with the trace only
  std::optional<SessionPlace> session;  // of its request; known with the trace only
  // Of its step:
  uint32_t rows_compared = 0, rows_differing = 0, tokens_differing = 0;
  std::string candidate_order;  // as StepOutput::order
  std::vector<RowLabel> labels;

  std::optional<Explanation> explanation;
  uint64_t findings_total = 0;    // of the candidate
  uint64_t findings_dropped = 0;  // over max_findings
  bool sessions_known = false;    // a trace was given
  SessionSummary sessions;        // rows and requests are counted without a trace as well
};

// `trace` maps requests to sessions and rows to requests; it may be null.
// Errors: corrupt (steps or rows that do not ascend).
// Runs that cannot be compared are a verdict, not an error; so is a trace that is not theirs.
CompareResult compare_runs(const OpenRun& golden, const OpenRun& candidate, const Trace* trace,
                           const CompareOptions& options = {});

// The same from files. Errors also: missing, usage (a file of another kind), corrupt, truncated,
// version, limit.
CompareResult compare_runs(const std::filesystem::path& golden,
                           const std::filesystem::path& candidate,
                           const std::optional<std::filesystem::path>& trace,
                           const CompareOptions& options = {});

}  // namespace redecode
