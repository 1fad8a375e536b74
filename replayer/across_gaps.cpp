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

// Arrivals and page changes, one after the other: a page given to a request that is left out no
// longer holds what was written, and one shared with such a request never did.
void AcrossGaps::follow_pages(const Step& step, Step& out) {
  std::set<RequestId> arriving, broken;
  for (const Arrival& a : step.arrivals)
    if (!(after_gap_ && a.resumed && left_out_.contains(a.request))) arriving.insert(a.request);
  for (const PageChange& change : step.page_changes) {
    const bool is_whole = (keeps(change.request) || arriving.contains(change.request)) &&
                          !broken.contains(change.request);
    if (!change.shared && is_whole) pages_.insert(change.page);
    if (!change.shared && !is_whole) pages_.erase(change.page);
    if (change.shared && is_whole && after_gap_ && !pages_.contains(change.page))
      broken.insert(change.request);
  }
  for (const PageChange& change : step.page_changes)
    if (!change.shared && broken.contains(change.request)) pages_.erase(change.page);
  for (const RequestId request : broken) {
    left_out_.insert(request);
    arriving.erase(request);
    if (running_.erase(request) != 0)
      out.departures.push_back({request, DepartureReason::cancelled});
  }
  for (const Arrival& a : step.arrivals) {
    if (!arriving.contains(a.request)) continue;
    running_.insert(a.request);
    left_out_.erase(a.request);
    out.arrivals.push_back(a);
  }
  for (const PageChange& change : step.page_changes)
    if (keeps(change.request)) out.page_changes.push_back(change);
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

  follow_pages(step, out);
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
