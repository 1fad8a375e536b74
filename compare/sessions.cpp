#include "compare/sessions.h"

#include <algorithm>
#include <string>
#include <utility>

#include "traces/error.h"

namespace redecode {
namespace {

void keep_least(std::optional<StepIndex>& least, const std::optional<StepIndex>& step) {
  if (step && (!least || *step < *least)) least = step;
}

}  // namespace

SessionMap::SessionMap(const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    for (const Departure& departure : step.departures) {
      if (departure.reason == DepartureReason::failed ||
          departure.reason == DepartureReason::cancelled)
        set_failed(departure.request);
    }
    for (const Arrival& arrival : step.arrivals)
      add(arrival.request, {arrival.session, arrival.round});
  }
}

void SessionMap::add(RequestId request, SessionPlace place) {
  const auto [entry, added] = entries_.try_emplace(request, Entry{place, false});
  if (!added && entry->second.place != place)
    throw Error(ErrorCode::corrupt, "a request belongs to two sessions or rounds",
                "request " + std::to_string(request));
}

void SessionMap::set_failed(RequestId request) {
  const auto entry = entries_.find(request);
  if (entry != entries_.end()) entry->second.failed = true;
}

std::optional<SessionPlace> SessionMap::find(RequestId request) const {
  const auto entry = entries_.find(request);
  if (entry == entries_.end()) return std::nullopt;
  return entry->second.place;
}

SessionCounter::SessionCounter(SessionMap map, uint32_t rounds)
    : map_(std::move(map)), rounds_(rounds) {}

void SessionCounter::add_difference(StepIndex step, const Divergence& row) {
  RequestCount& request = requests_[row.request];
  const bool missing = row.expected_digest.has_value() != row.found_digest.has_value();
  if (missing) {
    request.rows_missing = true;
  } else {
    ++request.rows_differing;
  }
  keep_least(request.first_differing_step, step);
  if (!row.token_differs()) return;
  ++request.tokens_differing;
  keep_least(request.first_corrupted_step, step);
}

void SessionCounter::add(const StepOutput& golden, const StepDifference& difference) {
  // A row that the candidate lacks was not compared.
  auto lone = difference.rows.begin();
  for (const RowOutput& row : golden.rows) {
    while (lone != difference.rows.end() && lone->row < row.row) ++lone;
    const bool missing =
        lone != difference.rows.end() && lone->row == row.row && !lone->found_digest;
    RequestCount& request = requests_[row.request];
    if (!missing) ++request.rows_compared;
  }
  for (const Divergence& row : difference.rows) add_difference(golden.step, row);
}

void SessionCounter::merge(const RequestCount& request, SessionCount& session) {
  session.rows_compared += request.rows_compared;
  session.rows_differing += request.rows_differing;
  session.tokens_differing += request.tokens_differing;
  session.corrupted |= request.tokens_differing > 0;
  session.differing |= request.rows_differing > 0;
  session.error |= request.rows_missing;
  keep_least(session.first_differing_step, request.first_differing_step);
  keep_least(session.first_corrupted_step, request.first_corrupted_step);
}

SessionSummary SessionCounter::summary() const {
  SessionSummary out;
  std::map<SessionId, SessionCount> sessions;
  for (const auto& [request, entry] : map_.entries()) {
    SessionCount& session = sessions[entry.place.session];
    session.session = entry.place.session;
    session.rounds = std::max(session.rounds, entry.place.round + 1);
    session.error |= entry.failed;
  }
  for (const auto& [request, count] : requests_) {
    ++out.requests;
    if (count.tokens_differing > 0) ++out.requests_corrupted;
    if (count.rows_differing > 0) ++out.requests_differing;
    out.rows_compared += count.rows_compared;
    out.rows_differing += count.rows_differing;
    out.tokens_differing += count.tokens_differing;
    const auto place = map_.find(request);
    if (!place) {
      ++out.requests_unmapped;
      continue;
    }
    merge(count, sessions[place->session]);
  }
  out.rounds = rounds_;
  if (rounds_ == 0)
    for (const auto& [id, session] : sessions) out.rounds = std::max(out.rounds, session.rounds);
  for (auto& [id, session] : sessions) {
    session.max_rounds = !session.error && session.rounds >= out.rounds;
    out.max_rounds_reached += session.max_rounds;
    out.corrupted += session.corrupted;
    out.differing += session.differing;
    out.errors += session.error;
    out.sessions.push_back(session);
  }
  return out;
}

}  // namespace redecode
