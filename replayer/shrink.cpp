#include "replayer/shrink.h"

#include <algorithm>
#include <cstddef>

namespace redecode {
namespace {

std::vector<ScriptPick> without(const std::vector<ScriptPick>& picks, size_t begin, size_t end) {
  std::vector<ScriptPick> out(picks.begin(), picks.begin() + static_cast<std::ptrdiff_t>(begin));
  out.insert(out.end(), picks.begin() + static_cast<std::ptrdiff_t>(end), picks.end());
  return out;
}

}  // namespace

ShrinkResult shrink_picks(std::vector<ScriptPick> picks,
                          const std::function<bool(const std::vector<ScriptPick>&)>& fails,
                          uint64_t limit_runs) {
  ShrinkResult result;
  size_t chunk = std::max<size_t>(1, picks.size() / 2);
  while (!picks.empty() && result.runs < limit_runs) {
    bool removed = false;
    for (size_t begin = 0; begin < picks.size() && result.runs < limit_runs;) {
      auto fewer = without(picks, begin, std::min(begin + chunk, picks.size()));
      ++result.runs;
      if (fails(fewer)) {
        picks = std::move(fewer);
        removed = true;
      } else {
        begin += chunk;
      }
    }
    if (chunk == 1 && !removed) break;
    if (!removed || chunk > picks.size()) chunk = std::max<size_t>(1, chunk / 2);
  }
  result.picks = std::move(picks);
  return result;
}

}  // namespace redecode
