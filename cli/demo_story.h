// cli/demo_story.h - the story that `redecode demo` tells, as values: record, golden, matrix,
// finding, fix.
//
// Which cells corrupt follows from pool and order alone: every cell runs the same code with its own
// mode.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compare/compare_runs.h"
#include "recorder/workload_agent.h"
#include "replayer/replay.h"
#include "traces/trace_file.h"

namespace redecode {

struct DemoOptions {
  std::string model = "dsv4-small";
  std::string defect = "early-free";
  std::string order = "paced:1";
  AgentOptions agent;
  uint32_t ms_per_step = 100;  // of the arrivals in the shipped trace
  int threads = 2;             // cells decoded at once
  std::string trace_path;      // where the trace is written
};

// One replay of the matrix, judged against the golden of its index-key type.
struct DemoCell {
  Mode mode;
  uint32_t sessions = 0, corrupted_sessions = 0;
  uint64_t rows_differing = 0;
  Digest digest = 0;
  bool same_bits = false;
  std::optional<Divergence> divergence;
  std::string order_taken;  // departures of the diverging step
  uint64_t findings = 0;    // structural, kinds and op pairs counted once
};

struct DemoGolden {
  Mode mode;
  Digest digest = 0;
  std::vector<StepOutput> outputs;
};

struct DemoFinding {
  Finding finding;        // at the diverging step
  Divergence divergence;  // seen from inside the step
  std::string order;      // fails every time
  uint64_t departures_before = 0, departures_after = 0;
  uint32_t tries = 0, failures = 0, fifo_failures = 0;
};

struct DemoResult {
  std::string workload;
  Trace trace;
  uint64_t trace_bytes = 0;
  uint64_t rows = 0, tokens = 0, requests = 0;
  std::vector<DemoGolden> goldens;
  std::vector<DemoCell> cells;
  std::optional<size_t> worst;  // cell with the most corrupted sessions
  std::optional<DemoFinding> finding;
  std::optional<DemoCell> fixed;
};

// Says what is being done, for progress: a stage and its share done, 0 to 1.
using DemoProgress = std::function<void(const std::string& stage, double share)>;

DemoResult run_demo(const DemoOptions& options, const DemoProgress& progress,
                    const std::function<bool()>& stop);

std::string demo_text(const DemoOptions& options, const DemoResult& result);
std::string demo_json(const DemoOptions& options, const DemoResult& result);

}  // namespace redecode
