// engine/plan/reachability.h - Reachability: does one op of an OpGraph precede another?
//
// One vector clock a node, a counter a lane. Cost: building is O(edges * lanes), a query two loads
// and a comparison; 4 bytes a node and lane, lanes rounded up to 16.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/plan/op_graph.h"

namespace redecode {

class Reachability {
 public:
  Reachability() = default;
  explicit Reachability(const OpGraph& graph) { build(graph); }

  // Anew, in the memory there is.
  void build(const OpGraph& graph);

  // True when a path leads from `a` to `b`; false for a == b.
  bool precedes(uint32_t a, uint32_t b) const {
    const Place& place = places_[a];
    return a != b && clocks_[size_t{b} * stride_ + place.lane] >= place.position;
  }
  bool ordered(uint32_t a, uint32_t b) const { return precedes(a, b) || precedes(b, a); }

 private:
  struct Place {
    uint32_t lane = 0;
    uint32_t position = 0;  // in its lane, from 1
  };
  uint32_t stride_ = 16;
  std::vector<Place> places_;     // [nodes]
  std::vector<uint32_t> clocks_;  // [nodes, stride]
};

}  // namespace redecode
