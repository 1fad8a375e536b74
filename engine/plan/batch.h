// engine/plan/batch.h - Batch: the rows of one step as kernels see them, padding included.
#pragma once
#include <cstdint>
#include <vector>

#include "traces/step.h"

namespace redecode {

// A row of padding has request kNoRequest. Normally it has position 0 and slot 0 (the dummy page),
// and whatever token was left in its place.
struct Batch {
  StepIndex step = 0;
  uint32_t bucket = 0;                // 0: unpadded
  uint32_t real_rows = 0;             // rows [0, real_rows) are the step's; the rest is padding
  std::vector<Row> rows;              // [bucket or real_rows]
  std::vector<uint32_t> output_rows;  // rows whose logits are computed; all rows when bucket != 0
  std::vector<Sampling> sampling;     // [output_rows]
  std::vector<int32_t> page_table;    // [rows, table_stride] physical pages, 0 where none
  uint32_t table_stride = 0;
  uint32_t page_size = 0;

  uint32_t row_count() const { return static_cast<uint32_t>(rows.size()); }
  uint32_t output_count() const { return static_cast<uint32_t>(output_rows.size()); }
  uint32_t page(uint32_t row, uint32_t index) const {
    return static_cast<uint32_t>(page_table[size_t{row} * table_stride + index]);
  }
};

}  // namespace redecode
