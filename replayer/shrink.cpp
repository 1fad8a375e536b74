#include "replayer/shrink.h"

#include <utility>

#include "engine/explore/minimise.h"

namespace redecode {

ShrinkResult shrink_picks(std::vector<ScriptPick> picks,
                          const std::function<bool(const std::vector<ScriptPick>&)>& fails,
                          uint64_t limit_runs) {
  auto fewest = minimise(std::move(picks), fails, limit_runs);
  return {std::move(fewest.items), fewest.runs};
}

}  // namespace redecode
