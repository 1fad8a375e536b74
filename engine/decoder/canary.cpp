#include "engine/decoder/canary.h"

#include <algorithm>
#include <string>

#include "traces/thousands.h"

namespace redecode {
namespace {

using PageSet = std::vector<bool>;

PageSet may_change(const Program& clean, uint32_t buffer, uint64_t page_bytes, size_t pages) {
  PageSet out(pages, false);
  if (!out.empty()) out[0] = true;  // the dummy page, of padding rows
  for (const Region& r : clean.touched) {
    if (r.buffer != BufferId::persistent(buffer) || !writes(r.access) || r.size_bytes == 0 ||
        r.request == kNoRequest)
      continue;
    const uint64_t last = (r.offset_bytes + r.size_bytes - 1) / page_bytes;
    for (uint64_t page = r.offset_bytes / page_bytes; page <= last && page < pages; ++page)
      out[page] = true;
  }
  return out;
}

// The op whose declared writes cover the page.
const Command* writer_of(const Program& ran, uint32_t buffer, uint64_t begin, uint64_t end) {
  for (const Command& c : ran.commands)
    for (const Region& r : ran.touched_of(c))
      if (r.buffer == BufferId::persistent(buffer) && writes(r.access) && r.offset_bytes < end &&
          begin < r.offset_bytes + r.size_bytes)
        return &c;
  return nullptr;
}

std::string count_of(size_t n) { return with_thousands(n) + (n == 1 ? " page" : " pages"); }

}  // namespace

PageCanary::PageCanary(const std::vector<PersistentBuffer>& buffers,
                       const std::vector<Binding>& places)
    : buffers_(buffers), places_(places) {
  for (uint32_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].page_bytes != 0) paged_.push_back({i, {}});
}

std::vector<Digest> PageCanary::digests(const Device& device, const Paged& paged) const {
  const PersistentBuffer& buffer = buffers_[paged.buffer];
  std::vector<std::byte> page(buffer.page_bytes);
  std::vector<Digest> out(buffer.size_bytes / buffer.page_bytes);
  for (size_t i = 0; i < out.size(); ++i) {
    device.read(places_[paged.buffer].address + i * buffer.page_bytes, page);
    out[i] = digest_bytes(page.data(), page.size());
  }
  return out;
}

void PageCanary::arm(const Device& device) {
  for (Paged& paged : paged_) paged.pages = digests(device, paged);
}

void PageCanary::check(StepIndex step, const Device& device, const Program& clean,
                       const Program& ran, const PageTables& tables,
                       std::vector<Finding>& out) const {
  for (const Paged& paged : paged_) {
    const uint64_t page_bytes = buffers_[paged.buffer].page_bytes;
    const std::vector<Digest> now = digests(device, paged);
    const PageSet allowed = may_change(clean, paged.buffer, page_bytes, now.size());
    size_t changed = 0, stray = 0, first_stray = 0;
    for (size_t page = 0; page < now.size(); ++page) {
      if (now[page] == paged.pages[page]) continue;
      ++changed;
      if (allowed[page]) continue;
      if (stray++ == 0) first_stray = page;
    }
    if (stray == 0) continue;
    const auto expected = static_cast<size_t>(std::ranges::count(allowed, true));
    const uint64_t begin = first_stray * page_bytes;
    const Command* writer = writer_of(ran, paged.buffer, begin, begin + page_bytes);
    Finding f;
    f.kind = FindingKind::foreign;
    f.check = "canary";
    f.step = step;
    f.first.step = step;
    f.first.buffer = (*clean.names)[buffers_[paged.buffer].name];
    f.first.access = Access::write;
    if (writer != nullptr) {
      f.first.op = (*ran.names)[writer->name];
      f.layer = f.first.layer = writer->layer;
      f.first.stream = writer->stream;
      f.first.command = static_cast<uint32_t>(writer - ran.commands.data());
    }
    f.offset_bytes = begin;
    f.size_bytes = stray * page_bytes;
    const RequestId holder = tables.holder(static_cast<PageId>(first_stray));
    f.advice = count_of(changed) + " changed where at most " + with_thousands(expected) + " may, " +
               with_thousands(stray) + " of them outside; the first is page " +
               std::to_string(first_stray) +
               (holder == kNoRequest ? ", which no request holds"
                                     : ", which request " + std::to_string(holder) + " holds");
    out.push_back(std::move(f));
  }
}

}  // namespace redecode
