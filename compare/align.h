// compare/align.h - StepPairs: two runs read side by side, one step of each in memory.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "compare/run_source.h"

namespace redecode {

// Which steps the two runs hold.
struct Coverage {
  uint64_t common_steps = 0;
  uint64_t only_golden = 0;
  uint64_t only_candidate = 0;
  std::optional<StepIndex> first_common, last_common;
  std::optional<StepIndex> first_only_golden, first_only_candidate;
  FileEnd golden_end = FileEnd::clean;
  FileEnd candidate_end = FileEnd::clean;
  // Both runs hold the same steps and were closed by their writers.
  bool complete() const {
    return only_golden == 0 && only_candidate == 0 && golden_end == FileEnd::clean &&
           candidate_end == FileEnd::clean;
  }
};

class StepPairs {
 public:
  // Both sources must outlive this. `on_finding` gets the candidate's findings in file order; it
  // may be empty. Findings of the golden are passed over.
  StepPairs(RunSource& golden, RunSource& candidate,
            std::function<void(Finding&&)> on_finding = {});

  // Moves to the next step that both runs hold; false when there is none left, and then both runs
  // have been read to their ends. Errors: corrupt where the steps of a run do not ascend.
  bool next();
  const StepOutput& golden() const { return *golden_.output; }
  const StepOutput& candidate() const { return *candidate_.output; }
  const Coverage& coverage() const { return coverage_; }

 private:
  struct Side {
    RunSource* source;
    const char* name;
    std::optional<StepOutput> output;  // empty at the end
    std::optional<StepIndex> last;
  };
  void advance(Side& side, const std::function<void(Finding&&)>& on_finding);

  Side golden_, candidate_;
  std::function<void(Finding&&)> on_finding_;
  Coverage coverage_;
};

}  // namespace redecode
