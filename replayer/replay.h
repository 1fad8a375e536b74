// replayer/replay.h - decodes a recorded trace again in a chosen mode. The scheduler takes no part:
// the batches are the recorded ones.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "replayer/engine_instance.h"
#include "traces/finding.h"
#include "traces/header.h"
#include "traces/output.h"
#include "traces/trace_file.h"

namespace redecode {

struct StepRange {
  StepIndex first = 0;
  StepIndex last = UINT64_MAX;  // inclusive
};

struct ReplayOptions {
  Mode mode;
  std::string model;  // empty: the trace's own
  int threads = 1;
  bool inspect = true;
  bool canary = false;       // check which KV pages each step changes
  bool across_gaps = false;  // go on after lost steps, see across_gaps.h
  // Decode every step twice, side by side: what was ready must be the same each time. Errors:
  // corrupt, naming the step, where it is not: uncontrolled nondeterminism of our own.
  bool self_check = false;
  StepRange range;
  // Called after each replayed step of the range, in order; may be empty.
  std::function<void(const StepOutput&)> output;
  // Steps done of steps to do, restored ones included; may be empty.
  std::function<void(uint64_t done, uint64_t total)> progress;
  // Asked between steps; true ends the replay early. May be empty.
  std::function<bool()> stop;
};

struct ReplayResult {
  RunHeader header;
  Digest digest = 0;  // of all outputs in order: equal digests, equal tokens and logits
  uint64_t steps = 0, rows = 0, outputs = 0, restored_steps = 0;
  uint64_t graph_steps = 0;  // of `steps`, those that a captured graph ran
  std::vector<Finding> findings;
  std::vector<uint64_t> finding_counts;
  std::vector<RequestId> left_out;  // with across_gaps: not whole since a gap
  uint64_t rows_left_out = 0;
  bool stopped = false;
};

// A step range other than the whole trace restores the KV first: earlier rows of the requests
// concerned are decoded by a clean eager single-stream pass, whatever the mode. Errors:
// incomparable (another model or weights than the trace's; steps are missing that the range
// needs), usage (empty range, unknown defect or
// order), corrupt.
ReplayResult replay(const Trace& trace, const ReplayOptions& options);

// Header of a run of `trace` under `mode`.
RunHeader run_header(const Trace& trace, const Mode& mode, const ModelIdentity& model);

// Errors: incomparable, when `model` is not the one that `trace` was recorded with.
void check_model(const Trace& trace, const ModelIdentity& model);

}  // namespace redecode
