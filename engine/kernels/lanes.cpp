// engine/kernels/lanes.cpp - the plain path: the written order, word for word.
#include "engine/kernels/lanes.h"

#include <cmath>
#include <limits>

#include "engine/kernels/convert.h"
#include "engine/kernels/exec.h"
#include "traces/check.h"

namespace redecode {
namespace {

template <class ValueAt>
void to_lanes(uint32_t dim, float* out, ValueAt value_at) {
  const uint32_t padded = lane_padded(dim);
  for (uint32_t d = 0; d < padded; ++d) out[lane_place(d)] = d < dim ? value_at(d) : 0.0f;
}

void from_f32(const float* x, uint32_t dim, float* out) {
  to_lanes(dim, out, [x](uint32_t d) { return x[d]; });
}
void from_bf16(const uint16_t* x, uint32_t dim, float* out) {
  to_lanes(dim, out, [x](uint32_t d) { return f32_from_bf16(x[d]); });
}
void from_e4m3(const uint8_t* x, uint32_t dim, float* out) {
  to_lanes(dim, out, [x](uint32_t d) { return f32_from_e4m3(x[d]); });
}
void from_e2m1(const uint8_t* x, uint32_t dim, float* out) {
  to_lanes(dim, out, [x](uint32_t d) {
    return f32_from_e2m1(static_cast<uint8_t>(d % 2 == 0 ? x[d / 2] & 15 : x[d / 2] >> 4));
  });
}

float dot(const float* q, const float* key, uint32_t padded) {
  float lanes[32] = {};
  for (uint32_t chunk = 0; chunk < padded; chunk += kLaneChunk) {
    for (uint32_t half = 0; half < kLaneChunk; half += 32) {
      for (uint32_t l = 0; l < 32; ++l) {
        lanes[l] = std::fma(q[chunk + half + l], key[chunk + half + l], lanes[l]);
      }
    }
  }
  for (uint32_t step = 16; step > 0; step /= 2) {
    for (uint32_t l = 0; l < step; ++l) lanes[l] += lanes[l ^ step];
  }
  return lanes[0];
}

void dots(const float* q, uint32_t heads, const float* keys, uint32_t count, uint32_t padded,
          float* out, uint32_t out_stride) {
  for (uint32_t h = 0; h < heads; ++h) {
    for (uint32_t j = 0; j < count; ++j) {
      out[uint64_t{h} * out_stride + j] =
          dot(q + uint64_t{h} * padded, keys + uint64_t{j} * padded, padded);
    }
  }
}

float shift_scores(float* x, uint32_t count, float scale) {
  float largest = -std::numeric_limits<float>::infinity();
  for (uint32_t j = 0; j < count; ++j) {
    x[j] *= scale;
    largest = x[j] > largest ? x[j] : largest;
  }
  for (uint32_t j = 0; j < count; ++j) x[j] -= largest;
  return largest;
}

void weigh(const float* p, uint32_t p_stride, uint32_t heads, const float* const* values,
           uint32_t count, uint32_t dim, float* acc, float* sum) {
  for (uint32_t h = 0; h < heads; ++h) {
    const float* weights = p + uint64_t{h} * p_stride;
    float* head_acc = acc + uint64_t{h} * dim;
    for (uint32_t j = 0; j < count; ++j) {
      sum[h] += weights[j];
      for (uint32_t d = 0; d < dim; ++d) {
        head_acc[d] = std::fma(weights[j], values[j][d], head_acc[d]);
      }
    }
  }
}

void combine(float* total, float a, const float* part, float b, uint32_t dim) {
  for (uint32_t d = 0; d < dim; ++d) total[d] = std::fma(part[d], b, total[d] * a);
}

void fma_all(const float* a, const float* b, float* acc, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) acc[i] = std::fma(a[i], b[i], acc[i]);
}

void axpy(float w, const float* x, float* acc, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) acc[i] = std::fma(w, x[i], acc[i]);
}

void index_logits(const float* products, uint32_t stride, uint32_t heads, const float* weights,
                  const float* scales, uint32_t count, float* logits) {
  for (uint32_t j = 0; j < count; ++j) {
    float acc = 0.0f;
    for (uint32_t h = 0; h < heads; ++h) {
      const float x = products[uint64_t{h} * stride + j];
      acc = std::fma(weights[h], (0.0f > x ? 0.0f : x) * scales[j], acc);
    }
    logits[j] = acc;
  }
}

constexpr LaneKernels kPlain = {from_f32, from_bf16,    from_e4m3,   from_e2m1,
                                dots,     shift_scores, weigh,       combine,
                                fma_all,  axpy,         index_logits};

}  // namespace

const LaneKernels& lane_kernels_plain() { return kPlain; }

const LaneKernels& lane_kernels(Isa isa) {
  REDECODE_CHECK(isa_supported(isa));
#if defined(__x86_64__)
  if (isa == Isa::avx512) return lane_kernels_avx512();
  if (isa == Isa::avx2) return lane_kernels_avx2();
#endif
  return lane_kernels_plain();
}

}  // namespace redecode
