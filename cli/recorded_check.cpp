#include "cli/recorded_check.h"

#include <algorithm>

#include "traces/thousands.h"

namespace redecode {

void RecordedCheck::add(const StepOutput& output) {
  while (next_ < trace_.steps.size() && trace_.steps[next_].index < output.step) ++next_;
  if (next_ >= trace_.outputs.size() || trace_.steps[next_].index != output.step) return;
  const std::vector<RowOutput>& recorded = trace_.outputs[next_].rows;
  if (recorded.empty()) return;
  ++steps_;
  const size_t count = std::max(recorded.size(), output.rows.size());
  for (size_t i = 0; i < count; ++i) {
    ++rows_;
    bool equal = i < recorded.size() && i < output.rows.size();
    if (equal) {
      const RowOutput &a = recorded[i], &b = output.rows[i];
      equal = a.row == b.row && a.request == b.request && a.position == b.position &&
              a.token == b.token && a.logits_digest == b.logits_digest &&
              a.log_sum_exp == b.log_sum_exp && a.top == b.top;
    }
    if (equal) continue;
    if (differing_++ != 0) continue;
    first_step_ = output.step;
    first_row_ = static_cast<uint32_t>(i);
  }
}

std::string RecordedCheck::text() const {
  const std::string all = with_thousands(rows_) + " outputs of " + with_thousands(steps_) +
                          (steps_ == 1 ? " step" : " steps");
  if (!compared()) return "none, nothing to compare with";
  if (same()) return all + " are the recorded ones";
  return with_thousands(differing_) + " of " + all + " differ, first: step " +
         with_thousands(first_step_) + " output " + std::to_string(first_row_);
}

void RecordedCheck::write_json(JsonWriter& json) const {
  json.begin_object().member("steps", steps_).member("outputs", rows_);
  json.member("differing", differing_);
  if (differing_ != 0) json.member("first_step", first_step_).member("first_output", first_row_);
  json.end_object();
}

}  // namespace redecode
