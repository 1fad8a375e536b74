// tests/traces/random_values.h - values for tests: arbitrary ones, and steps that obey every rule.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "traces/finding.h"
#include "traces/header.h"
#include "traces/output.h"
#include "traces/program.h"
#include "traces/random.h"
#include "traces/step.h"

namespace redecode::test {

TraceHeader sample_trace_header();
RunHeader sample_run_header();

// Any values at all, extremes among them; no rule of validate.h holds.
Step arbitrary_step(RandomSequence& random, StepIndex index);
StepOutput arbitrary_output(RandomSequence& random, StepIndex step);
Finding arbitrary_finding(RandomSequence& random);
Program arbitrary_program(RandomSequence& random);  // well-formed

// Makes steps as a batcher would: requests arrive, are prefilled, decode and leave.
class StepMaker {
 public:
  StepMaker(const TraceHeader& header, uint64_t seed, uint32_t max_requests = 6, uint32_t vocab = 0,
            uint32_t max_output = 60);
  Step next();

 private:
  struct Running {
    uint32_t position = 0, prompt = 0, end = 0;
    std::map<uint32_t, PageId> pages;
  };
  void depart(Step& step);
  void arrive(Step& step);
  void add_row(Step& step, RequestId id, Running& request, bool wants_output);

  TraceHeader header_;
  RandomSequence random_;
  uint32_t max_requests_, vocab_, max_output_;
  StepIndex index_ = 0;
  RequestId next_request_ = 0;
  PageId next_page_ = 1;
  std::vector<PageId> free_pages_;
  std::map<RequestId, Running> running_;
};

}  // namespace redecode::test
