// The happens-before check against brute force, on thousands of random programs.
#include <catch2/catch_test_macros.hpp>

#include "engine/explore/explorer.h"
#include "engine/litmus/verdict.h"
#include "engine/plan/reachability.h"
#include "tests/explore/random_litmus.h"

namespace redecode {
namespace {

std::set<std::pair<uint32_t, uint32_t>> races_of(const LitmusProgram& p) {
  std::set<std::pair<uint32_t, uint32_t>> out;
  for (const Finding& f : check_litmus(p))
    if (f.kind == FindingKind::race) out.emplace(f.first.command, f.second.command);
  return out;
}

uint64_t compare_with_brute_force(uint64_t seed, uint64_t programs) {
  uint64_t races = 0;
  for (uint64_t i = 0; i < programs; ++i) {
    RandomSequence random(seed, i);
    const std::string text = random_litmus(random);
    const LitmusProgram p = lower(parse_litmus(text, "random"));
    const auto found = races_of(p), possible = flippable_pairs(p.program);
    INFO(text);
    REQUIRE(found == possible);
    races += found.size();
  }
  return races;
}

}  // namespace

TEST_CASE("A race is reported if and only if an order has the pair adjacent either way",
          "[explore]") {
  CHECK(compare_with_brute_force(1, 2000) > 1000);
}

TEST_CASE("The same on 10,000 further programs", "[explore]") {
  CHECK(compare_with_brute_force(2, 10'000) > 5000);
}

TEST_CASE("Op graph and clocks order the same pairs", "[explore]") {
  for (uint64_t i = 0; i < 2000; ++i) {
    RandomSequence random(3, i);
    const std::string text = random_litmus(random);
    const LitmusProgram p = lower(parse_litmus(text, "random"));
    const OpGraph graph = op_graph(p.program, Submission::eager);
    const Reachability reach(graph);
    INFO(text);
    for (const auto& [a, b] : races_of(p)) {
      REQUIRE_FALSE(reach.precedes(graph.node_of[a], graph.node_of[b]));
      const std::vector<NodePair> flip = {{graph.node_of[b], graph.node_of[a]}};
      REQUIRE(constrained_order(graph, flip).has_value());
    }
    const auto races = races_of(p);
    for (uint32_t a = 0; a < graph.size(); ++a)
      for (uint32_t b = a + 1; b < graph.size(); ++b) {
        const bool conflict = flippable_pairs(p.program).empty() ? false : true;
        if (!conflict) continue;
        if (reach.ordered(a, b))
          REQUIRE_FALSE(races.contains({graph.commands[a], graph.commands[b]}));
      }
  }
}

}  // namespace redecode
