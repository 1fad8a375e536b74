// engine/kernels/compress.cpp - the compression of KV and its stores (indexer.h).
#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/kernels/convert.h"
#include "engine/kernels/elementwise.h"
#include "engine/kernels/indexer.h"
#include "engine/kernels/lanes.h"
#include "engine/kernels/paging.h"
#include "engine/kernels/vector_math.h"
#include "traces/check.h"

namespace redecode {
namespace {

// Softmax over the `ratio` tokens of entry `entry`, element by element, into out [dim].
void pool_entry(Isa isa, const CompressShape& shape, const PagedRows& paged, uint32_t row,
                uint32_t entry, const float* state, float* out) {
  const LaneKernels& lanes = lane_kernels(isa);
  thread_local std::vector<float> p, scratch;
  const uint32_t dim = shape.dim;
  p.resize(size_t{shape.ratio} * dim);
  scratch.resize(2 * size_t{dim});
  float* largest = scratch.data();
  float* sum = largest + dim;
  const auto token = [&](uint32_t i) {
    const uint64_t slot = slot_of(paged, row, entry * shape.ratio + i, paged.page_size);
    return state + slot * 2 * dim;
  };
  std::copy_n(token(0) + dim, dim, largest);
  for (uint32_t i = 1; i < shape.ratio; ++i) {
    const float* score = token(i) + dim;
    for (uint32_t d = 0; d < dim; ++d) largest[d] = score[d] > largest[d] ? score[d] : largest[d];
  }
  for (uint32_t i = 0; i < shape.ratio; ++i) {
    const float* score = token(i) + dim;
    float* shifted = p.data() + size_t{i} * dim;
    for (uint32_t d = 0; d < dim; ++d) shifted[d] = score[d] - largest[d];
  }
  exp_array(isa, p.data(), p.size(), p.data());
  std::fill_n(sum, dim, 0.0f);
  std::fill_n(out, dim, 0.0f);
  for (uint32_t i = 0; i < shape.ratio; ++i) {
    const float* weight = p.data() + size_t{i} * dim;
    for (uint32_t d = 0; d < dim; ++d) sum[d] += weight[d];
    lanes.fma(weight, token(i), out, dim);
  }
  for (uint32_t d = 0; d < dim; ++d) out[d] /= sum[d];
}

}  // namespace

void compress(Exec& exec, const CompressShape& shape, const PagedRows& paged, const int32_t* slots,
              const float* kv_score, float* state, const float* norm, float* out, int32_t* made) {
  REDECODE_CHECK_OP(shape.ratio, >, 0u);
  REDECODE_CHECK_OP(shape.rope_dim, <=, shape.dim);
  const uint64_t width = 2 * uint64_t{shape.dim};
  for (uint32_t row = 0; row < paged.rows; ++row) {
    if (slots[row] < 0) continue;
    std::memcpy(state + static_cast<uint64_t>(slots[row]) * width, kv_score + row * width,
                width * sizeof(float));
  }
  exec.parallel(paged.rows, 1, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      const auto row = static_cast<uint32_t>(r);
      float* entry = out + r * shape.dim;
      const uint32_t tokens = visible_tokens(paged, row);
      const bool whole = tokens > 0 && tokens % shape.ratio == 0 &&
                         int64_t{tokens} == int64_t{paged.positions[row]} + 1;
      made[row] = whole ? static_cast<int32_t>(tokens / shape.ratio - 1) : -1;
      if (whole) {
        pool_entry(exec.isa(), shape, paged, row, tokens / shape.ratio - 1, state, entry);
      } else {
        std::fill_n(entry, shape.dim, 0.0f);
      }
    }
  });
  RopeShape turn;
  turn.head_dim = shape.dim;
  turn.offset = shape.dim - shape.rope_dim;
  turn.rope_dim = shape.rope_dim;
  turn.theta = shape.theta;
  for (uint32_t row = 0; row < paged.rows; ++row) {
    if (made[row] < 0) continue;
    float* entry = out + uint64_t{row} * shape.dim;
    rms_norm(exec, entry, shape.dim, norm, shape.eps, 1, shape.dim, entry, shape.dim);
    if (shape.rope_dim == 0) continue;
    const int32_t position = made[row] * static_cast<int32_t>(shape.ratio);
    rope(exec, entry, shape.dim, turn, &position, 1);
  }
}

void store_latent_entries(Exec&, const PagedRows& paged, uint32_t ratio, const float* entries,
                          const int32_t* made, uint32_t dim, uint16_t* cache) {
  REDECODE_CHECK_OP(ratio, >, 0u);
  REDECODE_CHECK_OP(paged.page_size % ratio, ==, 0u);
  const uint32_t per_page = paged.page_size / ratio;
  for (uint32_t row = 0; row < paged.rows; ++row) {
    if (made[row] < 0) continue;
    const auto entry = static_cast<uint32_t>(made[row]);
    if (entry / per_page >= paged.table_stride) continue;
    uint16_t* target = cache + slot_of(paged, row, entry, per_page) * dim;
    const float* source = entries + uint64_t{row} * dim;
    for (uint32_t d = 0; d < dim; ++d) target[d] = bf16_from_f32(source[d]);
  }
}

}  // namespace redecode
