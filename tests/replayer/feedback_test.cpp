// Own feedback is what production does: clean runs equal the recorded ones, and an error cascades.
#include <catch2/catch_test_macros.hpp>

#include "replayer/replay.h"
#include "tests/engine/rig.h"

using namespace redecode;
using namespace redecode::rig;

namespace {

std::vector<StepOutput> outputs_of(const Trace& trace, const Mode& mode) {
  std::vector<StepOutput> out;
  ReplayOptions options;
  options.mode = mode;
  options.inspect = false;
  options.output = [&](const StepOutput& output) { out.push_back(output); };
  replay(trace, options);
  return out;
}

Trace agents(const std::string& keys, uint32_t page_count) {
  RigOptions options;
  options.settings = settings_for(options.model);
  options.settings.page_count = page_count;
  return record_agents(options, keys).trace;
}

}  // namespace

TEST_CASE("own feedback equals recorded feedback in clean modes", "[feedback]") {
  const Trace trace = agents("sessions=6 rounds=2 ctx=110 new_min=8 new_max=20 max_tokens=14", 10);
  for (const auto capture : {CaptureMode::eager, CaptureMode::graph}) {
    for (const auto streams : {StreamMode::single, StreamMode::multi}) {
      Mode mode = mode_of(capture, streams, "seed:6");
      mode.feedback = Feedback::own;
      INFO(describe(mode));
      CHECK(difference(trace.outputs, outputs_of(trace, mode)).logits == 0);
    }
  }
}

TEST_CASE("with a defect, own feedback cascades", "[feedback]") {
  const Trace trace = agents("sessions=8 rounds=1 ctx=110 max_tokens=24", 200);
  Mode mode = mode_of(CaptureMode::graph, StreamMode::multi, "seed:1");
  mode.inject = {"early-free"};
  const Difference judged_alone = difference(trace.outputs, outputs_of(trace, mode));
  mode.feedback = Feedback::own;
  const Difference cascading = difference(trace.outputs, outputs_of(trace, mode));
  REQUIRE(judged_alone.tokens > 0);
  CHECK(judged_alone.first_step == cascading.first_step);
  CHECK(cascading.tokens > judged_alone.tokens);
}
