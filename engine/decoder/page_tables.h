// engine/decoder/page_tables.h - PageTables: which physical pages each live request holds.
#pragma once
#include <map>
#include <span>
#include <vector>

#include "traces/step.h"

namespace redecode {

class PageTables {
 public:
  // Departures, arrivals and page changes of a step, in that order. Errors: corrupt, naming the
  // step, for a change of a request that is not there or an index beyond `max_pages`.
  void apply(const Step& step, uint32_t max_pages);

  // Pages of a live request by table index; empty for an unknown request.
  std::span<const PageId> pages(RequestId request) const;
  bool holds(RequestId request, PageId page) const;
  // Some live request that holds the page, the least one; kNoRequest when none.
  RequestId holder(PageId page) const;

 private:
  std::map<RequestId, std::vector<PageId>> tables_;
};

}  // namespace redecode
