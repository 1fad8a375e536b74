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

void Reachability::build(const OpGraph& graph) {
  const uint32_t nodes = graph.size();
  stride_ = std::max(1u, (graph.lane_count + kLanesAtOnce - 1) / kLanesAtOnce) * kLanesAtOnce;
  places_.resize(nodes);
  clocks_.resize(size_t{nodes} * stride_);
  std::vector<uint32_t> counts(graph.lane_count);
  for (uint32_t node = 0; node < nodes; ++node) {
    uint32_t* const mine = clocks_.data() + size_t{node} * stride_;
    const auto preds = graph.preds_of(node);
    if (preds.empty())
      std::fill_n(mine, stride_, 0u);
    else
      std::copy_n(clocks_.data() + size_t{preds[0]} * stride_, stride_, mine);
    for (size_t i = 1; i < preds.size(); ++i) {
      const uint32_t* const theirs = clocks_.data() + size_t{preds[i]} * stride_;
      for (uint32_t lane = 0; lane < stride_; lane += kLanesAtOnce)
        join(mine + lane, theirs + lane);
    }
    const uint32_t lane = graph.lanes[node];
    places_[node] = {lane, ++counts[lane]};
    mine[lane] = counts[lane];
  }
}

}  // namespace redecode
