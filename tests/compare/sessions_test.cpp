#include "compare/sessions.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "tests/compare/make.h"
#include "traces/error.h"

using namespace redecode;
using namespace redecode::test;

namespace {
// Sixty sessions of four rounds: session s has requests 4s to 4s + 3.
std::vector<Step> sixty_sessions() {
  std::vector<Step> out(4);
  for (uint32_t round = 0; round < 4; ++round) {
    out[round].index = round;
    for (SessionId session = 0; session < 60; ++session) {
      Arrival arrival;
      arrival.request = 4 * session + round;
      arrival.session = session;
      arrival.round = round;
      out[round].arrivals.push_back(arrival);
    }
  }
  return out;
}

StepOutput output_of(StepIndex round) {
  StepOutput out;
  out.step = round;
  for (uint32_t session = 0; session < 60; ++session)
    out.rows.push_back(make_row(session, 4 * session + static_cast<uint32_t>(round), 10));
  return out;
}

void count(SessionCounter& counter, const StepOutput& golden, const StepOutput& candidate) {
  counter.add(golden, compare_step(golden, candidate));
}
}  // namespace

TEST_CASE("clean sessions all reach their last round") {
  SessionCounter counter{SessionMap(sixty_sessions())};
  for (StepIndex round = 0; round < 4; ++round) count(counter, output_of(round), output_of(round));
  const SessionSummary s = counter.summary();
  CHECK(s.sessions.size() == 60);
  CHECK(s.rounds == 4);
  CHECK(s.max_rounds_reached == 60);
  CHECK(s.corrupted == 0);
  CHECK(s.differing == 0);
  CHECK(s.errors == 0);
  CHECK(s.requests == 240);
  CHECK(s.rows_compared == 240);
  CHECK(s.requests_unmapped == 0);
}

TEST_CASE("a session is corrupted by one token of one round, however many follow") {
  SessionCounter counter{SessionMap(sixty_sessions())};
  for (StepIndex round = 0; round < 4; ++round) {
    StepOutput candidate = output_of(round);
    for (uint32_t session = 0; session < 9; ++session)
      if (round >= session % 4) candidate.rows[session].token = 0;
    candidate.rows[20].logits[0] = 1;  // bits without a token
    count(counter, output_of(round), candidate);
  }
  const SessionSummary s = counter.summary();
  CHECK(s.corrupted == 9);
  CHECK(s.differing == 10);
  CHECK(s.max_rounds_reached == 60);
  CHECK(s.requests_corrupted == 4 + 3 + 2 + 1 + 4 + 3 + 2 + 1 + 4);
  CHECK(s.requests_differing == s.requests_corrupted + 4);
  CHECK(s.rows_differing == s.requests_differing);
  CHECK(s.tokens_differing == s.requests_corrupted);
  CHECK(s.sessions[2].first_corrupted_step == 2u);
  CHECK(s.sessions[20].first_differing_step == 0u);
  CHECK_FALSE(s.sessions[20].first_corrupted_step);
  CHECK_FALSE(s.sessions[30].first_differing_step);
  CHECK(std::fabs(s.corruption_interval().lower - 0.071) < 0.001);
}

TEST_CASE("failed, cancelled and lost requests make an error, not a corruption") {
  std::vector<Step> steps = sixty_sessions();
  steps[3].departures = {{4 * 7 + 2, DepartureReason::failed},
                         {4 * 8 + 2, DepartureReason::cancelled},
                         {4 * 9 + 2, DepartureReason::finished},
                         {4 * 10 + 2, DepartureReason::preempted}};
  SessionCounter counter{SessionMap(steps)};
  StepOutput candidate = output_of(1);
  candidate.rows.erase(candidate.rows.begin() + 50);
  count(counter, output_of(1), candidate);
  const SessionSummary s = counter.summary();
  CHECK(s.errors == 3);
  CHECK(s.corrupted == 0);
  CHECK(s.max_rounds_reached == 57);
  CHECK(s.sessions[7].error);
  CHECK(s.sessions[8].error);
  CHECK(s.sessions[50].error);
  CHECK(s.rows_compared == 59);
  CHECK(s.rows_differing == 0);
}

TEST_CASE("sessions that end early do not reach the last round") {
  std::vector<Step> steps = sixty_sessions();
  steps[3].arrivals.resize(40);
  CHECK(SessionCounter(SessionMap(steps)).summary().max_rounds_reached == 40);
  CHECK(SessionCounter(SessionMap(steps), 3).summary().max_rounds_reached == 60);
  CHECK(SessionCounter(SessionMap(steps), 5).summary().max_rounds_reached == 0);
}

TEST_CASE("requests of no session are counted apart") {
  SessionMap map;
  map.add(0, {3, 0});
  SessionCounter counter(map);
  StepOutput candidate = output_of(0);
  candidate.rows[1].token = 0;
  count(counter, output_of(0), candidate);
  const SessionSummary s = counter.summary();
  CHECK(s.sessions.size() == 1);
  CHECK(s.sessions[0].session == 3);
  CHECK(s.corrupted == 0);
  CHECK(s.requests == 60);
  CHECK(s.requests_unmapped == 59);
  CHECK(s.requests_corrupted == 1);
}

TEST_CASE("a request that comes back after a preemption keeps its session") {
  std::vector<Step> steps = sixty_sessions();
  steps[2].arrivals.push_back(steps[0].arrivals[5]);
  CHECK(SessionMap(steps).find(20) == SessionPlace{5, 0});
  steps[2].arrivals.back().round = 1;
  CHECK_THROWS_AS(SessionMap(steps), Error);
}
