#include <catch2/catch_test_macros.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/device/script.h"
#include "tests/sim/sim_fixture.h"
#include "traces/error.h"

using namespace redecode;
using namespace redecode::test;

namespace {

using Sequence = std::vector<uint32_t>;

// Submits, syncs, and returns what ran in order.
Sequence run(SimFixture& sim, const Program& program, Order& order) {
  Log log;
  order.begin_step(0);
  sim.device.submit(program, sim.bindings, order, &log);
  sim.device.sync(order, &log);
  return log.commands;
}

Sequence run(SimFixture& sim, const Program& program, const std::string& order_text) {
  const auto order = make_order(order_text);
  return run(sim, program, *order);
}

std::map<Sequence, int> sequences(SimFixture& sim, const Program& program,
                                  const std::string& prefix, int seeds) {
  std::map<Sequence, int> seen;
  for (int seed = 0; seed < seeds; ++seed) {
    ++seen[run(sim, program, prefix + std::to_string(seed))];
  }
  return seen;
}

}  // namespace

TEST_CASE("kernels, copies and fills compute on the bound buffers") {
  SimFixture sim;
  sim.set_value(0, 2.0f);
  sim.set_value(1, 10.0f);
  ProgramBuilder b(sim.kernels);
  b.axpy(0, 1.5f, 0, 1).copy(0, 1, 2).fill(0, 3, 0xab).axpy(0, 1.0f, 2, 1).set(0, 4, 77);
  b.program.regions.back().offset_bytes = 8;
  run(sim, b.program, "fifo");
  CHECK(sim.value<float>(1) == 26.0f);
  CHECK(sim.value<float>(2) == 13.0f);
  CHECK(sim.value<uint64_t>(3) == 0xabababababababab);
  CHECK(sim.value<uint64_t>(4) == 0);
  std::byte at_offset[1];
  sim.device.read(sim.persistents[4].address + 8, at_offset);
  CHECK(at_offset[0] == std::byte{77});
}

TEST_CASE("a kernel without a body takes its place and touches nothing") {
  SimFixture sim;
  ProgramBuilder b(sim.kernels);
  b.set(0, 0, 1).set(0, 0, 2);
  b.program.commands[1].kernel = sim.kernels.table.add({"bare", 1, 1, nullptr});
  CHECK(run(sim, b.program, "fifo") == Sequence{0, 1});
  CHECK(sim.value<uint64_t>(0) == 1);
}

TEST_CASE("fifo runs in issue order across streams") {
  SimFixture sim;
  ProgramBuilder b(sim.kernels);
  b.touch(2).touch(0).record(2, 0).touch(1).wait(0, 0).touch(0).touch(2).copy(1, 0, 1).fill(0, 2,
                                                                                            1);
  b.touch(1).sync(1).touch(3).touch(0);
  CHECK(run(sim, b.program, "fifo") == ops_of(b.program));
  CHECK(run(sim, b.program, "paced:3") == ops_of(b.program));
}

TEST_CASE("seeds reach every order that the streams leave free, and no other") {
  SimFixture sim;
  ProgramBuilder b(sim.kernels);
  b.touch(0).touch(1).touch(0).touch(1);
  const auto seen = sequences(sim, b.program, "seed:", 300);
  CHECK(seen.size() == 6);
  for (const auto& [sequence, count] : seen) CHECK(count > 10);
}

TEST_CASE("one candidate is no choice") {
  SimFixture sim;
  ProgramBuilder b(sim.kernels);
  b.touch(0).record(0, 0).wait(1, 0).touch(1).record(1, 1).wait(0, 1).touch(0);
  const auto inner = make_order("seed:1");
  RecordingOrder order(*inner);
  CHECK(run(sim, b.program, order) == ops_of(b.program));
  CHECK(order.choices() == 0);
}

TEST_CASE("a wait binds to the recording before it, not to a later one") {
  SimFixture sim;
  ProgramBuilder b(sim.kernels);
  // 0 record e, wait e on 1; then e is recorded again behind a second op.
  b.touch(0).record(0, 5).wait(1, 5).touch(0).record(0, 5).touch(1).wait(2, 5).touch(2);
  bool early = false;
  for (const auto& [sequence, count] : sequences(sim, b.program, "seed:", 100)) {
    std::map<uint32_t, size_t> at;
    for (size_t i = 0; i < sequence.size(); ++i) at[sequence[i]] = i;
    CHECK(at[0] < at[5]);
    CHECK(at[3] < at[7]);
    early = early || at[5] < at[3];
  }
  CHECK(early);
}

TEST_CASE("a wait before any record is no edge, nor is one on an earlier submit's event") {
  SimFixture sim;
  ProgramBuilder first(sim.kernels);
  first.touch(0).touch(0).record(0, 1);
  ProgramBuilder second(sim.kernels);
  second.wait(1, 1).set(1, 0, 1).record(0, 1);
  bool overtakes = false;
  for (int seed = 0; seed < 40; ++seed) {
    const auto order = make_order("seed:" + std::to_string(seed));
    Log log;
    sim.device.submit(first.program, sim.bindings, *order, &log);
    sim.device.submit(second.program, sim.bindings, *order, &log);
    CHECK(log.commands.empty());
    sim.device.sync(*order, &log);
    REQUIRE(log.commands.size() == 3);
    overtakes = overtakes || log.commands.back() != 1 || log.commands.front() == 1;
  }
  CHECK(overtakes);
  ProgramBuilder never(sim.kernels);
  never.wait(0, 3).touch(0);
  CHECK(run(sim, never.program, "seed:1") == Sequence{1});
}

TEST_CASE("a later submit queues behind an earlier one, stream by stream") {
  SimFixture sim;
  ProgramBuilder b(sim.kernels);
  b.set(0, 0, 1).mix(0, 0, 1, 1);
  ProgramBuilder c(sim.kernels);
  c.set(0, 0, 2).mix(0, 0, 1, 2);
  for (int seed = 0; seed < 20; ++seed) {
    sim.clear_buffers();
    const auto order = make_order("seed:" + std::to_string(seed));
    sim.device.submit(b.program, sim.bindings, *order, nullptr);
    sim.device.submit(c.program, sim.bindings, *order, nullptr);
    sim.device.sync(*order, nullptr);
    CHECK(sim.value<uint64_t>(1) == (7 * 1 + 1) * 31 + 7 * 2 + 2);
  }
}

TEST_CASE("sync drains its stream and whatever that needs, not the others") {
  SimFixture sim;
  ProgramBuilder b(sim.kernels);
  b.touch(1).record(1, 0).touch(1).touch(2).wait(0, 0).touch(0).sync(0);
  bool others_left = false;
  for (int seed = 0; seed < 60; ++seed) {
    const auto order = make_order("seed:" + std::to_string(seed));
    Log log;
    sim.device.submit(b.program, sim.bindings, *order, &log);
    const std::set<uint32_t> before(log.commands.begin(), log.commands.end());
    CHECK(before.contains(0));
    CHECK(log.commands.back() == 5);
    others_left = others_left || before.size() == 2;
    sim.device.sync(*order, &log);
    CHECK(log.commands.size() == 4);
  }
  CHECK(others_left);
}

TEST_CASE("a host command acts when it is issued, whatever is pending") {
  SimFixture sim;
  ProgramBuilder b(sim.kernels);
  b.host_set(0, 1).copy(0, 0, 1).host_set(0, 2);
  CHECK(run(sim, b.program, "seed:1") == Sequence{0, 2, 1});
  CHECK(sim.value<uint64_t>(1) == 2);
  CHECK(run(sim, b.program, "paced:1") == Sequence{0, 1, 2});
  CHECK(sim.value<uint64_t>(1) == 1);
  ProgramBuilder synced(sim.kernels);
  synced.host_set(0, 1).copy(0, 0, 1).sync(0).host_set(0, 2);
  run(sim, synced.program, "seed:1");
  CHECK(sim.value<uint64_t>(1) == 1);
}

TEST_CASE("a missing edge never shows when the host keeps step, and shows when it runs ahead") {
  SimFixture sim;
  ProgramBuilder b(sim.kernels);
  b.set(0, 0, 5).set(1, 0, 9).copy(1, 0, 1);  // stream 1 does not wait for stream 0
  b.touch(2).touch(2);
  std::set<uint64_t> paced, seeded;
  for (int seed = 0; seed < 100; ++seed) {
    run(sim, b.program, "paced:" + std::to_string(seed));
    paced.insert(sim.value<uint64_t>(1));
    run(sim, b.program, "seed:" + std::to_string(seed));
    seeded.insert(sim.value<uint64_t>(1));
  }
  CHECK(paced == std::set<uint64_t>{9});
  CHECK(seeded == std::set<uint64_t>{5, 9});
}

TEST_CASE("what ops need is copied at issue") {
  SimFixture sim;
  const auto order = make_order("seed:1");
  {
    auto b = std::make_unique<ProgramBuilder>(sim.kernels);
    b->set(0, 0, 11).copy(0, 0, 1).fill(1, 2, 3);
    Bindings bindings = sim.bindings;
    sim.device.submit(b->program, bindings, *order, nullptr);
    for (Arg& arg : b->program.args) arg.value = 99;
    b->program.regions.clear();
    b->program.commands.clear();
    bindings.persistents = nullptr;
  }
  sim.device.sync(*order, nullptr);
  CHECK(sim.value<uint64_t>(0) == 11);
  CHECK(sim.value<uint64_t>(1) == 11);
  CHECK(sim.value<uint64_t>(2) == 0x0303030303030303);
}

TEST_CASE("an observer sees the bytes as each op left them") {
  struct Peek final : Observer {
    void ran(const Program& program, const Bindings& bindings, uint32_t command) override {
      const auto operands = program.operands_of(program.commands[command]);
      uint64_t value = 0;
      std::memcpy(&value, bindings.of(operands.back().buffer).address, sizeof value);
      seen.push_back(value);
    }
    std::vector<uint64_t> seen;
  };
  SimFixture sim;
  ProgramBuilder b(sim.kernels);
  b.set(0, 0, 1).set(0, 0, 2).host_set(1, 3).set(0, 0, 4);
  Peek peek;
  const auto order = make_order("paced:1");
  sim.device.submit(b.program, sim.bindings, *order, &peek);
  CHECK(peek.seen == std::vector<uint64_t>{1, 2, 3, 4});
}

TEST_CASE("an op is shown to the observer of its issue, or to the one of sync in its place") {
  SimFixture sim;
  ProgramBuilder b(sim.kernels);
  b.touch(0);
  const auto order = make_order("seed:1");
  Log issue, sync;
  sim.device.submit(b.program, sim.bindings, *order, nullptr);
  sim.device.submit(b.program, sim.bindings, *order, &issue);
  sim.device.sync(*order, nullptr);
  CHECK(issue.commands == Sequence{0});
  sim.device.submit(b.program, sim.bindings, *order, nullptr);
  sim.device.submit(b.program, sim.bindings, *order, &issue);
  sim.device.sync(*order, &sync);
  CHECK(issue.commands.size() == 1);
  CHECK(sync.commands == Sequence{0});
}

TEST_CASE("a script that does not fit leaves the work pending") {
  SimFixture sim;
  ProgramBuilder b(sim.kernels);
  b.set(0, 0, 1).set(1, 1, 2).set(0, 2, 3);
  const auto script = make_order("script:0/1.7");
  const auto fifo = make_order("fifo");
  sim.device.submit(b.program, sim.bindings, *script, nullptr);
  CHECK_THROWS_AS(sim.device.sync(*script, nullptr), Error);
  sim.device.sync(*fifo, nullptr);
  CHECK(sim.values()[0] == 1);
  CHECK(sim.values()[1] == 2);
  CHECK(sim.values()[2] == 3);
}
