// replayer/across_gaps.h - what of a trace with gaps can still be replayed, and what cannot.
//
// The KV that the lost steps wrote is gone. After a gap, requests that ran before it, and those
// that share a page of theirs, are left out; the rest is decoded as recorded: a request's bits do
// not depend on its neighbours.
#pragma once
#include <map>
#include <set>
#include <span>
#include <vector>

#include "traces/event.h"
#include "traces/step.h"

namespace redecode {

class AcrossGaps {
 public:
  // `gaps` of the trace, in order. A trace that begins while requests run counts as one that begins
  // with a gap.
  AcrossGaps(std::span<const Gap> gaps, bool begins_with_gap);

  // The step with what can be replayed of it. Steps must come in order.
  Step filter(const Step& step);

  const std::set<RequestId>& left_out() const { return left_out_; }
  uint64_t rows_left_out() const { return rows_left_out_; }

 private:
  void cross_gap(Step& out);
  void follow_pages(const Step& step, Step& out);
  bool keeps(RequestId request) const { return running_.contains(request); }

  std::vector<StepIndex> gap_ends_;  // ascending; crossed once a step behind it comes
  size_t crossed_ = 0;
  bool after_gap_;
  std::set<RequestId> running_;  // whole since their arrival
  std::set<PageId> pages_;       // written since the newest gap, by requests that are kept
  std::set<RequestId> left_out_;
  uint64_t rows_left_out_ = 0;
};

}  // namespace redecode
