#include "traces/edit/cut.h"

#include <algorithm>
#include <map>

#include "traces/edit/history.h"
#include "traces/error.h"

namespace redecode {
namespace {

std::pair<StepIndex, StepIndex> range_of(const Trace& trace, const CutOptions& options) {
  if (!options.first_us && !options.last_us) return {options.first, options.last};
  const uint64_t low = options.first_us.value_or(0), high = options.last_us.value_or(UINT64_MAX);
  StepIndex first = UINT64_MAX, last = 0;
  bool has_time = false;
  for (const Step& step : trace.steps) {
    has_time |= step.time_us != 0;
    if (step.time_us < low || step.time_us > high) continue;
    first = std::min(first, step.index);
    last = std::max(last, step.index);
  }
  if (!has_time) throw Error(ErrorCode::usage, "the trace holds no times: cut it by steps");
  return {first, last};
}

// Requests of which steps are missing: their KV cannot be made again.
std::set<RequestId> broken_requests(const Trace& trace) {
  std::set<RequestId> out;
  ScheduleState state(trace.header.engine.page_size);
  state.restore(trace.start);
  for (const RunningRequest& r : trace.start.running) out.insert(r.arrival.request);
  size_t gap = 0;
  for (const Step& step : trace.steps) {
    for (; gap < trace.gaps.size() && trace.gaps[gap].last < step.index; ++gap) {
      state.apply_gap(trace.gaps[gap].last);
      for (const RunningRequest& r : state.keyframe().running) out.insert(r.arrival.request);
    }
    for (const Arrival& a : step.arrivals)
      if (state.find(a.request) == nullptr && !a.resumed) out.erase(a.request);
    state.apply(step);
    for (const Row& row : step.rows)
      if (const RunningRequest* r = state.find(row.request); r != nullptr && !r->complete)
        out.insert(row.request);
  }
  return out;
}

bool asked_for(const CutOptions& o, RequestId request, const std::map<RequestId, SessionId>& of) {
  if (o.requests.empty() && o.sessions.empty()) return true;
  if (o.requests.contains(request)) return true;
  const auto session = of.find(request);
  return session != of.end() && o.sessions.contains(session->second);
}

// Outputs of the rows that are left, with their new places.
StepOutput output_of(const StepOutput& output, const std::vector<uint32_t>& places,
                     const std::set<RequestId>& wanted) {
  StepOutput out = output;
  std::erase_if(out.rows, [&](RowOutput& row) {
    if (!wanted.contains(row.request)) return true;
    if (row.row >= places.size() || places[row.row] == UINT32_MAX) return true;
    row.row = places[row.row];
    return false;
  });
  return out;
}

class Cutter {
 public:
  Cutter(const Trace& trace, const CutOptions& options) : trace_(trace), options_(options) {
    const auto [first, last] = range_of(trace, options);
    result_.first = first;
    result_.last = last;
    for (const Step& step : trace.steps)
      for (const Arrival& a : step.arrivals) sessions_[a.request] = a.session;
    choose();
  }

  CutResult run() {
    Trace& out = result_.trace;
    out.header = trace_.header;
    out.header.place = SetPlace();
    for (size_t i = 0; i < trace_.steps.size() && trace_.steps[i].index <= result_.last; ++i)
      take(i);
    if (result_.steps == 0)
      throw Error(ErrorCode::usage, "nothing is left: no step of the trace is in that range");
    for (const Gap& gap : trace_.gaps)
      if (gap.last < result_.last) out.gaps.push_back(gap);
    out.digest = 0;
    for (const Step& step : out.steps) out.digest = combine(out.digest, digest_step(step));
    return std::move(result_);
  }

 private:
  void choose() {
    const std::set<RequestId> broken = broken_requests(trace_);
    std::set<RequestId> wanted;
    for (const Step& step : trace_.steps) {
      if (step.index < result_.first || step.index > result_.last) continue;
      for (const Row& row : step.rows) {
        if (!asked_for(options_, row.request, sessions_)) continue;
        (broken.contains(row.request) ? result_.broken : wanted).insert(row.request);
      }
    }
    wanted_ = wanted;
    for (const RequestId request : requests_needed(trace_.steps, result_.last, wanted)) {
      if (!wanted.contains(request)) result_.kept_writers.insert(request);
      needed_.insert(request);
    }
  }

  void take(size_t at) {
    const Step& step = trace_.steps[at];
    const bool inside = step.index >= result_.first;
    Step out = step;
    std::vector<uint32_t> places;
    uint32_t kept = 0;
    for (const Row& row : step.rows)
      places.push_back(needed_.contains(row.request) ? kept++ : UINT32_MAX);
    const auto is_out = [&](const auto& item) { return !needed_.contains(item.request); };
    std::erase_if(out.rows, is_out);
    take_books(out, inside && asks_for_all());
    if (inside) {
      out.rows_left_out += static_cast<uint32_t>(step.rows.size() - out.rows.size());
      for (Row& row : out.rows) row.wants_output &= wanted_.contains(row.request);
      ++result_.steps;
      result_.rows += out.rows.size();
    } else {
      out.bucket = 0;
      for (Row& row : out.rows) row.wants_output = false;
      result_.history_rows += out.rows.size();
    }
    result_.trace.steps.push_back(std::move(out));
    StepOutput none;
    none.step = step.index;
    const bool has_output = inside && at < trace_.outputs.size();
    result_.trace.outputs.push_back(has_output ? output_of(trace_.outputs[at], places, wanted_)
                                               : none);
  }

  // Books of requests that are needed; in a cut by steps also of those that come inside it.
  void take_books(Step& step, bool all_arrivals) {
    std::erase_if(step.departures, [&](const Departure& d) { return here_.erase(d.request) == 0; });
    std::erase_if(step.arrivals,
                  [&](const Arrival& a) { return !all_arrivals && !needed_.contains(a.request); });
    for (const Arrival& a : step.arrivals) here_.insert(a.request);
    std::erase_if(step.page_changes,
                  [&](const PageChange& c) { return !here_.contains(c.request); });
  }

  bool asks_for_all() const { return options_.requests.empty() && options_.sessions.empty(); }

  const Trace& trace_;
  const CutOptions& options_;
  std::map<RequestId, SessionId> sessions_;
  std::set<RequestId> wanted_, needed_;
  std::set<RequestId> here_;  // running in what was taken so far
  CutResult result_;
};

}  // namespace

CutResult cut(const Trace& trace, const CutOptions& options) {
  return Cutter(trace, options).run();
}

void save_trace(const Trace& trace, const std::filesystem::path& path, bool overwrite) {
  TraceWriter writer(path, trace.header, {.layout = StepLayout::columns}, overwrite);
  writer.restore(trace.start);
  size_t gap = 0, event = 0;
  for (size_t i = 0; i < trace.steps.size(); ++i) {
    const Step& step = trace.steps[i];
    for (; gap < trace.gaps.size() && trace.gaps[gap].last < step.index; ++gap)
      writer.write(trace.gaps[gap]);
    for (; event < trace.events.size() && trace.events[event].before_step <= step.index; ++event)
      writer.write(trace.events[event]);
    writer.write(step);
    if (i < trace.outputs.size() && !trace.outputs[i].rows.empty()) writer.write(trace.outputs[i]);
  }
  for (; event < trace.events.size(); ++event) writer.write(trace.events[event]);
  for (; gap < trace.gaps.size(); ++gap) writer.write(trace.gaps[gap]);
  for (const Exchange& exchange : trace.exchanges) writer.write(exchange);
  writer.close();
}

}  // namespace redecode
