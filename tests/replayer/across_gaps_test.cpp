#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "replayer/across_gaps.h"
#include "replayer/replay.h"
#include "tests/engine/rig.h"
#include "traces/error.h"

namespace redecode {
namespace {

using namespace rig;

Trace recorded() {
  RigOptions options;
  options.settings = settings_for("dsv4-small");
  return record_agents(options, "sessions=6 rounds=2 ctx=40 max_tokens=6 think_min=6 think_max=20")
      .trace;
}

// `trace` with the steps of [first, last] lost.
Trace without(const Trace& trace, StepIndex first, StepIndex last) {
  Trace out = trace;
  std::erase_if(out.steps, [&](const Step& s) { return s.index >= first && s.index <= last; });
  std::erase_if(out.outputs,
                [&](const StepOutput& o) { return o.step >= first && o.step <= last; });
  out.gaps = {{first, last, last - first + 1, 0, 1}};
  return out;
}

std::vector<StepOutput> outputs_of(const Trace& trace, bool across,
                                   ReplayResult* result = nullptr) {
  std::vector<StepOutput> out;
  ReplayOptions options;
  options.across_gaps = across;
  options.output = [&](const StepOutput& o) { out.push_back(o); };
  const ReplayResult r = replay(trace, options);
  if (result != nullptr) *result = r;
  return out;
}

}  // namespace

TEST_CASE("Across a gap only what is whole is decoded, and its bits are the recorded ones") {
  const Trace trace = recorded();
  const StepIndex middle = trace.steps[trace.steps.size() / 2].index;
  const Trace broken = without(trace, middle, middle + 2);
  CHECK_THROWS_AS(outputs_of(broken, false), Error);
  ReplayResult result;
  const auto outputs = outputs_of(broken, true, &result);
  CHECK_FALSE(result.left_out.empty());
  CHECK(result.rows_left_out > 0);
  const auto golden = outputs_of(trace, false);
  size_t after = 0;
  for (const StepOutput& o : outputs) {
    const auto same = std::ranges::find(golden, o.step, &StepOutput::step);
    REQUIRE(same != golden.end());
    for (const RowOutput& row : o.rows) {
      const auto was = std::ranges::find(same->rows, row.request, &RowOutput::request);
      REQUIRE(was != same->rows.end());
      CHECK(was->token == row.token);
      CHECK(was->logits_digest == row.logits_digest);
      after += o.step > middle;
    }
  }
  CHECK(after > 0);
}

TEST_CASE("Across a gap a page that went to a lost request is no prefix any more") {
  const std::vector<Gap> gaps = {{5, 6, 2, 0, 1}};
  AcrossGaps across(gaps, false);
  const auto step_at = [](StepIndex index, RequestId request, std::vector<PageChange> changes,
                          bool arrives = true) {
    Step step;
    step.index = index;
    Arrival arrival;
    arrival.request = request;
    if (arrives) step.arrivals.push_back(arrival);
    step.page_changes = std::move(changes);
    Row row;
    row.request = request;
    step.rows.push_back(row);
    return step;
  };
  CHECK(across.filter(step_at(4, 1, {{1, 0, 10, false}})).rows.size() == 1);
  // Behind the gap: 1 is lost; 2 writes page 11, which 3 shares.
  CHECK(across.filter(step_at(7, 2, {{2, 0, 11, false}})).rows.size() == 1);
  CHECK(across.filter(step_at(8, 3, {{3, 0, 11, true}})).rows.size() == 1);
  CHECK(across.filter(step_at(9, 4, {{4, 0, 10, true}})).rows.empty());
  // The lost request takes page 11 over: who shares it from now on shares what is not there.
  CHECK(across.filter(step_at(10, 1, {{1, 1, 11, false}}, false)).rows.empty());
  CHECK(across.filter(step_at(11, 5, {{5, 0, 11, true}, {5, 1, 12, false}})).rows.empty());
  CHECK(across.filter(step_at(12, 6, {{6, 0, 12, true}})).rows.empty());
  // One that was whole and then shares such a page is whole no longer, and leaves.
  const Step last = across.filter(step_at(13, 2, {{2, 1, 11, true}}, false));
  CHECK(last.rows.empty());
  REQUIRE(last.departures.size() == 1);
  CHECK(last.departures.front().request == 2);
  CHECK(across.left_out() == std::set<RequestId>{1, 2, 4, 5, 6});
  CHECK(across.rows_left_out() == 5);
}

TEST_CASE("Without a gap nothing is left out") {
  const Trace trace = recorded();
  ReplayResult result;
  outputs_of(trace, true, &result);
  CHECK(result.left_out.empty());
  CHECK(result.rows_left_out == 0);
}

TEST_CASE("A replay offers the same choices twice, in every mode") {
  const Trace trace = recorded();
  for (const auto capture : {CaptureMode::eager, CaptureMode::graph})
    for (const char* order : {"fifo", "seed:3", "paced:2", "pct:5,3"}) {
      ReplayOptions options;
      options.mode.capture = capture;
      options.mode.streams = StreamMode::multi;
      options.mode.order = order;
      options.self_check = true;
      CHECK_NOTHROW(replay(trace, options));
    }
}

}  // namespace redecode
