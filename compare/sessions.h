// compare/sessions.h - what a divergence did to sessions: how many were corrupted, and how far each
// got.
//
// A session is a chain of requests, round after round. It is corrupted when any token of any of its
// rounds differs from the golden's. Rows whose bits differ without a change of token are counted
// apart.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "compare/divergence.h"
#include "compare/interval.h"
#include "traces/trace_file.h"

namespace redecode {

struct SessionPlace {
  SessionId session = 0;
  uint32_t round = 0;  // 0-based
  bool operator==(const SessionPlace&) const = default;
};

// Which session and round a request belongs to, and whether it failed.
class SessionMap {
 public:
  SessionMap() = default;
  // From the arrivals and departures of all steps. Errors: corrupt where a request arrives twice
  // with different sessions or rounds.
  explicit SessionMap(const std::vector<Step>& steps);
  // Errors: as above.
  void add(RequestId request, SessionPlace place);
  // The request departed as failed or cancelled. Unknown requests are passed over.
  void set_failed(RequestId request);
  std::optional<SessionPlace> find(RequestId request) const;
  bool empty() const { return entries_.empty(); }

  struct Entry {
    SessionPlace place;
    bool failed = false;
  };
  const std::map<RequestId, Entry>& entries() const { return entries_; }

 private:
  std::map<RequestId, Entry> entries_;
};

struct SessionCount {
  SessionId session = 0;
  uint32_t rounds = 0;      // that arrived: highest round + 1
  bool max_rounds = false;  // its last round arrived and none of its requests failed
  bool corrupted = false;   // a token differs
  bool differing = false;   // a bit differs
  bool error = false;       // a request failed or was cancelled, or rows of it are missing
  uint64_t rows_compared = 0, rows_differing = 0, tokens_differing = 0;
  std::optional<StepIndex> first_differing_step;
  std::optional<StepIndex> first_corrupted_step;
  bool operator==(const SessionCount&) const = default;
};

struct SessionSummary {
  std::vector<SessionCount> sessions;  // ascending by session
  uint32_t rounds = 0;                 // expected of each session
  uint32_t max_rounds_reached = 0, corrupted = 0, differing = 0, errors = 0;  // sessions
  uint32_t requests = 0;  // with at least one row
  uint32_t requests_corrupted = 0, requests_differing = 0;
  uint32_t requests_unmapped = 0;  // of `requests`, those of no known session
  uint64_t rows_compared = 0, rows_differing = 0, tokens_differing = 0;
  // Of corrupted sessions, at 95 %.
  RateInterval corruption_interval() const { return clopper_pearson(corrupted, sessions.size()); }
};

// Counts over the steps that are handed in; independent of their order.
class SessionCounter {
 public:
  // `rounds` that each session was to reach; 0: the highest that any session reached.
  explicit SessionCounter(SessionMap map, uint32_t rounds = 0);
  // `difference` is compare_step's result for `golden` and its candidate.
  void add(const StepOutput& golden, const StepDifference& difference);
  SessionSummary summary() const;

 private:
  struct RequestCount {
    uint64_t rows_compared = 0, rows_differing = 0, tokens_differing = 0;
    bool rows_missing = false;
    std::optional<StepIndex> first_differing_step, first_corrupted_step;
  };
  void add_difference(StepIndex step, const Divergence& row);
  static void merge(const RequestCount& request, SessionCount& session);

  SessionMap map_;
  uint32_t rounds_;
  std::map<RequestId, RequestCount> requests_;
};

}  // namespace redecode
