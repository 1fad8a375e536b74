#include "engine/decoder/page_guard.h"

#include <algorithm>
#include <string>

namespace redecode {
namespace {

struct Offence {
  Region region;
  PageId page = 0;
  bool outside = false;  // of the buffer
};

// The first page of the range that its request may not touch.
bool offends(const Program& program, const PageTables& tables, const Region& region, Offence& out) {
  const auto& buffer = (*program.persistents)[region.buffer.index()];
  if (buffer.page_bytes == 0 || region.size_bytes == 0) return false;
  out.region = region;
  const uint64_t end = region.offset_bytes + region.size_bytes;
  if (end > buffer.size_bytes) {
    out.outside = true;
    return true;
  }
  const auto first = static_cast<PageId>(region.offset_bytes / buffer.page_bytes);
  const auto last = static_cast<PageId>((end - 1) / buffer.page_bytes);
  for (PageId page = first; page <= last; ++page) {
    const bool allowed =
        region.request == kNoRequest ? page == 0 : tables.holds(region.request, page);
    if (allowed) continue;
    out.page = page;
    return true;
  }
  return false;
}

std::string explain(const Offence& offence, const PageTables& tables) {
  const bool padding = offence.region.request == kNoRequest;
  std::string out = padding ? "A padding row" : "Request " + std::to_string(offence.region.request);
  out += writes(offence.region.access) ? " writes" : " reads";
  if (offence.outside) return out + " past the end of the buffer: check the page stride.";
  out += " page " + std::to_string(offence.page);
  const RequestId holder = tables.holder(offence.page);
  out += holder == kNoRequest ? ", which no request holds"
                              : ", which request " + std::to_string(holder) + " holds";
  return out +
         (padding ? ": give padding rows slot 0." : ": check slot, page table and page stride.");
}

}  // namespace

void check_pages(StepIndex step, const Program& program, const PageTables& tables,
                 std::vector<Finding>& out) {
  for (uint32_t i = 0; i < program.commands.size(); ++i) {
    const Command& c = program.commands[i];
    bool found = false;
    Finding f;
    for (const Region& region : program.touched_of(c)) {
      Offence offence;
      if (!offends(program, tables, region, offence)) continue;
      f.size_bytes += region.size_bytes;
      if (found) continue;
      found = true;
      f.kind = FindingKind::foreign;
      f.check = region.request == kNoRequest ? "padding" : "page-owner";
      f.step = step;
      f.request = region.request;
      f.layer = c.layer;
      f.first = {std::string((*program.names)[c.name]),
                 std::string(program.name_of(region.buffer)),
                 c.layer,
                 c.stream,
                 i,
                 step,
                 region.access,
                 0};
      f.offset_bytes = region.offset_bytes;
      f.advice = explain(offence, tables);
    }
    if (found) out.push_back(std::move(f));
  }
}

}  // namespace redecode
