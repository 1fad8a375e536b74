#include "replayer/restore.h"

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
  std::vector<RequestId> open;
  std::set<RequestId> needed;
  const auto need = [&](RequestId request) {
    if (needed.insert(request).second) open.push_back(request);
  };
  for (const Step& step : steps)
    if (step.index >= first && step.index <= last)
      for (const Row& row : step.rows) need(row.request);
  const auto writers = page_writers(steps, last);
  while (!open.empty()) {
    const RequestId request = open.back();
    open.pop_back();
    if (const auto at = writers.find(request); at != writers.end())
      for (const RequestId writer : at->second) need(writer);
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
