#include <catch2/catch_test_macros.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/sim_fixture.h"

using namespace redecode;
using namespace redecode::test;

namespace {

using Sequence = std::vector<uint32_t>;

GraphId captured(SimFixture& sim, const Program& program) {
  const CaptureResult result = sim.device.capture(program, sim.bindings);
  INFO(result.message);
  REQUIRE(result.status == CaptureStatus::ok);
  REQUIRE(result.message.empty());
  return result.graph;
}

Sequence launch(SimFixture& sim, GraphId graph, const std::string& order_text) {
  const auto order = make_order(order_text);
  Log log;
  sim.device.launch(graph, *order, &log);
  sim.device.sync(*order, &log);
  return log.commands;
}

struct Broken {
  CaptureStatus status;
  uint32_t command;
  bool operator==(const Broken&) const = default;
};

// Captures a program that breaks a rule; checks that the message names it and no graph is left.
Broken broken(const ProgramBuilder& builder, SimFixture& sim) {
  const CaptureResult result = sim.device.capture(builder.program, sim.bindings);
  CHECK(result.graph == 0);
  if (result.status != CaptureStatus::ok) {
    CHECK(result.message.starts_with(capture_error_name(result.status)));
    CHECK(result.message.find("command " + std::to_string(result.command)) != std::string::npos);
  }
  return {result.status, result.command};
}

ProgramBuilder fork_join(const TestKernels& kernels) {
  ProgramBuilder b(kernels);
  b.touch(0).record(0, 0).wait(1, 0).wait(2, 0).touch(1).touch(2).touch(0);
  b.record(1, 1).record(2, 2).wait(0, 1).wait(0, 2).touch(0);
  return b;
}

}  // namespace

TEST_CASE("capture errors carry CUDA's names") {
  CHECK(capture_error_name(CaptureStatus::ok) == "cudaSuccess");
  CHECK(capture_error_name(CaptureStatus::unjoined) == "cudaErrorStreamCaptureUnjoined");
  CHECK(capture_error_name(CaptureStatus::isolation) == "cudaErrorStreamCaptureIsolation");
  CHECK(capture_error_name(CaptureStatus::unsupported) == "cudaErrorStreamCaptureUnsupported");
  CHECK(capture_error_name(CaptureStatus::implicit) == "cudaErrorStreamCaptureImplicit");
}

TEST_CASE("a fork and join captures its ops and edges, and runs nothing yet") {
  SimFixture sim;
  ProgramBuilder b = fork_join(sim.kernels);
  b.set(0, 5, 3);
  const GraphId graph = captured(sim, b.program);
  CHECK(graph != 0);
  CHECK(sim.value<uint64_t>(5) == 0);
  const GraphStats stats = sim.device.graph_stats(graph);
  CHECK(stats.nodes == 6);
  CHECK(stats.edges == 7);  // fork 3, join 3, tail 1
  CHECK(launch(sim, graph, "fifo") == ops_of(b.program));
  CHECK(sim.value<uint64_t>(5) == 3);
  std::set<Sequence> seen;
  for (int seed = 0; seed < 100; ++seed) {
    seen.insert(launch(sim, graph, "seed:" + std::to_string(seed)));
  }
  CHECK(seen.size() == 6);
}

TEST_CASE("edges are stored once, and a wait before any node or record gives none") {
  SimFixture sim;
  ProgramBuilder b(sim.kernels);
  b.wait(0, 9);                                   // never recorded
  b.record(0, 0).wait(1, 0).touch(1);             // a second root
  b.touch(0).record(0, 1).record(0, 2);           // two events of one node
  b.wait(1, 1).wait(1, 2).wait(1, 1).touch(1);    // one edge each from both streams
  b.record(1, 3).wait(0, 3).wait(0, 1).touch(0);  // an edge from stream 1 and from stream 0
  const GraphId graph = captured(sim, b.program);
  CHECK(sim.device.graph_stats(graph).nodes == 4);
  CHECK(sim.device.graph_stats(graph).edges == 4);
}

TEST_CASE("work on a stream outside the capture is implicit") {
  SimFixture sim;
  ProgramBuilder b(sim.kernels);
  b.touch(0).record(0, 0).touch(1);
  CHECK(broken(b, sim) == Broken{CaptureStatus::implicit, 2});
  ProgramBuilder copy(sim.kernels);
  copy.touch(0).wait(1, 4).copy(1, 0, 1);  // waiting on an event never recorded joins nothing
  CHECK(broken(copy, sim) == Broken{CaptureStatus::implicit, 2});
}

TEST_CASE("a captured stream may not wait on an event recorded outside") {
  SimFixture sim;
  ProgramBuilder b(sim.kernels);
  b.touch(0).record(1, 0).wait(0, 0).touch(0);
  CHECK(broken(b, sim) == Broken{CaptureStatus::isolation, 2});
  ProgramBuilder side(sim.kernels);
  side.record(2, 7).touch(0).record(0, 0).wait(1, 0).wait(1, 7).touch(1);
  CHECK(broken(side, sim) == Broken{CaptureStatus::isolation, 4});
  ProgramBuilder outside(sim.kernels);
  outside.record(2, 7).wait(1, 7).touch(0);  // between streams that are not captured: fine
  captured(sim, outside.program);
}

TEST_CASE("the host can neither wait nor act in a capture") {
  SimFixture sim;
  ProgramBuilder sync(sim.kernels);
  sync.touch(0).sync(0);
  CHECK(broken(sync, sim) == Broken{CaptureStatus::unsupported, 1});
  ProgramBuilder side(sim.kernels);
  side.sync(3);
  CHECK(broken(side, sim) == Broken{CaptureStatus::unsupported, 0});
  ProgramBuilder host(sim.kernels);
  host.touch(0).touch(0).host_set(0, 1);
  CHECK(broken(host, sim) == Broken{CaptureStatus::unsupported, 2});
  CHECK(sim.value<uint64_t>(0) == 0);
}

TEST_CASE("every stream that joined must be joined back") {
  SimFixture sim;
  ProgramBuilder b(sim.kernels);
  b.touch(0).record(0, 0).wait(3, 0).touch(3).touch(3).touch(0);
  CHECK(broken(b, sim) == Broken{CaptureStatus::unjoined, 4});
  ProgramBuilder early(sim.kernels);  // joined, but not its last op
  early.touch(0).record(0, 0).wait(1, 0).touch(1).record(1, 1).touch(1).wait(0, 1).touch(0);
  CHECK(broken(early, sim) == Broken{CaptureStatus::unjoined, 5});
  ProgramBuilder transitive(sim.kernels);  // 2 joins 1, 1 joins 0
  transitive.touch(0).record(0, 0).wait(2, 0).touch(2).record(2, 1).wait(1, 1).touch(1);
  transitive.record(1, 2).wait(0, 2);
  captured(sim, transitive.program);
  ProgramBuilder idle(sim.kernels);  // joined without work
  idle.touch(0).record(0, 0).wait(1, 0);
  captured(sim, idle.program);
}

TEST_CASE("after a failed capture the next one works") {
  SimFixture sim;
  ProgramBuilder bad(sim.kernels);
  bad.set(0, 0, 1).touch(1);
  broken(bad, sim);
  ProgramBuilder good(sim.kernels);
  good.set(0, 0, 2);
  const GraphId graph = captured(sim, good.program);
  launch(sim, graph, "fifo");
  CHECK(sim.value<uint64_t>(0) == 2);
}

TEST_CASE("addresses and arguments are frozen, contents are not") {
  SimFixture sim;
  ProgramBuilder b(sim.kernels);
  b.set(0, 0, 5).mix(0, 1, 2, 4);
  const Program original = b.program;
  const GraphId graph = captured(sim, b.program);
  for (Arg& arg : b.program.args) arg.value = 1000;
  for (Region& region : b.program.regions) region.buffer = BufferId::persistent(9);
  b.program.commands.clear();
  sim.set_value(1, uint64_t{3});
  launch(sim, graph, "fifo");
  CHECK(sim.value<uint64_t>(0) == 5);
  CHECK(sim.value<uint64_t>(2) == 7 * 3 + 4);
  CHECK(sim.value<uint64_t>(9) == 0);
  sim.set_value(1, uint64_t{6});
  sim.set_value(2, uint64_t{0});
  launch(sim, graph, "fifo");
  CHECK(sim.value<uint64_t>(2) == 7 * 6 + 4);

  const auto order = make_order("fifo");
  Log log;
  sim.device.launch(graph, *order, &log);
  sim.device.sync(*order, &log);
  REQUIRE(log.program != nullptr);
  CHECK(log.program->commands == original.commands);
  CHECK(log.program->args == original.args);
}

TEST_CASE("a race that eager hides when the host keeps step shows in a graph") {
  SimFixture sim;
  ProgramBuilder b(sim.kernels);
  b.record(0, 0).wait(1, 0);
  b.set(0, 0, 5).set(1, 0, 9).copy(1, 0, 1);
  b.record(1, 1).wait(0, 1);
  const GraphId graph = captured(sim, b.program);
  const auto paced = make_order("paced:1"), seeded = make_order("seed:1");
  constexpr StepIndex kSteps = 32 * kPacedDepartureOneIn;
  StepIndex eager_wrong = 0, paced_wrong = 0, seeded_wrong = 0;
  for (StepIndex step = 0; step < kSteps; ++step) {
    paced->begin_step(step);
    sim.device.submit(b.program, sim.bindings, *paced, nullptr);
    eager_wrong += sim.value<uint64_t>(1) != 9 ? 1 : 0;
    sim.device.launch(graph, *paced, nullptr);  // has run on return
    paced_wrong += sim.value<uint64_t>(1) != 9 ? 1 : 0;
    seeded->begin_step(step);
    sim.device.launch(graph, *seeded, nullptr);
    sim.device.sync(*seeded, nullptr);
    seeded_wrong += sim.value<uint64_t>(1) != 9 ? 1 : 0;
  }
  CHECK(eager_wrong == 0);
  CHECK(paced_wrong > 0);
  CHECK(paced_wrong < kSteps / 100);
  CHECK(seeded_wrong > kSteps / 10);
}

TEST_CASE("a graph follows what stream 0 did and precedes what it does next") {
  SimFixture sim;
  ProgramBuilder before(sim.kernels);
  before.set(0, 0, 1).touch(3).touch(3);
  ProgramBuilder inside(sim.kernels);
  inside.mix(0, 0, 1, 1).record(0, 0).wait(1, 0).mix(1, 0, 2, 1).record(1, 1).wait(0, 1);
  ProgramBuilder after(sim.kernels);
  after.set(0, 0, 4).mix(0, 1, 3, 0).mix(0, 2, 3, 0).record(0, 0).wait(2, 0).copy(2, 1, 5);
  const GraphId graph = captured(sim, inside.program);
  bool interleaved = false;
  for (int seed = 0; seed < 60; ++seed) {
    sim.clear_buffers();
    const auto order = make_order("seed:" + std::to_string(seed));
    Log log;
    sim.device.submit(before.program, sim.bindings, *order, nullptr);
    sim.device.launch(graph, *order, &log);
    sim.device.submit(after.program, sim.bindings, *order, nullptr);
    ProgramBuilder side(sim.kernels);
    side.mix(5, 0, 6, 0);
    sim.device.submit(side.program, sim.bindings, *order, nullptr);
    sim.device.sync(*order, nullptr);
    CHECK(log.commands == Sequence{0, 3});
    CHECK(sim.value<uint64_t>(1) == 8);
    CHECK(sim.value<uint64_t>(2) == 8);
    CHECK(sim.value<uint64_t>(3) == 56 * 31 + 56);
    CHECK(sim.value<uint64_t>(5) == 8);
    interleaved = interleaved || sim.value<uint64_t>(6) == 7;  // stream 5 ran between set and set
  }
  CHECK(interleaved);
}

TEST_CASE("two graphs and repeated launches queue in order") {
  SimFixture sim;
  ProgramBuilder a(sim.kernels), b(sim.kernels), empty(sim.kernels);
  a.mix(0, 0, 1, 1);
  b.mix(0, 0, 1, 2);
  const GraphId first = captured(sim, a.program), second = captured(sim, b.program);
  const GraphId nothing = captured(sim, empty.program);
  CHECK(first != second);
  CHECK(sim.device.graph_stats(nothing).nodes == 0);
  for (const char* text : {"seed:3", "paced:3", "fifo"}) {
    sim.clear_buffers();
    const auto order = make_order(text);
    for (const GraphId graph : {first, second, nothing, first}) {
      sim.device.launch(graph, *order, nullptr);
    }
    sim.device.sync(*order, nullptr);
    CHECK(sim.value<uint64_t>(1) == (1 * 31 + 2) * 31 + 1);
  }
}

TEST_CASE("a destroyed graph finishes what was launched, and is a bug to use") {
  SimFixture sim;
  ProgramBuilder b(sim.kernels);
  b.mix(0, 0, 1, 1);
  const GraphId graph = captured(sim, b.program), other = captured(sim, b.program);
  const auto order = make_order("seed:1");
  sim.device.launch(graph, *order, nullptr);
  sim.device.destroy(graph);
  sim.device.sync(*order, nullptr);
  CHECK(sim.value<uint64_t>(1) == 1);
  sim.device.launch(other, *order, nullptr);
  sim.device.sync(*order, nullptr);
  CHECK(sim.value<uint64_t>(1) == 32);

  const auto use_after_destroy = [](void (*use)(SimDevice&, GraphId)) {
    SimFixture fixture;
    ProgramBuilder builder(fixture.kernels);
    builder.touch(0);
    const GraphId id = fixture.device.capture(builder.program, fixture.bindings).graph;
    fixture.device.destroy(id);
    use(fixture.device, id);
  };
  static const auto use = use_after_destroy;
  CHECK(ends_with_bug(
      [] { use([](SimDevice& d, GraphId id) { d.launch(id, *make_order("fifo"), nullptr); }); }));
  CHECK(ends_with_bug([] { use([](SimDevice& d, GraphId id) { d.graph_stats(id); }); }));
  CHECK(ends_with_bug([] { use([](SimDevice& d, GraphId id) { d.destroy(id); }); }));
  CHECK(ends_with_bug([] { use([](SimDevice& d, GraphId id) { d.graph_stats(id + 1); }); }));
  CHECK(ends_with_bug([] { use([](SimDevice& d, GraphId) { d.graph_stats(0); }); }));
  CHECK_FALSE(ends_with_bug([] { use([](SimDevice&, GraphId) {}); }));
  CHECK(ends_with_bug([] {  // also while a launch of it is pending
    SimFixture fixture;
    ProgramBuilder builder(fixture.kernels);
    builder.touch(0);
    const GraphId id = fixture.device.capture(builder.program, fixture.bindings).graph;
    fixture.device.launch(id, *make_order("fifo"), nullptr);
    fixture.device.destroy(id);
    fixture.device.graph_stats(id);
  }));
}
