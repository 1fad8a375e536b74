#include "traces/convert/request_book.h"

#include <utility>

namespace redecode {

void RequestBook::start(const Keyframe& keyframe) {
  for (const RunningRequest& running : keyframe.running) {
    RequestRecord& record = open_[running.arrival.request];
    record.arrival = running.arrival;
    record.known = running.complete;
    record.last_step = keyframe.next_step;
  }
}

RequestRecord& RequestBook::open(RequestId request, const Step& step) {
  RequestRecord& record = open_[request];
  record.arrival.request = request;
  record.last_step = step.index;
  record.last_us = step.time_us;
  return record;
}

void RequestBook::add(const Step& step, std::vector<RequestRecord>& ended) {
  for (const Departure& departure : step.departures) {
    const auto at = open_.find(departure.request);
    RequestRecord& record = at == open_.end() ? open(departure.request, step) : at->second;
    if (departure.reason == DepartureReason::preempted) {
      ++record.preemptions;
      continue;
    }
    record.end = departure.reason;
    ended.push_back(std::move(record));
    open_.erase(departure.request);
  }
  for (const Arrival& arrival : step.arrivals) {
    RequestRecord& record = open(arrival.request, step);
    if (arrival.resumed && record.known) continue;
    record.arrival = arrival;
    record.known = !arrival.resumed;  // a resumed prompt counts output too
    record.arrival_step = step.index;
    record.arrival_us = step.time_us;
  }
  for (const Row& row : step.rows) {
    RequestRecord& record = open(row.request, step);
    ++record.rows;
    if (!row.wants_output) continue;
    ++record.output_tokens;
    if (record.first_output_step) continue;
    record.first_output_step = step.index;
    record.first_output_us = step.time_us;
  }
}

std::vector<RequestRecord> RequestBook::rest() {
  std::vector<RequestRecord> out;
  for (auto& [request, record] : open_) out.push_back(std::move(record));
  open_.clear();
  return out;
}

}  // namespace redecode
