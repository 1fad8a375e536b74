// The same question gets the same answer: two instances in one process, and an order written down
// by one run and played back by another.
#include <catch2/catch_test_macros.hpp>

#include "engine/device/script.h"
#include "replayer/replay.h"
#include "tests/engine/rig.h"

using namespace redecode;
using namespace redecode::rig;

namespace {

Trace small_trace() {
  RigOptions options;
  options.settings = settings_for(options.model);
  return record_agents(options, "sessions=5 rounds=1 ctx=100 max_tokens=10").trace;
}

std::vector<StepOutput> run_all(EngineInstance& engine, const Trace& trace) {
  std::vector<StepOutput> out;
  for (const Step& step : trace.steps) out.push_back(engine.decoder().run(step));
  return out;
}

EngineRequest request_of(const Trace& trace, const Mode& mode) {
  return {trace.header.model.spec, trace.header.engine, mode, 1, true, true};
}

}  // namespace

TEST_CASE("two instances side by side give equal outputs, orders, layouts and findings",
          "[determinism]") {
  const Trace trace = small_trace();
  for (const auto capture : {CaptureMode::eager, CaptureMode::graph}) {
    for (const char* order : {"seed:5", "paced:5"}) {
      Mode mode = mode_of(capture, StreamMode::multi, order);
      mode.inject = {"early-free"};
      INFO(describe(mode));
      EngineInstance a(request_of(trace, mode));
      EngineInstance b(request_of(trace, mode));
      CHECK(a.identity() == b.identity());
      CHECK(run_all(a, trace) == run_all(b, trace));
      CHECK(a.decoder().pool().layout_digest() == b.decoder().pool().layout_digest());
      CHECK(a.decoder().inspector().findings() == b.decoder().inspector().findings());
    }
  }
}

TEST_CASE("a script made of recorded departures reproduces the run", "[determinism]") {
  const Trace trace = small_trace();
  for (const auto capture : {CaptureMode::eager, CaptureMode::graph}) {
    for (const char* defect : {"early-free", "dropped-fork"}) {
      Mode mode = mode_of(capture, StreamMode::multi, "seed:21");
      mode.inject = {defect};
      EngineInstance seeded(request_of(trace, mode));
      const auto first = run_all(seeded, trace);
      Script script;
      for (const StepOutput& output : first)
        if (!output.order.empty()) script.steps[output.step] = parse_departures(output.order);
      REQUIRE(script.steps.size() == trace.steps.size());
      mode.order = "script:" + to_text(script);
      INFO(defect);
      EngineInstance scripted(request_of(trace, mode));
      CHECK(run_all(scripted, trace) == first);
      CHECK(difference(trace.outputs, first).logits > 0);
    }
  }
}

TEST_CASE("another seed gives another order", "[determinism]") {
  const Trace trace = small_trace();
  EngineInstance a(request_of(trace, mode_of(CaptureMode::graph, StreamMode::multi, "seed:1")));
  EngineInstance b(request_of(trace, mode_of(CaptureMode::graph, StreamMode::multi, "seed:2")));
  const auto outputs_a = run_all(a, trace), outputs_b = run_all(b, trace);
  CHECK(outputs_a.back().order != outputs_b.back().order);
  CHECK(difference(outputs_a, outputs_b).logits == 0);
}
