// engine/kernels/paging.h - where a row's tokens and compressed entries lie; never outside the
// table.
#pragma once
#include <algorithm>
#include <cstdint>

#include "engine/kernels/attention.h"

namespace redecode {

// Tokens that row `row` sees: position + 1, at most what its page table covers; 0 below position 0.
inline uint32_t visible_tokens(const PagedRows& paged, uint32_t row) {
  const int64_t seen = int64_t{paged.positions[row]} + 1;
  const int64_t covered = int64_t{paged.table_stride} * paged.page_size;
  return static_cast<uint32_t>(
      std::clamp<int64_t>(seen, 0, std::min<int64_t>(covered, UINT32_MAX)));
}

// Physical page of entry `index` < table_stride; page 0 where the table holds no page of the cache.
inline uint64_t page_of(const PagedRows& paged, uint32_t row, uint32_t index) {
  const int32_t page = paged.page_table[uint64_t{row} * paged.table_stride + index];
  const bool outside =
      page < 0 || (paged.page_count != 0 && static_cast<uint32_t>(page) >= paged.page_count);
  return outside ? 0 : static_cast<uint64_t>(page);
}

// Slot of item `index` where a page holds `per_page` items: tokens with page_size, entries with
// page_size / ratio. index < table_stride * per_page.
inline uint64_t slot_of(const PagedRows& paged, uint32_t row, uint32_t index, uint32_t per_page) {
  return page_of(paged, row, index / per_page) * per_page + index % per_page;
}

}  // namespace redecode
