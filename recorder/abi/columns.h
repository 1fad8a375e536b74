// recorder/abi/columns.h - copies caller's columns, whatever their stride and width, into a record.
#pragma once
#include <cstdint>
#include <cstring>

#include "recorder/abi/redecode_record.h"
#include "recorder/ring/ring_record.h"

namespace redecode {

// Value `row` of a column, its low 32 bits (all of it where it is 8 wide).
inline uint64_t column_value(const rr_column& column, uint32_t row) {
  const int64_t width = column.width == 8 ? 8 : 4;
  const int64_t stride = column.stride == 0 ? width : column.stride;
  const auto* at = static_cast<const uint8_t*>(column.data) + stride * row;
  if (width == 8) {
    uint64_t value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  uint32_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// `rows` values as u32 to `out`.
inline void copy_column(uint8_t* out, const rr_column& column, uint32_t rows) {
  if (column.width != 8 && (column.stride == 0 || column.stride == 4)) {
    if (rows != 0) std::memcpy(out, column.data, uint64_t{rows} * 4);
    return;
  }
  for (uint32_t i = 0; i < rows; ++i) {
    const uint32_t value = static_cast<uint32_t>(column_value(column, i));
    std::memcpy(out + uint64_t{i} * 4, &value, sizeof value);
  }
}

// The columns of an OutputsRecord, behind it; `record` says which.
void copy_outputs(uint8_t* out, const rr_output_info& info, const OutputsRecord& record);

}  // namespace redecode
