#include "replayer/across_gaps.h"

#include <algorithm>

namespace redecode {

AcrossGaps::AcrossGaps(std::span<const Gap> gaps, bool begins_with_gap)
    : after_gap_(begins_with_gap) {
  for (const Gap& gap : gaps) gap_ends_.push_back(gap.last);
  std::ranges::sort(gap_ends_);
}

// Everything that ran is done with, as far as the replay is concerned.
void AcrossGaps::cross_gap(Step& out) {
  for (const RequestId request : running_) {
    out.departures.push_back({request, DepartureReason::cancelled});
    left_out_.insert(request);
  }
  running_.clear();
  pages_.clear();
  after_gap_ = true;
}

Step AcrossGaps::filter(const Step& step) {
  Step out = step;
  out.departures.clear();
  out.arrivals.clear();
  out.page_changes.clear();
  out.rows.clear();
  bool crosses = false;
  while (crossed_ < gap_ends_.size() && gap_ends_[crossed_] < step.index) {
    ++crossed_;
    crosses = true;
  }
  if (crosses) cross_gap(out);
  for (const Departure& d : step.departures)
    if (running_.erase(d.request) != 0) out.departures.push_back(d);

  // A page shared with a request that is not whole holds what was lost.
  std::set<RequestId> broken;
  for (const PageChange& change : step.page_changes)
    if (after_gap_ && change.shared && !pages_.contains(change.page)) broken.insert(change.request);
  for (const Arrival& a : step.arrivals) {
    if (broken.contains(a.request) || (after_gap_ && a.resumed && left_out_.contains(a.request)) ||
        (after_gap_ && a.cached_tokens != 0 && broken.contains(a.request))) {
      left_out_.insert(a.request);
      continue;
    }
    running_.insert(a.request);
    left_out_.erase(a.request);
    out.arrivals.push_back(a);
  }
  for (const PageChange& change : step.page_changes) {
    if (!keeps(change.request)) continue;
    pages_.insert(change.page);
    out.page_changes.push_back(change);
  }
  for (const Row& row : step.rows) {
    if (keeps(row.request)) {
      out.rows.push_back(row);
      continue;
    }
    left_out_.insert(row.request);
    ++rows_left_out_;
  }
  return out;
}

}  // namespace redecode
