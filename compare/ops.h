// compare/ops.h - the first op of a step whose outputs differ between two probed runs.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "compare/divergence.h"

namespace redecode {

struct OpsDifference {
  std::optional<Divergence> first;  // step, request and position are left to the caller
  uint32_t compared = 0;
  uint32_t unmatched_golden = 0, unmatched_candidate = 0;
};

// Ops are matched by (name, layer, occurrence in command order). Where both sides have row digests
// of different counts (other padding), the rows that both have decide. Cost: O(n log n) comparisons
// of names for n ops.
OpsDifference compare_ops(std::span<const OpProbe> golden, std::span<const OpProbe> candidate);

}  // namespace redecode
