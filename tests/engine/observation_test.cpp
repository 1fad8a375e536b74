// Watching changes nothing: layout, program, order and outputs are the same with and without
// probes, also where a defect makes the outcome depend on them.
#include <catch2/catch_test_macros.hpp>

#include "engine/memory/bindings.h"
#include "tests/engine/rig.h"

using namespace redecode;
using namespace redecode::rig;

namespace {

// Segments that are only addresses.
class Addresses final : public SegmentSource {
 public:
  std::byte* reserve(uint64_t size_bytes) override {
    const uint64_t at = next_;
    next_ += round_block_bytes(size_bytes);
    return reinterpret_cast<std::byte*>(at);
  }
  void release(std::byte*) override {}

 private:
  uint64_t next_ = uint64_t{1} << 40;
};

// What one run leaves behind, step by step.
struct Trail {
  std::vector<StepOutput> outputs;  // without probes
  std::vector<Digest> pools;
  std::vector<size_t> probes;
};

Trail trail_of(const RigOptions& options, const Trace& trace) {
  Rig rig(options);
  Trail out;
  for (const Step& step : trace.steps) {
    StepOutput output = rig.decoder().run(step);
    out.probes.push_back(output.ops.size());
    output.ops.clear();
    out.outputs.push_back(std::move(output));
    out.pools.push_back(rig.decoder().pool().layout_digest());
  }
  return out;
}

Trace small_trace(const RigOptions& options) {
  return record_agents(options, "sessions=5 rounds=1 ctx=90 max_tokens=6").trace;
}

Program without_touched(Program program) {
  program.touched.clear();
  for (Command& c : program.commands) c.first_touched = c.touched_count = 0;
  return program;
}

}  // namespace

TEST_CASE("probes disturb neither layout nor order nor outputs", "[observation]") {
  RigOptions options;
  options.settings = settings_for(options.model);
  const Trace trace = small_trace(options);
  for (const std::vector<std::string>& inject : {std::vector<std::string>{}, {"early-free"}}) {
    for (const auto capture : {CaptureMode::eager, CaptureMode::graph}) {
      options.mode = mode_of(capture, StreamMode::multi, "seed:9");
      options.mode.inject = inject;
      INFO(describe(options.mode));
      const Trail alone = trail_of(options, trace);
      bool departed = false;
      for (const StepOutput& output : alone.outputs) departed |= !output.order.empty();
      REQUIRE(departed);
      for (const Probe probe : {Probe::ops, Probe::values}) {
        options.mode.probe = probe;
        options.inspect = probe == Probe::values;
        const Trail watched = trail_of(options, trace);
        CHECK(watched.outputs == alone.outputs);
        CHECK(watched.pools == alone.pools);
        for (const size_t count : watched.probes) CHECK(count > 100);
      }
      for (const size_t count : alone.probes) CHECK(count == 0);
      options.inspect = false;
    }
  }
}

TEST_CASE("a watched step lowers to the same program and binds to the same places",
          "[observation]") {
  RigOptions options;
  options.settings = settings_for(options.model);
  const Trace trace = small_trace(options);
  options.mode = mode_of(CaptureMode::eager, StreamMode::multi);
  Rig alone(options);
  options.mode.probe = Probe::ops;
  options.inspect = true;
  Rig watched(options);
  const std::vector<Binding> persistents(alone.model().persistents()->size());
  for (const Step& step : trace.steps) {
    alone.decoder().run(step);
    watched.decoder().run(step);
    const Program& a = alone.decoder().last_program();
    const Program& b = watched.decoder().last_program();
    REQUIRE(a.touched.empty());
    REQUIRE_FALSE(b.touched.empty());
    REQUIRE(dump(a) == dump(without_touched(b)));
    Addresses space_a, space_b;
    Pool pool_a(space_a), pool_b(space_b);
    const Bindings bound_a = bind(a, pool_a, kOrdinaryPool, persistents);
    const Bindings bound_b = bind(b, pool_b, kOrdinaryPool, persistents);
    REQUIRE(bound_a.layout_digest() == bound_b.layout_digest());
    REQUIRE(pool_a.layout_digest() == pool_b.layout_digest());
    release(bound_a, pool_a);
    release(bound_b, pool_b);
  }
}
