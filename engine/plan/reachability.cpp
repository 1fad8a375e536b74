#include "engine/plan/reachability.h"

#include <algorithm>

namespace redecode {
namespace {

constexpr uint32_t kLanesAtOnce = 16;

// Of one cache line: what makes the loop vector code.
void join(uint32_t* to, const uint32_t* from) {
  for (uint32_t i = 0; i < kLanesAtOnce; ++i) to[i] = std::max(to[i], from[i]);
}

}  // namespace

Reachability::Reachability(const OpGraph& graph) : lanes_(graph.lanes) {
  const uint32_t nodes = graph.size();
  stride_ = std::max(1u, (graph.lane_count + kLanesAtOnce - 1) / kLanesAtOnce) * kLanesAtOnce;
  positions_.resize(nodes);
  clocks_.resize(size_t{nodes} * stride_);
  std::vector<uint32_t> counts(graph.lane_count);
  for (uint32_t node = 0; node < nodes; ++node) {
    uint32_t* const mine = clocks_.data() + size_t{node} * stride_;
    for (const uint32_t pred : graph.preds_of(node)) {
      const uint32_t* const theirs = clocks_.data() + size_t{pred} * stride_;
      for (uint32_t lane = 0; lane < stride_; lane += kLanesAtOnce)
        join(mine + lane, theirs + lane);
    }
    positions_[node] = mine[lanes_[node]] = ++counts[lanes_[node]];
  }
}

}  // namespace redecode
