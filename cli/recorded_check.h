// cli/recorded_check.h - RecordedCheck: whether a replay gives the outputs that were recorded, bit
// for bit.
#pragma once
#include <cstdint>
#include <string>

#include "traces/json_writer.h"
#include "traces/trace_file.h"

namespace redecode {

class RecordedCheck {
 public:
  // The trace must outlive this.
  explicit RecordedCheck(const Trace& trace) : trace_(trace) {}

  // Outputs in step order. Steps whose output was not recorded are passed over.
  void add(const StepOutput& output);

  bool same() const { return differing_ == 0; }
  bool compared() const { return rows_ != 0; }
  // "1,204 outputs of 300 steps are the recorded ones", or where the first differs.
  std::string text() const;
  void write_json(JsonWriter& json) const;  // one object

 private:
  const Trace& trace_;
  size_t next_ = 0;  // index into the trace's steps
  uint64_t steps_ = 0, rows_ = 0, differing_ = 0;
  StepIndex first_step_ = 0;
  uint32_t first_row_ = 0;
};

}  // namespace redecode
