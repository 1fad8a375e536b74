#include "engine/decoder/page_tables.h"

#include <algorithm>
#include <string>

#include "traces/error.h"

namespace redecode {

void PageTables::apply(const Step& step, uint32_t max_pages) {
  const auto bad = [&](RequestId request, const std::string& what) {
    throw Error(ErrorCode::corrupt, "request " + std::to_string(request) + " " + what,
                "step " + std::to_string(step.index));
  };
  for (const auto& d : step.departures)
    if (tables_.erase(d.request) == 0) bad(d.request, "departs, but never arrived");
  for (const auto& a : step.arrivals)
    if (!tables_.try_emplace(a.request).second) bad(a.request, "arrives twice");
  for (const auto& c : step.page_changes) {
    const auto at = tables_.find(c.request);
    if (at == tables_.end()) bad(c.request, "gets a page, but is not live");
    if (c.index >= max_pages) bad(c.request, "gets a page beyond the longest sequence");
    auto& pages = at->second;
    if (c.index >= pages.size()) pages.resize(c.index + 1, 0);
    pages[c.index] = c.page;
  }
}

std::span<const PageId> PageTables::pages(RequestId request) const {
  const auto at = tables_.find(request);
  if (at == tables_.end()) return {};
  return at->second;
}

bool PageTables::holds(RequestId request, PageId page) const {
  return std::ranges::find(pages(request), page) != pages(request).end();
}

RequestId PageTables::holder(PageId page) const {
  for (const auto& [request, pages] : tables_)
    if (std::ranges::find(pages, page) != pages.end()) return request;
  return kNoRequest;
}

}  // namespace redecode
