// traces/convert/request_book.h - RequestBook: what became of each request of a trace, from its
// steps.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "traces/keyframe.h"
#include "traces/step.h"

namespace redecode {

struct RequestRecord {
  Arrival arrival;                        // the first; only `request` is known where `known` is not
  bool known = false;                     // its arrival was seen, or a keyframe tells of it
  std::optional<StepIndex> arrival_step;  // nothing: it ran before the trace began
  uint64_t arrival_us = 0;                // 0: not known, as all times here
  std::optional<StepIndex> first_output_step;
  uint64_t first_output_us = 0;  // when that step began
  StepIndex last_step = 0;       // with a row of it; of its end where it has none
  uint64_t last_us = 0;
  uint64_t rows = 0, output_tokens = 0;  // of steps that are in the trace
  uint32_t preemptions = 0;
  std::optional<DepartureReason> end;  // nothing: still running, or waiting after a preemption
};

// Memory: the requests that run or wait to be resumed.
class RequestBook {
 public:
  // Before the first step.
  void start(const Keyframe& keyframe);
  // Appends the requests that this step ends, in the step's order.
  void add(const Step& step, std::vector<RequestRecord>& ended);
  // All that have not ended, by request number; the book is empty then.
  std::vector<RequestRecord> rest();
  size_t running() const { return open_.size(); }

 private:
  RequestRecord& open(RequestId request, const Step& step);
  std::map<RequestId, RequestRecord> open_;
};

}  // namespace redecode
