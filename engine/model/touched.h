// engine/model/touched.h - the exact KV bytes that a batch reads and writes, page by page and row
// by row.
#pragma once
#include <vector>

#include "engine/plan/batch.h"
#include "traces/program.h"

namespace redecode {

// A paged buffer as an op addresses it: page p starts at p * page_stride_bytes, its entries follow.
// In a correct program page_stride_bytes equals the buffer's own page size.
struct PagedBuffer {
  BufferId buffer;
  uint32_t ratio = 1;  // tokens an entry
  uint64_t entry_bytes = 0;
  uint64_t page_stride_bytes = 0;
};

// All functions append to `out`. Regions carry the row's request (kNoRequest for padding); entry j
// of a row lies in its page j / per_page, per_page = page_size / ratio.

// One region a row: the slot that the row's token writes (entry = slot, whatever its page table
// says).
void touch_slots(const Batch& batch, const PagedBuffer& paged, Access access,
                 std::vector<Region>& out);
// Entries that rows complete in this step: position + 1 a multiple of the ratio.
void touch_made_entries(const Batch& batch, const PagedBuffer& paged, std::vector<Region>& out);
// Entries [first, last) of row `row`, joined where pages stand side by side.
void touch_entries(const Batch& batch, const PagedBuffer& paged, uint32_t row, uint32_t first,
                   uint32_t last, std::vector<Region>& out);
// For every request's last row: all entries that any of its rows may read, from `window` tokens
// before its first row (0: from the start) to what is complete at its last row.
void touch_history(const Batch& batch, const PagedBuffer& paged, uint32_t window,
                   std::vector<Region>& out);

}  // namespace redecode
