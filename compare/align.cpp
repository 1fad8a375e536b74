#include "compare/align.h"

#include <string>
#include <utility>

#include "traces/error.h"

namespace redecode {

StepPairs::StepPairs(RunSource& golden, RunSource& candidate,
                     std::function<void(Finding&&)> on_finding)
    : golden_{&golden, "golden", {}, {}},
      candidate_{&candidate, "candidate", {}, {}},
      on_finding_(std::move(on_finding)) {}

void StepPairs::advance(Side& side, const std::function<void(Finding&&)>& on_finding) {
  side.output.reset();
  RunRecord record;
  while (side.source->next(record)) {
    if (record.finding && on_finding) on_finding(std::move(*record.finding));
    if (!record.output) continue;
    const StepIndex step = record.output->step;
    if (side.last && step <= *side.last) {
      throw Error(ErrorCode::corrupt,
                  "the steps of the " + std::string(side.name) + " run do not ascend",
                  "step " + std::to_string(step) + " after step " + std::to_string(*side.last));
    }
    side.last = step;
    side.output = std::move(record.output);
    return;
  }
}

bool StepPairs::next() {
  advance(golden_, {});
  advance(candidate_, on_finding_);
  while (golden_.output || candidate_.output) {
    const bool golden_behind =
        !candidate_.output || (golden_.output && golden_.output->step < candidate_.output->step);
    if (golden_behind) {
      if (coverage_.only_golden++ == 0) coverage_.first_only_golden = golden_.output->step;
      advance(golden_, {});
      continue;
    }
    if (!golden_.output || candidate_.output->step < golden_.output->step) {
      if (coverage_.only_candidate++ == 0) coverage_.first_only_candidate = candidate_.output->step;
      advance(candidate_, on_finding_);
      continue;
    }
    const StepIndex step = golden_.output->step;
    if (coverage_.common_steps++ == 0) coverage_.first_common = step;
    coverage_.last_common = step;
    return true;
  }
  coverage_.golden_end = golden_.source->end();
  coverage_.candidate_end = candidate_.source->end();
  return false;
}

}  // namespace redecode
