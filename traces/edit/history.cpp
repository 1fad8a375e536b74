#include "traces/edit/history.h"

#include <algorithm>
#include <map>
#include <vector>

namespace redecode {
namespace {

// For each request: those that wrote the pages it came to share.
std::map<RequestId, std::set<RequestId>> page_writers(std::span<const Step> steps, StepIndex last) {
  std::map<PageId, RequestId> writer;
  std::map<RequestId, std::set<RequestId>> out;
  for (const Step& step : steps) {
    if (step.index > last) break;
    for (const auto& change : step.page_changes) {
      if (!change.shared) {
        writer[change.page] = change.request;
      } else if (const auto at = writer.find(change.page); at != writer.end()) {
        if (at->second != change.request) out[change.request].insert(at->second);
      }
    }
  }
  return out;
}

}  // namespace

std::set<RequestId> requests_needed(std::span<const Step> steps, StepIndex first, StepIndex last) {
  std::set<RequestId> with_rows;
  for (const Step& step : steps)
    if (step.index >= first && step.index <= last)
      for (const Row& row : step.rows) with_rows.insert(row.request);
  return requests_needed(steps, last, with_rows);
}

std::set<RequestId> requests_needed(std::span<const Step> steps, StepIndex last,
                                    const std::set<RequestId>& wanted) {
  std::vector<RequestId> open(wanted.begin(), wanted.end());
  std::set<RequestId> needed = wanted;
  const auto writers = page_writers(steps, last);
  while (!open.empty()) {
    const RequestId request = open.back();
    open.pop_back();
    const auto at = writers.find(request);
    if (at == writers.end()) continue;
    for (const RequestId writer : at->second)
      if (needed.insert(writer).second) open.push_back(writer);
  }
  return needed;
}

Step restrict_rows(const Step& step, const std::set<RequestId>& keep) {
  Step out = step;
  out.bucket = 0;
  std::erase_if(out.rows, [&](const Row& row) { return !keep.contains(row.request); });
  for (Row& row : out.rows) row.wants_output = false;
  return out;
}

}  // namespace redecode
