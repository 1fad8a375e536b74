#include "engine/model/touched.h"

#include <algorithm>

namespace redecode {

void touch_slots(const Batch& batch, const PagedBuffer& paged, Access access,
                 std::vector<Region>& out) {
  for (const Row& row : batch.rows)
    out.push_back(
        {paged.buffer, access, row.slot * paged.entry_bytes, paged.entry_bytes, 0, row.request});
}

void touch_entries(const Batch& batch, const PagedBuffer& paged, uint32_t row, uint32_t first,
                   uint32_t last, std::vector<Region>& out) {
  const uint32_t per_page = std::max(1u, batch.page_size / paged.ratio);
  const size_t start = out.size();
  for (uint32_t j = first; j < last;) {
    const uint32_t page_end = (j / per_page + 1) * per_page;
    const uint32_t end = std::min(last, page_end);
    const uint64_t offset = batch.page(row, j / per_page) * paged.page_stride_bytes +
                            (j % per_page) * paged.entry_bytes;
    const uint64_t size_bytes = (end - j) * paged.entry_bytes;
    if (out.size() > start && out.back().offset_bytes + out.back().size_bytes == offset) {
      out.back().size_bytes += size_bytes;
    } else {
      out.push_back({paged.buffer, Access::read, offset, size_bytes, 0, batch.rows[row].request});
    }
    j = end;
  }
}

void touch_made_entries(const Batch& batch, const PagedBuffer& paged, std::vector<Region>& out) {
  for (uint32_t r = 0; r < batch.row_count(); ++r) {
    const uint32_t position = batch.rows[r].position;
    if ((position + 1) % paged.ratio != 0) continue;
    const size_t at = out.size();
    touch_entries(batch, paged, r, position / paged.ratio, position / paged.ratio + 1, out);
    for (size_t i = at; i < out.size(); ++i) out[i].access = Access::write;
  }
}

void touch_history(const Batch& batch, const PagedBuffer& paged, uint32_t window,
                   std::vector<Region>& out) {
  for (uint32_t r = 0; r < batch.row_count();) {
    const RequestId request = batch.rows[r].request;
    uint32_t last = r;
    if (request != kNoRequest)
      while (last + 1 < batch.row_count() && batch.rows[last + 1].request == request) ++last;
    const uint32_t begin_token = batch.rows[r].position;
    const uint32_t first_token = window == 0 ? 0 : begin_token - std::min(begin_token, window - 1);
    touch_entries(batch, paged, last, first_token / paged.ratio,
                  (batch.rows[last].position + 1) / paged.ratio, out);
    r = last + 1;
  }
}

}  // namespace redecode
