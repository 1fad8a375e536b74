// tests/kernels/paged_fixture.h - rows over a paged cache, with pages in shuffled order.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "engine/kernels/attention.h"
#include "traces/random.h"

namespace redecode::test {

struct PagedFixture {
  uint32_t rows, page_size, table_stride, pages;
  std::vector<int32_t> positions, table, slots;

  // Every row has pages of its own, 1..rows*stride in shuffled order; page 0 is the dummy page.
  PagedFixture(uint64_t seed, uint32_t row_count, uint32_t tokens_a_page, uint32_t longest)
      : rows(row_count),
        page_size(tokens_a_page),
        table_stride((longest + tokens_a_page - 1) / tokens_a_page),
        pages(row_count * table_stride + 1) {
    RandomSequence random(seed);
    table.resize(uint64_t{rows} * table_stride);
    std::iota(table.begin(), table.end(), 1);
    for (size_t i = table.size(); i > 1; --i) std::swap(table[i - 1], table[random.below(i)]);
    for (uint32_t row = 0; row < rows; ++row) {
      positions.push_back(static_cast<int32_t>(random.below(longest)));
    }
    positions[0] = static_cast<int32_t>(longest) - 1;
    if (rows > 1) positions[1] = 0;
    for (uint32_t row = 0; row < rows; ++row) slots.push_back(slot(row, positions[row]));
  }

  int32_t slot(uint32_t row, int32_t token) const {
    const auto t = static_cast<uint32_t>(token);
    return table[uint64_t{row} * table_stride + t / page_size] * static_cast<int32_t>(page_size) +
           static_cast<int32_t>(t % page_size);
  }
  uint64_t slot_count() const { return uint64_t{pages} * page_size; }
  PagedRows view() const {
    return {table.data(), table_stride, page_size, positions.data(), rows, pages};
  }
  // Row `row` alone, over the same cache.
  PagedRows alone(uint32_t row) const {
    return {table.data() + uint64_t{row} * table_stride,
            table_stride,
            page_size,
            positions.data() + row,
            1,
            pages};
  }
};

// Moves page p of a cache of `page_items`-element pages to page order[p].
template <class T>
std::vector<T> move_pages(const std::vector<T>& cache, uint64_t page_items,
                          const std::vector<int32_t>& order) {
  std::vector<T> moved(cache.size());
  for (size_t page = 0; page < order.size(); ++page) {
    std::copy_n(
        cache.begin() + static_cast<int64_t>(page * page_items), page_items,
        moved.begin() + static_cast<int64_t>(static_cast<uint64_t>(order[page]) * page_items));
  }
  return moved;
}

}  // namespace redecode::test
