// traces/record_target.h - RecordTarget: takes the records of a trace in the order in which the
// trace holds them.
#pragma once
#include "traces/event.h"
#include "traces/output.h"
#include "traces/step.h"

namespace redecode {

class RecordTarget {
 public:
  virtual ~RecordTarget() = default;
  virtual void take(const Step& step) = 0;
  virtual void take(const StepOutput& output) = 0;
  virtual void take(const Event& event) = 0;
  virtual void take(const Gap& gap) = 0;
};

}  // namespace redecode
