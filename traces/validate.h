// traces/validate.h - StepValidator: whether each step can follow the ones before it under a
// header.
//
// Rules, a step: its index is one more than the last; departures name running requests; arrivals
// name requests that never ran, or, when resumed, that were preempted; sampling values are in
// range; page changes name running requests and real pages; the rows of a request stand together,
// positions ascending by one from where it stopped (cached_tokens at first); each row's slot is
// where the request's page table puts its position; tokens are in the vocabulary; a bucket is one
// of the header's and holds the rows; a decode step has one row a request and at most
// max_batch_rows. Rules about header values that are 0 (unknown) are left out. After a gap,
// requests whose history is not whole are taken as they come: their first row says where they are.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "traces/event.h"
#include "traces/header.h"
#include "traces/keyframe.h"
#include "traces/step.h"

namespace redecode {

class StepValidator {
 public:
  // `source` stands in front of every complaint, e.g. the file's name. Errors: corrupt (buckets do
  // not ascend, or sizes that cannot be).
  StepValidator(const ModelIdentity& model, const EngineSettings& engine, std::string source);
  // Errors: corrupt, naming step and row; the validator is of no use afterwards.
  // Cost: O(log requests) a row.
  void add(const Step& step);
  // What runs before the first step: a trace that was cut out of another does not start empty.
  void start(const Keyframe& keyframe);
  // Steps are missing before the next one. Errors: corrupt (a gap that does not follow).
  void skip(const Gap& gap);

 private:
  struct RequestState {
    uint32_t next_position = 0;
    bool whole = true;  // false: steps of it are missing, its next row tells where it is
    std::map<uint32_t, PageId> pages;
    StepIndex last_step = UINT64_MAX;  // the last step with a row of this request
  };
  void check_sizes(const Step& step);
  void check_departures(const Step& step);
  void check_arrivals(const Step& step);
  void check_pages(const Step& step);
  void check_rows(const Step& step);
  void check_row(const Step& step, size_t row);
  [[noreturn]] void fail(const Step& step, const std::string& what) const;

  ModelIdentity model_;
  EngineSettings engine_;
  std::string source_;
  std::optional<StepIndex> last_index_;
  std::map<RequestId, RequestState> running_;
  std::set<RequestId> preempted_;
  std::set<RequestId> gone_;
  bool after_gap_ = false;  // requests may run that nothing here has seen arrive
};

}  // namespace redecode
