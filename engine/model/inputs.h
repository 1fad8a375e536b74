// engine/model/inputs.h - InputLayout: where each column of a step's inputs lies in the one input
// buffer.
//
// A graph holds the address of this buffer, so inputs are refreshed in place before every launch.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/plan/batch.h"
#include "traces/header.h"

namespace redecode {

struct InputLayout {
  uint32_t max_rows = 0;
  uint32_t table_stride = 0;  // pages a row
  // Offsets in bytes. i32 [max_rows] unless said otherwise; the last four are by output row.
  uint64_t tokens = 0, positions = 0, slots = 0, output_rows = 0;
  uint64_t sample_position = 0, temperature = 0 /* f32 */, top_k = 0, top_p = 0 /* f32 */,
           min_p = 0 /* f32 */, seed = 0 /* u64 */;
  uint64_t page_table = 0;  // [max_rows, table_stride]; last, so that an upload can stop early
  uint64_t size_bytes = 0;

  static InputLayout of(const EngineSettings& settings);
  uint64_t upload_bytes(uint32_t rows) const {
    return page_table + uint64_t{rows} * table_stride * sizeof(int32_t);
  }
  // Writes all columns of `batch` into `out` [upload_bytes(rows)]. Padding output rows sample
  // greedily.
  void write(const Batch& batch, std::span<std::byte> out) const;
};

}  // namespace redecode
