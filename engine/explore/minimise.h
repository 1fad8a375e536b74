// engine/explore/minimise.h - the fewest of some items with which a test still fails.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace redecode {

template <class T>
struct Minimised {
  std::vector<T> items;  // 1-minimal: without any one of them the test passes
  uint64_t runs = 0;     // of the test
};

// Delta debugging over `items`, with which `fails(items)` must be true. `limit_runs` bounds the
// work; the result then may not be minimal, but fails.
template <class T, class Fails>
Minimised<T> minimise(std::vector<T> items, Fails&& fails, uint64_t limit_runs = 500) {
  Minimised<T> result;
  size_t chunk = std::max<size_t>(1, items.size() / 2);
  while (!items.empty() && result.runs < limit_runs) {
    bool removed = false;
    for (size_t begin = 0; begin < items.size() && result.runs < limit_runs;) {
      const size_t end = std::min(begin + chunk, items.size());
      std::vector<T> fewer(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(begin));
      fewer.insert(fewer.end(), items.begin() + static_cast<std::ptrdiff_t>(end), items.end());
      ++result.runs;
      if (fails(fewer)) {
        items = std::move(fewer);
        removed = true;
      } else {
        begin += chunk;
      }
    }
    if (chunk == 1 && !removed) break;
    if (!removed || chunk > items.size()) chunk = std::max<size_t>(1, chunk / 2);
  }
  result.items = std::move(items);
  return result;
}

}  // namespace redecode
