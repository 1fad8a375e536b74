// engine/repair/edges.h - the fewest edges that stand between all racing pairs.
#pragma once
#include <span>
#include <vector>

#include "engine/repair/repair.h"

namespace redecode {

// A race as the two commands that an edge must lead between, earlier first.
struct RacePair {
  uint32_t first = 0, second = 0;
};

// See repair.h. Edges are in program order of their second command.
std::vector<RepairEdge> fewest_edges(const Program& program, const OpGraph& graph,
                                     std::span<const RacePair> pairs);

}  // namespace redecode
