// traces/traffic.h - requests as they come from outside, and who sends them.
#pragma once
#include <cstdint>
#include <vector>

#include "traces/output.h"
#include "traces/step.h"

namespace redecode {

// A request as submitted: the whole prompt and how to continue it.
struct Request {
  RequestId id = 0;
  SessionId session = 0;
  uint32_t round = 0;
  std::vector<int32_t> prompt;
  uint32_t max_tokens = 1;
  int32_t stop_token = -1;  // -1: none
  Sampling sampling;
};

enum class RequestEnd : uint8_t { stop, length, too_long, cancelled, failed };

// Sends requests. Time is counted in engine steps, never in seconds: replayable.
class TrafficSource {
 public:
  virtual ~TrafficSource() = default;
  // Appends the requests that arrive at or before `now`.
  virtual void poll(StepIndex now, std::vector<Request>& out) = 0;
  // A request has ended with these output tokens; a session may then send its next round.
  virtual void finished(const Request& request, const std::vector<int32_t>& output, RequestEnd end,
                        StepIndex now) = 0;
  // The earliest step at which poll could return something; UINT64_MAX when never or unknown (it
  // waits for a finish). Lets an idle engine skip ahead.
  virtual StepIndex next_arrival() const = 0;
  virtual bool exhausted() const = 0;
};

// Takes what was scheduled and what came of it. Implemented by the recorder's tap and by run
// writers.
class StepSink {
 public:
  virtual ~StepSink() = default;
  virtual void scheduled(const Step& step) = 0;
  virtual void produced(const StepOutput& output) = 0;
};

}  // namespace redecode
