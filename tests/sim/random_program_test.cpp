// Random programs under all kinds of orders, held against a model of what must precede what.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/device/script.h"
#include "engine/device/sim/op.h"
#include "tests/sim/sim_fixture.h"
#include "traces/random.h"

using namespace redecode;
using namespace redecode::test;

namespace {

using Sequence = std::vector<uint32_t>;
using OpSet = uint64_t;  // bit i: the program's i-th op

constexpr uint32_t kStreams = 4, kEvents = 5;
constexpr size_t kMaxOps = 60;

StreamId any_stream(RandomSequence& random) {
  return static_cast<StreamId>(random.below(kStreams));
}

void add_op(ProgramBuilder& b, RandomSequence& random, StreamId stream) {
  const auto from = static_cast<uint32_t>(random.below(6));
  const auto to = static_cast<uint32_t>(random.below(6));
  switch (random.below(5)) {
    case 0:
      b.copy(stream, from, to);
      break;
    case 1:
      b.fill(stream, to, static_cast<int64_t>(random.below(256)));
      break;
    default:
      b.mix(stream, from, to, static_cast<int64_t>(random.below(1000)));
  }
}

// Mostly unordered streams with events recorded again and again; syncs only where asked.
ProgramBuilder random_program(const TestKernels& kernels, uint64_t seed, bool graph) {
  RandomSequence random(seed);
  ProgramBuilder b(kernels, kEvents + kStreams + 1);
  if (graph) {
    b.record(0, kEvents);
    for (StreamId s = 1; s < kStreams; ++s) b.wait(s, kEvents);
  }
  const size_t op_count = 5 + random.below(kMaxOps - 5);
  for (size_t ops = 0; ops < op_count;) {
    const StreamId stream = any_stream(random);
    const auto event = static_cast<EventId>(random.below(kEvents));
    switch (random.below(graph ? 9 : 10)) {
      case 0:
      case 1:
        b.record(stream, event);
        break;
      case 2:
      case 3:
        b.wait(stream, event);
        break;
      case 9:
        b.sync(stream);
        break;
      default:
        add_op(b, random, stream);
        ++ops;
    }
  }
  if (graph) {
    for (StreamId s = 1; s < kStreams; ++s) {
      const auto event = static_cast<EventId>(kEvents + s);
      b.record(s, event).wait(0, event);
    }
  }
  return b;
}

// What must have run before each op, from the program alone: stream order, event edges by
// generation and, for eager programs, syncs.
std::map<uint32_t, OpSet> must_precede(const Program& program) {
  std::map<uint32_t, OpSet> before;
  std::vector<OpSet> streams(kStreams, 0), events(program.event_count, 0);
  OpSet host = 0;
  uint32_t op = 0;
  for (uint32_t i = 0; i < program.commands.size(); ++i) {
    const Command& c = program.commands[i];
    OpSet& stream = streams[c.stream];
    stream |= host;
    if (is_stream_op(c.kind)) {
      before[i] = stream;
      stream |= OpSet{1} << op++;
    } else if (c.kind == CommandKind::record) {
      events[c.event] = stream;
    } else if (c.kind == CommandKind::wait) {
      stream |= events[c.event];
    } else if (c.kind == CommandKind::sync) {
      host |= stream;
    }
  }
  return before;
}

// Every op once, none before what must precede it.
bool honours(const Program& program, const Sequence& sequence) {
  Sequence sorted = sequence;
  std::sort(sorted.begin(), sorted.end());
  const Sequence ops = ops_of(program);
  if (sorted != ops) return false;
  const auto before = must_precede(program);
  OpSet done = 0;
  for (const uint32_t command : sequence) {
    if ((before.at(command) & ~done) != 0) return false;
    const auto op = std::lower_bound(ops.begin(), ops.end(), command) - ops.begin();
    done |= OpSet{1} << op;
  }
  return true;
}

struct Result {
  Sequence sequence;
  std::vector<uint64_t> values;
  std::string departures;
  bool operator==(const Result&) const = default;
};

constexpr StepIndex kStep = 12;

// Runs eagerly, or from a graph when `graph` is not 0.
Result run(SimFixture& sim, const Program& program, GraphId graph, const std::string& order_text) {
  sim.clear_buffers();
  sim.set_value(0, uint64_t{3});
  const auto inner = make_order(order_text);
  RecordingOrder order(*inner);
  order.begin_step(kStep);
  Log log;
  if (graph != 0) {
    sim.device.launch(graph, order, &log);
  } else {
    sim.device.submit(program, sim.bindings, order, &log);
  }
  sim.device.sync(order, &log);
  return {log.commands, sim.values(), order.departures()};
}

GraphId graph_of(SimFixture& sim, const Program& program) {
  const CaptureResult result = sim.device.capture(program, sim.bindings);
  INFO(result.message);
  REQUIRE(result.status == CaptureStatus::ok);
  return result.graph;
}

std::string script_of(const Result& result) {
  return "script:" + script_entry(kStep, result.departures);
}

// Checks one program under fifo, paced and seeded orders; returns how many different orders ran.
size_t check_orders(SimFixture& sim, const Program& program, GraphId graph) {
  std::set<Sequence> seen;
  const Result fifo = run(sim, program, graph, "fifo");
  REQUIRE(fifo.sequence == ops_of(program));
  REQUIRE(fifo.departures.empty());
  for (int seed = 0; seed < 6; ++seed) {
    const std::string number = std::to_string(seed);
    const Result paced = run(sim, program, graph, "paced:" + number);
    REQUIRE(honours(program, paced.sequence));
    if (graph == 0) REQUIRE(paced.sequence == fifo.sequence);
    const Result seeded = run(sim, program, graph, "seed:" + number);
    REQUIRE(honours(program, seeded.sequence));
    REQUIRE(run(sim, program, graph, "seed:" + number) == seeded);
    REQUIRE(run(sim, program, graph, script_of(seeded)) == seeded);
    seen.insert(seeded.sequence);
  }
  return seen.size();
}

}  // namespace

TEST_CASE("the model of the random tests tells a wrong order") {
  const TestKernels kernels;
  ProgramBuilder b(kernels, kEvents);
  b.touch(0).record(0, 0).wait(1, 0).touch(1).touch(0);
  CHECK(honours(b.program, {0, 3, 4}));
  CHECK(honours(b.program, {0, 4, 3}));
  CHECK_FALSE(honours(b.program, {3, 0, 4}));
  CHECK_FALSE(honours(b.program, {4, 0, 3}));
  CHECK_FALSE(honours(b.program, {0, 3}));
  CHECK_FALSE(honours(b.program, {0, 3, 3, 4}));
}

TEST_CASE(
    "eager programs honour streams, events and syncs under every order, twice and by script") {
  SimFixture sim;
  size_t orders = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    const ProgramBuilder b = random_program(sim.kernels, seed, false);
    orders += check_orders(sim, b.program, 0);
  }
  CHECK(orders > 150 * 4);
}

TEST_CASE("graphs honour their edges under every order, twice and by script") {
  SimFixture sim;
  size_t orders = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    const ProgramBuilder b = random_program(sim.kernels, seed + 1000, true);
    const GraphId graph = graph_of(sim, b.program);
    REQUIRE(sim.device.graph_stats(graph).nodes == ops_of(b.program).size());
    orders += check_orders(sim, b.program, graph);
    sim.device.destroy(graph);
  }
  CHECK(orders > 150 * 4);
}

TEST_CASE("another device at other addresses runs the same orders to the same values") {
  SimFixture first, second;
  second.device.reserve(12345);
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const ProgramBuilder b = random_program(first.kernels, seed, false);
    const Result result = run(first, b.program, 0, "seed:5");
    REQUIRE(run(second, b.program, 0, "seed:5") == result);
  }
}

TEST_CASE("several submits and launches without a sync between are replayed by their script") {
  SimFixture sim;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const ProgramBuilder a = random_program(sim.kernels, seed, false);
    const ProgramBuilder g = random_program(sim.kernels, seed + 500, true);
    const GraphId graph = graph_of(sim, g.program);
    const auto all = [&](const std::string& text) {
      sim.clear_buffers();
      const auto inner = make_order(text);
      RecordingOrder order(*inner);
      order.begin_step(kStep);
      Log log;
      for (int round = 0; round < 3; ++round) {
        sim.device.submit(a.program, sim.bindings, order, &log);
        sim.device.launch(graph, order, &log);
      }
      sim.device.sync(order, &log);
      return Result{log.commands, sim.values(), order.departures()};
    };
    const Result result = all("seed:" + std::to_string(seed));
    REQUIRE(result.sequence.size() == 3 * (ops_of(a.program).size() + ops_of(g.program).size()));
    REQUIRE(all(script_of(result)) == result);
  }
}
