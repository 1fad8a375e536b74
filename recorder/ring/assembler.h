// recorder/ring/assembler.h - Assembler: raw records of a recorder's rings become the records of a
// trace.
//
// Departures, arrivals and pages are kept for the step after them. A jump of the step index, or
// steps that a loss record names, become a Gap before the next step. Arrivals and pages that were
// said before lost steps are left out: where those requests are is not known any more.
#pragma once
#include <cstdint>
#include <vector>

#include "recorder/ring/ring_reader.h"
#include "traces/record_target.h"

namespace redecode {

enum class Taken : uint8_t {
  done,
  held,     // outputs of a step that has not come yet: offer them again later
  unsound,  // not a record
};

class Assembler {
 public:
  Assembler(RecordTarget& target, uint64_t started_ns) : target_(target), started_ns_(started_ns) {}

  // Errors: whatever the target throws; the record then counts as not taken.
  Taken take(const RawRecord& record);
  // A loss that no step has followed becomes a gap at the end.
  void finish();

  // Steps before this one are there or accounted for. Set before the first record.
  void expect(StepIndex step) {
    expected_ = step;
    knows_expected_ = true;
  }
  // Why steps are missing where no loss record says it.
  void set_jump_cause(uint32_t causes) { jump_causes_ = causes; }
  // Something was taken that no record of the target holds yet: books of the next step, or a loss
  // that is said before it.
  bool has_pending() const {
    return !step_.departures.empty() || !step_.arrivals.empty() || !step_.page_changes.empty() ||
           loss_until_ > expected_;
  }
  StepIndex expected() const { return expected_; }
  uint64_t gaps() const { return gaps_; }

 private:
  Taken take_step(const RawRecord& record);
  Taken take_outputs(const RawRecord& record);
  Taken take_loss(const RawRecord& record);
  void say_gap(StepIndex until);

  RecordTarget& target_;
  uint64_t started_ns_;
  Step step_;  // its books collect; its rows are those of the last step
  bool has_step_ = false;
  StepIndex expected_ = 0;
  bool knows_expected_ = false;
  uint32_t jump_causes_ = 0;
  uint32_t loss_causes_ = 0;
  uint64_t loss_bytes_ = 0;
  StepIndex loss_until_ = 0;  // behind the last lost step; 0: none
  uint64_t gaps_ = 0;
  StepOutput output_;
  Event event_;
};

}  // namespace redecode
