// replayer/step_lab.h - StepLab: one step of a trace, run again and again from the same KV content.
//
// The KV is restored once, by a clean pass over what the step needs; each run puts back what the
// run before it overwrote.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "engine/plan/hazards.h"
#include "replayer/engine_instance.h"
#include "traces/finding.h"
#include "traces/trace_file.h"

namespace redecode {

// A step's program as it runs in a mode: with exact ranges, and where its buffers lie.
struct StepStructure {
  Program program;
  ExtentTable extents;
  Submission submission = Submission::eager;
  std::vector<Finding> findings;  // of every structural check, this step alone
  std::vector<Finding> races;     // all pairs within `program`, see RacePairs::all
};

class StepLab {
 public:
  // Errors: usage (no such step), and as replay.
  StepLab(const Trace& trace, StepIndex step, const Mode& mode, int threads = 1);

  // One run of the step under `order`. Errors: usage when a script does not fit.
  StepOutput run(std::string_view order);
  void set_probe(Probe probe) { engine_->decoder().set_probe(probe); }

  // Structural findings of the step in this mode; runs it once in fifo order.
  std::vector<Finding> inspect();
  // The same, with all that an explorer and a repair need.
  StepStructure structure();

 private:
  std::unique_ptr<EngineInstance> engine_;
};

}  // namespace redecode
