// engine/kernels/indexer.cpp - index keys, index queries and index scores.
#include "engine/kernels/indexer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "engine/kernels/convert.h"
#include "engine/kernels/lanes.h"
#include "engine/kernels/paging.h"
#include "traces/check.h"

namespace redecode {
namespace {

constexpr uint32_t kScaleBytes = sizeof(float);

// max|x| / limit, 1 where that is 0.
float quantisation_scale(const float* x, uint32_t dim, float limit) {
  float largest = 0.0f;
  for (uint32_t d = 0; d < dim; ++d) {
    const float magnitude = std::fabs(x[d]);
    largest = magnitude > largest ? magnitude : largest;
  }
  const float scale = largest / limit;
  return scale == 0.0f ? 1.0f : scale;
}

// Values only; returns the scale.
float encode_values(IndexKeyType type, const float* x, uint32_t dim, std::byte* out) {
  if (type == IndexKeyType::bf16) {
    for (uint32_t d = 0; d < dim; ++d) {
      const uint16_t value = bf16_from_f32(x[d]);
      std::memcpy(out + 2 * uint64_t{d}, &value, sizeof value);
    }
    return 1.0f;
  }
  if (type == IndexKeyType::fp8) {
    const float scale = quantisation_scale(x, dim, 448.0f);
    for (uint32_t d = 0; d < dim; ++d) out[d] = std::byte{e4m3_from_f32(x[d] / scale)};
    return scale;
  }
  REDECODE_CHECK_OP(dim % 2, ==, 0u);
  const float scale = quantisation_scale(x, dim, 6.0f);
  for (uint32_t d = 0; d < dim; d += 2) {
    const uint32_t low = e2m1_from_f32(x[d] / scale), high = e2m1_from_f32(x[d + 1] / scale);
    out[d / 2] = static_cast<std::byte>(low | high << 4);
  }
  return scale;
}

float key_scale(IndexKeyType type, const std::byte* key, uint32_t dim) {
  if (type == IndexKeyType::bf16) return 1.0f;
  float scale;
  std::memcpy(&scale, key + index_query_bytes(type, dim), sizeof scale);
  return scale;
}

// Values into lane layout.
void values_to_lanes(const LaneKernels& lanes, IndexKeyType type, const std::byte* values,
                     uint32_t dim, float* out) {
  switch (type) {
    case IndexKeyType::bf16:
      return lanes.from_bf16(reinterpret_cast<const uint16_t*>(values), dim, out);
    case IndexKeyType::fp8:
      return lanes.from_e4m3(reinterpret_cast<const uint8_t*>(values), dim, out);
    case IndexKeyType::fp4:
      return lanes.from_e2m1(reinterpret_cast<const uint8_t*>(values), dim, out);
  }
}

struct ScoreShape {
  IndexKeyType type;
  uint32_t per_page, heads, dim;
  uint64_t page_stride_bytes;
};

constexpr uint32_t kKeysAtOnce = 64;

struct ScoreScratch {
  std::vector<float> query, keys, products;
  float scales[kKeysAtOnce];

  void fit(uint32_t heads, uint32_t padded) {
    query.resize(size_t{heads} * padded);
    keys.resize(size_t{kKeysAtOnce} * padded);
    products.resize(size_t{heads} * kKeysAtOnce);
  }
};

// Logits of entries [begin, end) of one row.
void score_range(ScoreScratch& scratch, const LaneKernels& lanes, const ScoreShape& shape,
                 const PagedRows& paged, uint32_t row, uint32_t begin, uint32_t end,
                 const std::byte* q, const float* weights, const std::byte* cache, float* logits) {
  const uint32_t padded = lane_padded(shape.dim);
  const uint64_t query_bytes = index_query_bytes(shape.type, shape.dim);
  const uint64_t key_bytes = index_key_bytes(shape.type, shape.dim);
  scratch.fit(shape.heads, padded);
  for (uint32_t h = 0; h < shape.heads; ++h) {
    values_to_lanes(lanes, shape.type, q + (uint64_t{row} * shape.heads + h) * query_bytes,
                    shape.dim, scratch.query.data() + uint64_t{h} * padded);
  }
  for (uint32_t first = begin; first < end; first += kKeysAtOnce) {
    const uint32_t count = std::min(kKeysAtOnce, end - first);
    for (uint32_t j = 0; j < count; ++j) {
      const uint32_t entry = first + j;
      const std::byte* key = cache +
                             page_of(paged, row, entry / shape.per_page) * shape.page_stride_bytes +
                             entry % shape.per_page * key_bytes;
      values_to_lanes(lanes, shape.type, key, shape.dim,
                      scratch.keys.data() + uint64_t{j} * padded);
      scratch.scales[j] = key_scale(shape.type, key, shape.dim);
    }
    lanes.dots(scratch.query.data(), shape.heads, scratch.keys.data(), count, padded,
               scratch.products.data(), kKeysAtOnce);
    lanes.index_logits(scratch.products.data(), kKeysAtOnce, shape.heads,
                       weights + uint64_t{row} * shape.heads, scratch.scales, count,
                       logits + first);
  }
}

}  // namespace

uint32_t index_query_bytes(IndexKeyType type, uint32_t dim) {
  if (type == IndexKeyType::bf16) return 2 * dim;
  return type == IndexKeyType::fp8 ? dim : dim / 2;
}

uint32_t index_key_bytes(IndexKeyType type, uint32_t dim) {
  return index_query_bytes(type, dim) + (type == IndexKeyType::bf16 ? 0 : kScaleBytes);
}

void index_key_encode(IndexKeyType type, const float* x, uint32_t dim, std::byte* out) {
  const float scale = encode_values(type, x, dim, out);
  if (type == IndexKeyType::bf16) return;
  std::memcpy(out + index_query_bytes(type, dim), &scale, sizeof scale);
}

float index_key_decode(IndexKeyType type, const std::byte* key, uint32_t dim, float* out) {
  for (uint32_t d = 0; d < dim; ++d) {
    if (type == IndexKeyType::bf16) {
      uint16_t value;
      std::memcpy(&value, key + 2 * uint64_t{d}, sizeof value);
      out[d] = f32_from_bf16(value);
    } else if (type == IndexKeyType::fp8) {
      out[d] = f32_from_e4m3(static_cast<uint8_t>(key[d]));
    } else {
      const auto pair = static_cast<uint8_t>(key[d / 2]);
      out[d] = f32_from_e2m1(static_cast<uint8_t>(d % 2 == 0 ? pair & 15 : pair >> 4));
    }
  }
  return key_scale(type, key, dim);
}

void index_query_encode(Exec& exec, IndexKeyType type, const float* q, uint32_t rows,
                        uint32_t heads, uint32_t dim, float weight_scale, float* weights,
                        std::byte* out) {
  const uint64_t bytes = index_query_bytes(type, dim);
  exec.parallel(size_t{rows} * heads, 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      weights[i] *= weight_scale * encode_values(type, q + i * dim, dim, out + i * bytes);
    }
  });
}

void store_index_entries(Exec&, IndexKeyType type, const PagedRows& paged, uint32_t ratio,
                         const float* entries, const int32_t* made, uint32_t dim,
                         uint64_t page_stride_bytes, std::byte* cache) {
  REDECODE_CHECK_OP(ratio, >, 0u);
  REDECODE_CHECK_OP(paged.page_size % ratio, ==, 0u);
  const uint32_t per_page = paged.page_size / ratio;
  const uint64_t bytes = index_key_bytes(type, dim);
  for (uint32_t row = 0; row < paged.rows; ++row) {
    if (made[row] < 0) continue;
    const auto entry = static_cast<uint32_t>(made[row]);
    if (entry / per_page >= paged.table_stride) continue;
    index_key_encode(type, entries + uint64_t{row} * dim, dim,
                     cache + page_of(paged, row, entry / per_page) * page_stride_bytes +
                         entry % per_page * bytes);
  }
}

void index_scores(Exec& exec, IndexKeyType type, const PagedRows& paged, uint32_t ratio,
                  uint32_t heads, uint32_t dim, const std::byte* q, const float* weights,
                  uint64_t page_stride_bytes, const std::byte* cache, float* logits,
                  uint32_t logits_stride) {
  REDECODE_CHECK_OP(ratio, >, 0u);
  REDECODE_CHECK_OP(paged.page_size % ratio, ==, 0u);
  constexpr uint32_t kBlock = 256;  // entries a work item: long rows spread over threads
  const ScoreShape shape = {type, paged.page_size / ratio, heads, dim, page_stride_bytes};
  const LaneKernels& lanes = lane_kernels(exec.isa());
  const auto entries_of = [&](uint32_t row) {
    return std::min(visible_tokens(paged, row) / ratio, logits_stride);
  };
  uint32_t longest = 0;
  for (uint32_t row = 0; row < paged.rows; ++row) longest = std::max(longest, entries_of(row));
  const size_t blocks = (size_t{longest} + kBlock - 1) / kBlock;
  exec.parallel(paged.rows * blocks, 1, [&](size_t first, size_t last) {
    thread_local ScoreScratch scratch;
    for (size_t item = first; item < last; ++item) {
      const auto row = static_cast<uint32_t>(item / blocks);
      const auto begin = static_cast<uint32_t>(item % blocks) * kBlock;
      const uint32_t entries = entries_of(row);
      if (begin >= entries) continue;
      score_range(scratch, lanes, shape, paged, row, begin, std::min(entries, begin + kBlock), q,
                  weights, cache, logits + uint64_t{row} * logits_stride);
    }
  });
}

}  // namespace redecode
