// engine/explore/orders.h - linear extensions of an OpGraph: the orders a device could run it in.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/plan/op_graph.h"

namespace redecode {

using NodeOrder = std::vector<uint32_t>;
using NodePair = std::pair<uint32_t, uint32_t>;  // the first runs before the second

// Uniform among what is ready; into `out`, which keeps its capacity.
void random_order(const OpGraph& graph, uint64_t seed, NodeOrder& out);
// Random priorities of lanes with depth - 1 changes; see engine/device/pct_order.h.
void pct_order(const OpGraph& graph, uint64_t seed, uint32_t depth, NodeOrder& out);
// Oldest first, except that of each pair the first runs before the second. Nothing when no such
// order exists.
std::optional<NodeOrder> constrained_order(const OpGraph& graph, std::span<const NodePair> pairs);

struct ExhaustiveOptions {
  uint64_t limit_orders = 1'000'000;
  // Most times that a lane is left although its next op is ready; nothing: any number.
  std::optional<uint32_t> preemptions;
};

struct ExhaustiveResult {
  uint64_t orders = 0;    // visited
  uint64_t pruned = 0;    // branches that sleep sets showed to be repeats
  bool complete = false;  // every class of orders was visited
};

// Calls `visit` with one order of every class of orders that differ only in independent ops (sleep
// sets, Godefroid 1996); with a bound on preemptions, with every order within it. `visit` returns
// false to stop. More than kMostExhaustiveNodes nodes: nothing is visited, not complete.
inline constexpr uint32_t kMostExhaustiveNodes = 64;
ExhaustiveResult exhaustive_orders(const OpGraph& graph,
                                   const std::function<bool(uint32_t, uint32_t)>& conflict,
                                   const ExhaustiveOptions& options,
                                   const std::function<bool(std::span<const uint32_t>)>& visit);

}  // namespace redecode
