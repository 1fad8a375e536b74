// bench/explore.cpp - what the search for a witness costs: vector clocks and queries on a large
// graph, and orders explored a second on programs of litmus size.
//
// Medians; CPU time of one thread.
#include <cstdio>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "engine/explore/explorer.h"
#include "engine/litmus/verdict.h"
#include "engine/plan/op_graph.h"
#include "engine/plan/reachability.h"
#include "traces/random.h"

namespace redecode {
namespace {

constexpr uint32_t kNodes = 100'000, kLanes = 16;

// Nodes in turn on 16 streams; every fourth waits for the newest node of another stream.
Program wide_program() {
  Program p;
  auto names = std::make_shared<NameTable>();
  const NameId op = names->intern("op");
  p.names = names;
  p.persistents = std::make_shared<std::vector<PersistentBuffer>>();
  p.stream_count = kLanes;
  p.event_count = kLanes;
  for (uint32_t i = 0; i < kNodes; ++i) {
    const auto stream = static_cast<StreamId>(i % kLanes);
    if (i % 4 == 0 && i >= kLanes) {
      const auto other = static_cast<StreamId>(random_below(random_bits(5, i), kLanes));
      Command record, wait;
      record.kind = CommandKind::record;
      record.stream = other;
      wait.kind = CommandKind::wait;
      wait.stream = stream;
      record.event = wait.event = other;
      record.name = wait.name = op;
      p.commands.push_back(record);
      p.commands.push_back(wait);
    }
    Command launch;
    launch.kind = CommandKind::launch;
    launch.stream = stream;
    launch.name = op;
    p.commands.push_back(launch);
  }
  return p;
}

void measure_reachability(bool quick) {
  const Program program = wide_program();
  std::vector<double> graph_s, clock_s, query_s;
  uint64_t found = 0;
  constexpr uint32_t kQueries = 1'000'000;
  std::vector<std::pair<uint32_t, uint32_t>> pairs(kQueries);
  for (uint32_t i = 0; i < kQueries; ++i)
    pairs[i] = {static_cast<uint32_t>(random_below(random_bits(6, i), kNodes)),
                static_cast<uint32_t>(random_below(random_bits(7, i), kNodes))};
  for (int turn = 0; turn < (quick ? 5 : 21); ++turn) {
    OpGraph graph;
    graph_s.push_back(seconds_of([&] { graph = op_graph(program, Submission::eager); }));
    REDECODE_CHECK_OP(graph.size(), ==, kNodes);
    Reachability reach;
    reach.build(graph);  // the first touches fresh memory
    clock_s.push_back(seconds_of([&] { reach.build(graph); }));
    query_s.push_back(seconds_of([&] {
      for (const auto& [a, b] : pairs) found += reach.precedes(a, b);
    }));
  }
  std::printf(
      "op graph of %u nodes on %u streams: %.2f ms; clocks %.2f ms; a query %.1f ns (%llu)\n",
      kNodes, kLanes, median(graph_s) * 1e3, median(clock_s) * 1e3,
      median(query_s) * 1e9 / kQueries, static_cast<unsigned long long>(found & 1));
}

constexpr const char* kReuse =
    "scenario reuse\npersist x @X =x0\n1 M rec fork\n2 S wait fork\n3 S alloc k8 @P0\n"
    "4 S k precompute r=x w=k8:k\n5 S rec ready\n6 M wait ready\n7 M k consume r=k8:k\n8 S free "
    "k8\n"
    "9 S alloc t2 @P0\n10 S k next_tmp r=x w=t2:t\n";

void measure_orders(bool quick) {
  const LitmusProgram litmus = lower(parse_litmus(kReuse, "reuse"));
  const OpGraph graph = op_graph(litmus.program, Submission::eager);
  ExploreOptions options;
  options.random_orders = options.pct_orders = quick ? 20'000 : 200'000;
  Exploration e;
  const double seconds =
      seconds_of([&] { e = explore(litmus.program, litmus.extents, graph, {}, options); });
  const double orders = static_cast<double>(e.random.tried + e.pct.tried);
  std::printf("explored %.0f orders of a litmus program in %.3f s: %.0f a second, %llu wrong\n",
              orders, seconds, orders / seconds,
              static_cast<unsigned long long>(e.random.wrong + e.pct.wrong));
}

int run(int argc, char** argv) {
  const bool quick = has_flag(argc, argv, "--quick");
  measure_reachability(quick);
  measure_orders(quick);
  return 0;
}

}  // namespace
}  // namespace redecode

int main(int argc, char** argv) { return redecode::run(argc, argv); }
