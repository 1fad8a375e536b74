// replayer/shrink.h - the fewest departures from fifo that still make a step go wrong.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/device/script.h"

namespace redecode {

struct ShrinkResult {
  std::vector<ScriptPick> picks;  // 1-minimal: without any one of them the step passes
  uint64_t runs = 0;              // of `fails`
};

// Delta debugging over `picks`, which must fail. `fails` runs the step with these picks and says
// whether it went wrong; picks that no longer fit count as passing. `limit_runs` bounds the work;
// the result then may not be minimal, but fails.
ShrinkResult shrink_picks(std::vector<ScriptPick> picks,
                          const std::function<bool(const std::vector<ScriptPick>&)>& fails,
                          uint64_t limit_runs = 500);

}  // namespace redecode
