#include "engine/model/inputs.h"

#include <cstring>

#include "traces/check.h"

namespace redecode {
namespace {

constexpr uint64_t kColumnAlignBytes = 64;

uint64_t place(uint64_t& cursor, uint64_t size_bytes) {
  const uint64_t at = cursor;
  cursor += (size_bytes + kColumnAlignBytes - 1) / kColumnAlignBytes * kColumnAlignBytes;
  return at;
}

template <class T>
void put(std::span<std::byte> out, uint64_t column, size_t index, T value) {
  std::memcpy(out.data() + column + index * sizeof(T), &value, sizeof(T));
}

}  // namespace

InputLayout InputLayout::of(const EngineSettings& settings) {
  InputLayout l;
  l.max_rows = settings.max_batch_rows;
  l.table_stride = (settings.max_seq_len + settings.page_size - 1) / settings.page_size;
  const uint64_t word = uint64_t{l.max_rows} * 4;
  uint64_t cursor = 0;
  l.tokens = place(cursor, word);
  l.positions = place(cursor, word);
  l.slots = place(cursor, word);
  l.output_rows = place(cursor, word);
  l.sample_position = place(cursor, word);
  l.temperature = place(cursor, word);
  l.top_k = place(cursor, word);
  l.top_p = place(cursor, word);
  l.min_p = place(cursor, word);
  l.seed = place(cursor, 2 * word);
  l.page_table = place(cursor, word * l.table_stride);
  l.size_bytes = cursor;
  return l;
}

void InputLayout::write(const Batch& batch, std::span<std::byte> out) const {
  REDECODE_CHECK_OP(out.size(), >=, upload_bytes(batch.row_count()));
  for (size_t r = 0; r < batch.rows.size(); ++r) {
    const Row& row = batch.rows[r];
    put<int32_t>(out, tokens, r, row.token);
    put<int32_t>(out, positions, r, static_cast<int32_t>(row.position));
    put<int32_t>(out, slots, r, static_cast<int32_t>(row.slot));
  }
  for (size_t i = 0; i < batch.output_rows.size(); ++i) {
    const Sampling& s = batch.sampling[i];
    const uint32_t row = batch.output_rows[i];
    put<int32_t>(out, output_rows, i, static_cast<int32_t>(row));
    put<int32_t>(out, sample_position, i, static_cast<int32_t>(batch.rows[row].position));
    put<float>(out, temperature, i, s.temperature);
    put<int32_t>(out, top_k, i, s.top_k);
    put<float>(out, top_p, i, s.top_p);
    put<float>(out, min_p, i, s.min_p);
    put<uint64_t>(out, seed, i, s.seed);
  }
  std::memcpy(out.data() + page_table, batch.page_table.data(),
              batch.page_table.size() * sizeof(int32_t));
}

}  // namespace redecode
