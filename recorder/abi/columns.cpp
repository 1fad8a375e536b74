#include "recorder/abi/columns.h"

namespace redecode {

void copy_outputs(uint8_t* out, const rr_output_info& info, const OutputsRecord& record) {
  const uint32_t rows = record.rows;
  const auto copy = [&](const void* from, uint64_t bytes) {
    if (bytes != 0) std::memcpy(out, from, bytes);
    out += bytes;
  };
  if (record.parts & kPartDigest) {
    for (uint32_t i = 0; i < rows; ++i) {
      const uint64_t value = column_value(info.digest, i);
      std::memcpy(out + uint64_t{i} * 8, &value, sizeof value);
    }
    out += uint64_t{rows} * 8;
  }
  if (info.row.data != nullptr) {
    copy_column(out, info.row, rows);
  } else {
    for (uint32_t i = 0; i < rows; ++i) std::memcpy(out + uint64_t{i} * 4, &i, sizeof i);
  }
  out += uint64_t{rows} * 4;
  copy_column(out, info.token, rows);
  out += uint64_t{rows} * 4;
  if (record.parts & kPartRequests) {
    copy_column(out, info.request, rows);
    out += uint64_t{rows} * 4;
  }
  if (record.parts & kPartPositions) {
    copy_column(out, info.position, rows);
    out += uint64_t{rows} * 4;
  }
  if (record.parts & kPartLogSumExp) copy(info.log_sum_exp, uint64_t{rows} * 4);
  const uint64_t top_bytes = uint64_t{rows} * record.top_count * 4;
  if (record.parts & kPartTop) {
    copy(info.top_tokens, top_bytes);
    copy(info.top_logits, top_bytes);
  }
  if (record.parts & kPartLogits) copy(info.logits, uint64_t{rows} * record.vocab * 4);
}

}  // namespace redecode
