// replay --steps A..B gives what the same steps give in a replay of everything.
#include "replayer/replay.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <functional>

#include "tests/engine/rig.h"
#include "traces/edit/history.h"
#include "traces/error.h"

using namespace redecode;
using namespace redecode::rig;

namespace {

// Agents that share prefixes and, for want of pages, get preempted.
Trace pressed_trace(const std::string& model) {
  RigOptions options;
  options.model = model;
  options.settings = settings_for(model);
  options.settings.page_count = model == "dsv4-small" ? 11 : 34;
  const Recording r = record_agents(
      options, "sessions=7 rounds=2 ctx=240 system_percent=90 new_min=8 new_max=20 max_tokens=20");
  REQUIRE(r.totals.preemptions > 0);
  REQUIRE(r.totals.cached_tokens > 0);
  return r.trace;
}

std::vector<StepOutput> outputs_of(const Trace& trace, const Mode& mode, StepRange range) {
  std::vector<StepOutput> out;
  ReplayOptions options;
  options.mode = mode;
  options.inspect = false;
  options.range = range;
  options.output = [&](const StepOutput& output) { out.push_back(output); };
  const ReplayResult result = replay(trace, options);
  REQUIRE(result.steps == out.size());
  return out;
}

StepIndex first_after(const Trace& trace, StepIndex from,
                      const std::function<bool(const Step&)>& holds) {
  const auto at = std::ranges::find_if(
      trace.steps, [&](const Step& step) { return step.index > from && holds(step); });
  REQUIRE(at != trace.steps.end());
  return at->index;
}

// Steps at which a range begins where it is hard.
std::vector<StepIndex> hard_places(const Trace& trace) {
  const auto inside_prefill = [](const Step& step) {
    return step.phase == Phase::prefill && step.rows.front().position > 0 &&
           std::ranges::none_of(step.arrivals, [&](const Arrival& a) {
             return a.request == step.rows.front().request;
           });
  };
  const auto shared = [](const Step& step) {
    return std::ranges::any_of(step.arrivals, [](const Arrival& a) { return a.cached_tokens > 0; });
  };
  const auto resumed = [](const Step& step) {
    return std::ranges::any_of(step.arrivals, [](const Arrival& a) { return a.resumed; });
  };
  const StepIndex prefill = first_after(trace, 0, inside_prefill);
  const StepIndex prefix = first_after(trace, 0, shared);
  const StepIndex back = first_after(trace, 0, resumed);
  return {1,
          prefill,
          first_after(trace, trace.steps.size() / 2, inside_prefill),
          prefix,
          prefix + 1,
          back,
          back + 1,
          trace.steps.back().index};
}

void check_ranges(const Trace& trace, const Mode& mode, const std::vector<StepRange>& ranges) {
  const auto full = outputs_of(trace, mode, {});
  REQUIRE(full.size() == trace.steps.size());
  for (const StepRange& range : ranges) {
    INFO(trace.header.model.spec << ", " << describe(mode) << ", steps " << range.first << ".."
                                 << range.last);
    const auto part = outputs_of(trace, mode, range);
    const StepIndex last = std::min<StepIndex>(range.last, full.size() - 1);
    REQUIRE(part.size() == last - range.first + 1);
    const auto begin = full.begin() + static_cast<std::ptrdiff_t>(range.first);
    CHECK(std::equal(part.begin(), part.end(), begin));
  }
}

}  // namespace

TEST_CASE("a range replays as the same steps of the whole", "[range]") {
  for (const char* model : {"llama-small", "dsv4-small"}) {
    const Trace trace = pressed_trace(model);
    std::vector<StepRange> ranges;
    for (const StepIndex at : hard_places(trace)) ranges.push_back({at, at + 5});
    check_ranges(trace, mode_of(CaptureMode::eager, StreamMode::single), ranges);
    ranges.resize(5);
    check_ranges(trace, mode_of(CaptureMode::graph, StreamMode::multi, "seed:3"), ranges);
  }
}

TEST_CASE("every single step replays by itself", "[range][slow]") {
  for (const char* model : {"llama-small", "dsv4-small"}) {
    const Trace trace = pressed_trace(model);
    std::vector<StepRange> ranges;
    for (const Step& step : trace.steps) ranges.push_back({step.index, step.index});
    check_ranges(trace, mode_of(CaptureMode::eager, StreamMode::multi, "seed:8"), ranges);
    check_ranges(trace, mode_of(CaptureMode::graph, StreamMode::multi, "paced:8"), ranges);
  }
}

TEST_CASE("only what a range needs is restored", "[range]") {
  const Trace trace = pressed_trace("llama-small");
  const StepIndex last = trace.steps.back().index;
  const auto needed = requests_needed(trace.steps, last, last);
  for (const Row& row : trace.steps.back().rows) CHECK(needed.contains(row.request));
  size_t arrivals = 0;
  for (const Step& step : trace.steps) arrivals += step.arrivals.size();
  CHECK(needed.size() < arrivals);
}

TEST_CASE("an empty range and one behind the end are usage errors", "[range]") {
  RigOptions options;
  options.model = "llama-small";
  options.settings = settings_for(options.model);
  const Trace trace = record_agents(options, "sessions=1 rounds=1 ctx=4 max_tokens=2").trace;
  for (const StepRange range : {StepRange{2, 1}, StepRange{trace.steps.size(), UINT64_MAX}}) {
    ReplayOptions replaying;
    replaying.range = range;
    try {
      replay(trace, replaying);
      FAIL("replayed");
    } catch (const Error& e) {
      CHECK(e.code() == ErrorCode::usage);
    }
  }
}
