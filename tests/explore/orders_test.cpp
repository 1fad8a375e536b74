#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <set>

#include "engine/explore/content_model.h"
#include "engine/explore/orders.h"
#include "engine/litmus/lower.h"
#include "tests/explore/random_litmus.h"

namespace redecode {
namespace {

bool is_extension(const OpGraph& graph, std::span<const uint32_t> order) {
  std::vector<uint32_t> place(graph.size(), UINT32_MAX);
  for (uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  for (uint32_t node = 0; node < graph.size(); ++node) {
    if (place[node] == UINT32_MAX) return false;
    for (const uint32_t pred : graph.preds_of(node))
      if (place[pred] >= place[node]) return false;
  }
  return order.size() == graph.size();
}

// A class of orders: which of each conflicting pair comes first.
std::vector<bool> class_of(const OpGraph& graph, ContentModel& model,
                           std::span<const uint32_t> order) {
  std::vector<uint32_t> place(graph.size());
  for (uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::vector<bool> out;
  for (uint32_t a = 0; a < graph.size(); ++a)
    for (uint32_t b = a + 1; b < graph.size(); ++b)
      if (model.conflict(a, b)) out.push_back(place[a] < place[b]);
  return out;
}

// All linear extensions, by trying.
void all_orders(const OpGraph& graph, std::vector<uint32_t>& order, std::vector<bool>& done,
                const std::function<void(std::span<const uint32_t>)>& visit) {
  if (order.size() == graph.size()) return visit(order);
  for (uint32_t node = 0; node < graph.size(); ++node) {
    if (done[node]) continue;
    const auto preds = graph.preds_of(node);
    if (!std::ranges::all_of(preds, [&](uint32_t p) { return done[p]; })) continue;
    done[node] = true;
    order.push_back(node);
    all_orders(graph, order, done, visit);
    order.pop_back();
    done[node] = false;
  }
}

}  // namespace

TEST_CASE("Sleep sets visit every class of orders exactly once", "[explore]") {
  uint64_t classes = 0;
  for (uint64_t i = 0; i < 300; ++i) {
    RandomSequence random(11, i);
    RandomLitmusOptions options;
    options.most_ops = 7;
    const std::string text = random_litmus(random, options);
    const LitmusProgram p = lower(parse_litmus(text, "random"));
    const OpGraph graph = op_graph(p.program, Submission::eager);
    ContentModel model(p.program, p.extents, graph);
    std::set<std::vector<bool>> wanted, seen;
    std::vector<uint32_t> order;
    std::vector<bool> done(graph.size());
    all_orders(graph, order, done,
               [&](std::span<const uint32_t> o) { wanted.insert(class_of(graph, model, o)); });
    uint64_t visits = 0;
    const ExhaustiveResult result = exhaustive_orders(
        graph, [&](uint32_t a, uint32_t b) { return model.conflict(a, b); }, {},
        [&](std::span<const uint32_t> o) {
          ++visits;
          CHECK(is_extension(graph, o));
          seen.insert(class_of(graph, model, o));
          return true;
        });
    INFO(text);
    REQUIRE(result.complete);
    REQUIRE(seen == wanted);
    REQUIRE(visits == wanted.size());
    classes += visits;
  }
  CHECK(classes > 600);
}

TEST_CASE("Random, pct and constrained orders are orders of the graph", "[explore]") {
  for (uint64_t i = 0; i < 200; ++i) {
    RandomSequence random(12, i);
    const LitmusProgram p = lower(parse_litmus(random_litmus(random), "random"));
    const OpGraph graph = op_graph(p.program, Submission::eager);
    NodeOrder order, again;
    random_order(graph, i, order);
    random_order(graph, i, again);
    CHECK(is_extension(graph, order));
    CHECK(order == again);
    pct_order(graph, i, 3, order);
    CHECK(is_extension(graph, order));
    const auto fifo = constrained_order(graph, {});
    REQUIRE(fifo);
    CHECK(std::ranges::is_sorted(*fifo));
  }
}

TEST_CASE("A bound on preemptions leaves only orders within it", "[explore]") {
  const LitmusProgram p = lower(parse_litmus(
      "scenario x\npersist a @A =v\n1 M k m1 w=a\n2 M k m2 w=a\n3 S k s1 w=a\n4 S k s2 w=a\n",
      "x"));
  const OpGraph graph = op_graph(p.program, Submission::eager);
  const auto count = [&](std::optional<uint32_t> preemptions) {
    ExhaustiveOptions options;
    options.preemptions = preemptions;
    return exhaustive_orders(
               graph, [](uint32_t, uint32_t) { return true; }, options,
               [](std::span<const uint32_t>) { return true; })
        .orders;
  };
  CHECK(count(0) == 2);
  CHECK(count(1) == 4);
  CHECK(count(std::nullopt) == 6);
}

}  // namespace redecode
