#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "engine/price/timed_run.h"
#include "engine/repair/fix_price.h"
#include "traces/error.h"

namespace redecode {
namespace {

using Catch::Approx;

// Numbers that can be done on paper: 1 byte a nanosecond, no fixed cost unless set.
DeviceSpec paper() {
  DeviceSpec d;
  d.name = "paper";
  d.read_gb_per_s = d.write_gb_per_s = 1;
  d.vector_tflops = 1e6;
  d.tensor_tflops = 1e6;
  d.multiprocessors = 1;
  d.saturating_kb = 1;
  return d;
}

// Ops that read `bytes` of a buffer of their own, on given streams; edges by events.
struct Build {
  Program p;
  std::shared_ptr<NameTable> names = std::make_shared<NameTable>();
  std::shared_ptr<std::vector<PersistentBuffer>> buffers =
      std::make_shared<std::vector<PersistentBuffer>>();

  Build() {
    p.names = names;
    p.persistents = buffers;
    p.stream_count = 4;
  }
  Build& op(StreamId stream, uint64_t bytes) {
    const auto id = BufferId::persistent(static_cast<uint32_t>(buffers->size()));
    buffers->push_back({names->intern("b"), bytes, 1, true});
    Command c;
    c.stream = stream;
    c.name = names->intern("op");
    c.first_region = static_cast<uint32_t>(p.regions.size());
    c.region_count = 1;
    p.regions.push_back({id, Access::read, 0, bytes});
    p.commands.push_back(c);
    return *this;
  }
  Build& edge(StreamId after, StreamId before) {
    Command c;
    c.kind = CommandKind::record;
    c.stream = before;
    c.event = static_cast<EventId>(p.event_count++);
    p.commands.push_back(c);
    c.kind = CommandKind::wait;
    c.stream = after;
    p.commands.push_back(c);
    return *this;
  }
  TimedRun run(const DeviceSpec& d,
               std::span<const std::pair<uint32_t, uint32_t>> more = {}) const {
    return timed_run(p, op_graph(p, Submission::graph), d, Submission::graph, more);
  }
};

}  // namespace

TEST_CASE("Ops of one stream follow each other", "[price]") {
  const TimedRun r = Build().op(0, 3000).op(0, 2000).run(paper());
  CHECK(r.step_us == Approx(5.0));
  CHECK(r.ops[1].start_us == Approx(3.0));
  CHECK(r.bytes_read == 5000);
  CHECK(r.critical_path == std::vector<uint32_t>{0, 1});
}

TEST_CASE("Ops that run at once share the bandwidth fairly", "[price]") {
  // Both draw all of it alone: until the shorter is done each gets half.
  const TimedRun r = Build().op(0, 4000).op(1, 2000).run(paper());
  CHECK(r.ops[1].end_us == Approx(4.0));
  CHECK(r.ops[0].end_us == Approx(6.0));
  CHECK(r.busy_us == Approx(6.0));
}

TEST_CASE("A small op cannot draw the whole bandwidth, and leaves it to others", "[price]") {
  DeviceSpec d = paper();
  d.saturating_kb = 4;
  // 1,000 bytes draw a quarter: 4 us alone; 4,000 bytes draw all: 4 us alone.
  CHECK(Build().op(0, 1000).run(d).step_us == Approx(4.0));
  CHECK(Build().op(0, 1000).op(1, 1000).run(d).step_us == Approx(4.0));
  CHECK(Build().op(0, 4000).op(1, 1000).run(d).step_us == Approx(5.0));
}

TEST_CASE("Fixed costs overlap freely; nodes and events cost what the device says", "[price]") {
  DeviceSpec d = paper();
  d.kernel_floor_us = 10;
  CHECK(Build().op(0, 1000).op(1, 1000).run(d).step_us == Approx(12.0));
  CHECK(Build().op(0, 1000).op(0, 1000).run(d).step_us == Approx(22.0));
  d = paper();
  d.graph_node_us = 1;
  d.event_us = 2;
  CHECK(Build().op(0, 1000).edge(1, 0).op(1, 1000).run(d).step_us == Approx(5.0));
  CHECK(Build().op(0, 1000).op(0, 1000).run(d).step_us == Approx(3.0));
}

TEST_CASE("In eager mode the host issues one command after another", "[price]") {
  DeviceSpec d = paper();
  d.eager_launch_us = 5;
  const Build b = Build().op(0, 1000).op(1, 1000);
  const TimedRun r = timed_run(b.p, op_graph(b.p, Submission::eager), d, Submission::eager);
  CHECK(r.ops[0].start_us == Approx(5.0));
  CHECK(r.ops[1].start_us == Approx(10.0));
}

TEST_CASE("No order beats the bandwidth, and one stream beats no overlap", "[price]") {
  DeviceSpec d = paper();
  d.kernel_floor_us = 0.5;
  const Build b =
      Build().op(0, 3000).op(1, 500).op(2, 2000).edge(0, 1).op(0, 700).op(2, 100).op(1, 900);
  const double plain = b.run(d).step_us;
  CHECK(plain >= 7.2);
  for (uint32_t x = 0; x < 6; ++x)
    for (uint32_t y = x + 1; y < 6; ++y) {
      const std::vector<std::pair<uint32_t, uint32_t>> more = {{x, y}};
      const TimedRun r = b.run(d, more);
      CHECK(r.step_us >= 7.2);
      CHECK(r.ops[y].start_us >= r.ops[x].end_us - 1e-9);
    }
  const Program one = on_stream(b.p, std::nullopt, 0);
  CHECK(timed_run(one, op_graph(one, Submission::graph), d, Submission::graph).step_us >= plain);
}

TEST_CASE("What of a gain is kept", "[price]") {
  CHECK(gain_kept(10, 8, 8) == Approx(1.0));
  CHECK(gain_kept(10, 8, 9) == Approx(0.5));
  CHECK(gain_kept(10, 8, 10) == Approx(0.0));
  CHECK(gain_kept(8, 8, 8) == Approx(1.0));
}

TEST_CASE("Device descriptions: known names, files, and lines that are wrong", "[price]") {
  CHECK(known_device("h200").read_gb_per_s > 4000);
  CHECK(known_device("b200").read_gb_per_s > known_device("h200").read_gb_per_s);
  CHECK_THROWS_AS(known_device("tpu"), Error);
  const DeviceSpec d = parse_device("# mine\nname = lab\nread_gb_per_s = 900 # measured\n", "f");
  CHECK(d.name == "lab");
  CHECK(d.read_gb_per_s == Approx(900));
  CHECK(d.kernel_floor_us == Approx(known_device("h200").kernel_floor_us));
  for (const char* bad : {"speed = 3\n", "read_gb_per_s\n", "read_gb_per_s = fast\n",
                          "read_gb_per_s = -1\n", "read_gb_per_s = nan\n"}) {
    INFO(bad);
    try {
      parse_device(bad, "f");
      FAIL("accepted");
    } catch (const Error& e) {
      CHECK(e.context() == "f:1");
    }
  }
}

}  // namespace redecode
