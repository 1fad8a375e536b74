// engine/kernels/lanes_avx2.cpp - lanes.h with 256-bit vectors: four vectors hold the 32 lanes.
#include "engine/kernels/lanes.h"

#if defined(__x86_64__)
#include <immintrin.h>

// Unrolled early, so that small arrays of vectors become registers.
#if defined(__clang__)
#define REDECODE_UNROLL _Pragma("unroll")
#else
#define REDECODE_UNROLL _Pragma("GCC unroll 8")
#endif

namespace redecode {
namespace {

__m256i mask_of(uint64_t left) {
  const int count = left >= 8 ? 8 : static_cast<int>(left);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// Calls convert(source, target) for whole chunks and once more for the zero-padded rest.
template <class T, uint32_t kPerChunk, class Convert>
void each_chunk(const T* x, uint32_t dim, uint32_t rest_items, float* out, Convert convert) {
  const uint32_t whole = dim / kLaneChunk;
  for (uint32_t c = 0; c < whole; ++c) convert(x + c * kPerChunk, out + c * kLaneChunk);
  if (dim % kLaneChunk == 0) return;
  T rest[kPerChunk] = {};
  for (uint32_t i = 0; i < rest_items; ++i) rest[i] = x[whole * kPerChunk + i];
  convert(rest, out + whole * kLaneChunk);
}

void store_bits(float* out, __m256i bits) { _mm256_storeu_ps(out, _mm256_castsi256_ps(bits)); }

void chunk_f32(const float* x, float* out) {
  const __m256i order = _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7);
  for (int part = 0; part < 4; ++part) {
    const __m256 a = _mm256_loadu_ps(x + 16 * part), b = _mm256_loadu_ps(x + 16 * part + 8);
    // [a0 a2 b0 b2 | a4 a6 b4 b6] -> a0 a2 a4 a6 b0 b2 b4 b6
    const __m256 even = _mm256_shuffle_ps(a, b, 0x88), odd = _mm256_shuffle_ps(a, b, 0xdd);
    _mm256_storeu_ps(out + 8 * part, _mm256_permutevar8x32_ps(even, order));
    _mm256_storeu_ps(out + 32 + 8 * part, _mm256_permutevar8x32_ps(odd, order));
  }
}

void chunk_bf16(const uint16_t* x, float* out) {
  const __m256i high = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
  for (int part = 0; part < 4; ++part) {
    const __m256i pairs = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + 16 * part));
    store_bits(out + 8 * part, _mm256_slli_epi32(pairs, 16));
    store_bits(out + 32 + 8 * part, _mm256_and_si256(pairs, high));
  }
}

// One e4m3 in the low 8 bits of each element: the bits move to an f32 of the same digits, whose
// exponent is then 120 too small; the product is exact.
__m256 from_e4m3_bits(__m256i v) {
  const __m256i magnitude = _mm256_and_si256(v, _mm256_set1_epi32(0x7f));
  const __m256i sign = _mm256_slli_epi32(_mm256_and_si256(v, _mm256_set1_epi32(0x80)), 24);
  const __m256 value = _mm256_mul_ps(_mm256_castsi256_ps(_mm256_slli_epi32(magnitude, 20)),
                                     _mm256_set1_ps(0x1p120f));
  const __m256i nan = _mm256_cmpeq_epi32(magnitude, _mm256_set1_epi32(0x7f));
  const __m256i bits =
      _mm256_blendv_epi8(_mm256_castps_si256(value), _mm256_set1_epi32(0x7fc00000), nan);
  return _mm256_castsi256_ps(_mm256_or_si256(bits, sign));
}

void chunk_e4m3(const uint8_t* x, float* out) {
  for (int part = 0; part < 4; ++part) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + 16 * part));
    const __m256i pairs = _mm256_cvtepu16_epi32(bytes);
    _mm256_storeu_ps(out + 8 * part, from_e4m3_bits(pairs));
    _mm256_storeu_ps(out + 32 + 8 * part, from_e4m3_bits(_mm256_srli_epi32(pairs, 8)));
  }
}

// One e2m1 in the low 4 bits of each element.
__m256 from_e2m1_bits(__m256i v) {
  const __m256 table = _mm256_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f);
  const __m256i sign = _mm256_slli_epi32(_mm256_and_si256(v, _mm256_set1_epi32(8)), 28);
  return _mm256_or_ps(_mm256_permutevar8x32_ps(table, v), _mm256_castsi256_ps(sign));
}

void chunk_e2m1(const uint8_t* x, float* out) {
  for (int part = 0; part < 4; ++part) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(x + 8 * part));
    const __m256i pairs = _mm256_cvtepu8_epi32(bytes);
    _mm256_storeu_ps(out + 8 * part, from_e2m1_bits(pairs));
    _mm256_storeu_ps(out + 32 + 8 * part, from_e2m1_bits(_mm256_srli_epi32(pairs, 4)));
  }
}

void from_f32(const float* x, uint32_t dim, float* out) {
  const uint32_t whole = dim / kLaneChunk * kLaneChunk;
  for (uint32_t i = 0; i < whole; i += kLaneChunk) chunk_f32(x + i, out + i);
  if (whole == dim) return;
  // Filled by whole vectors, which the loads of the conversion can take over from the stores.
  alignas(32) float rest[kLaneChunk];
  const __m256i indices = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  for (uint32_t i = 0; i < kLaneChunk; i += 8) {
    const int left = static_cast<int>(dim - whole) - static_cast<int>(i);
    const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(left), indices);
    _mm256_store_ps(rest + i,
                    left > 0 ? _mm256_maskload_ps(x + whole + i, mask) : _mm256_setzero_ps());
  }
  chunk_f32(rest, out + whole);
}
void from_bf16(const uint16_t* x, uint32_t dim, float* out) {
  each_chunk<uint16_t, 64>(x, dim, dim % 64, out, chunk_bf16);
}
void from_e4m3(const uint8_t* x, uint32_t dim, float* out) {
  each_chunk<uint8_t, 64>(x, dim, dim % 64, out, chunk_e4m3);
}
void from_e2m1(const uint8_t* x, uint32_t dim, float* out) {
  each_chunk<uint8_t, 32>(x, dim, dim % 64 / 2, out, chunk_e2m1);
}

// Two keys against one query, to the last eight lanes of each product (butterfly 16 and 8), then
// step 4: the halves of the result hold the last four lanes of the two products.
__m256 dots_tile(const float* q, const float* key0, const float* key1, uint32_t padded) {
  __m256 acc[2][4];
  REDECODE_UNROLL
  for (int k = 0; k < 2; ++k) {
    REDECODE_UNROLL
    for (int v = 0; v < 4; ++v) acc[k][v] = _mm256_setzero_ps();
  }
  for (uint32_t d = 0; d < padded; d += 32) {
    REDECODE_UNROLL
    for (uint32_t v = 0; v < 4; ++v) {
      const __m256 query = _mm256_loadu_ps(q + d + 8 * v);
      acc[0][v] = _mm256_fmadd_ps(query, _mm256_loadu_ps(key0 + d + 8 * v), acc[0][v]);
      acc[1][v] = _mm256_fmadd_ps(query, _mm256_loadu_ps(key1 + d + 8 * v), acc[1][v]);
    }
  }
  __m256 x[2];
  REDECODE_UNROLL
  for (int k = 0; k < 2; ++k) {
    x[k] = _mm256_add_ps(_mm256_add_ps(acc[k][0], acc[k][2]), _mm256_add_ps(acc[k][1], acc[k][3]));
  }
  return _mm256_add_ps(_mm256_permute2f128_ps(x[0], x[1], 0x20),
                       _mm256_permute2f128_ps(x[0], x[1], 0x31));
}

// Steps 2 and 1 for eight products, two a vector; the result is in key order.
__m256 butterfly_to_1(const __m256* w) {
  const __m256 t0 =
      _mm256_add_ps(_mm256_shuffle_ps(w[0], w[1], 0x44), _mm256_shuffle_ps(w[0], w[1], 0xee));
  const __m256 t1 =
      _mm256_add_ps(_mm256_shuffle_ps(w[2], w[3], 0x44), _mm256_shuffle_ps(w[2], w[3], 0xee));
  const __m256 s = _mm256_add_ps(_mm256_shuffle_ps(t0, t1, 0x88), _mm256_shuffle_ps(t0, t1, 0xdd));
  return _mm256_permutevar8x32_ps(s, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

void dots(const float* q, uint32_t heads, const float* keys, uint32_t count, uint32_t padded,
          float* out, uint32_t out_stride) {
  for (uint32_t j = 0; j < count; j += 8) {
    const uint32_t left = count - j < 8 ? count - j : 8;
    for (uint32_t h = 0; h < heads; ++h) {
      __m256 w[4];
      for (uint32_t part = 0; part < 4; ++part) {
        if (part * 2 >= left) {
          w[part] = _mm256_setzero_ps();
          continue;
        }
        const float* key0 = keys + uint64_t{j + part * 2} * padded;
        const float* key1 = part * 2 + 1 < left ? key0 + padded : key0;
        w[part] = dots_tile(q + uint64_t{h} * padded, key0, key1, padded);
      }
      _mm256_maskstore_ps(out + uint64_t{h} * out_stride + j, mask_of(left), butterfly_to_1(w));
    }
  }
}

float shift_scores(float* x, uint32_t count, float scale) {
  const __m256 lowest = _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(0xff800000u)));
  const __m256 factor = _mm256_set1_ps(scale);
  __m256 best = lowest;
  for (uint32_t j = 0; j < count; j += 8) {
    const __m256i mask = mask_of(count - j);
    const __m256 s = _mm256_mul_ps(_mm256_maskload_ps(x + j, mask), factor);
    _mm256_maskstore_ps(x + j, mask, s);
    const __m256 masked = _mm256_blendv_ps(lowest, s, _mm256_castsi256_ps(mask));
    best = _mm256_max_ps(masked, best);
  }
  float lanes[8];
  _mm256_storeu_ps(lanes, best);
  float largest = lanes[0];
  for (int l = 1; l < 8; ++l) largest = lanes[l] > largest ? lanes[l] : largest;
  const __m256 shift = _mm256_set1_ps(largest);
  for (uint32_t j = 0; j < count; j += 8) {
    const __m256i mask = mask_of(count - j);
    const __m256 s = _mm256_maskload_ps(x + j, mask);
    _mm256_maskstore_ps(x + j, mask, _mm256_sub_ps(s, shift));
  }
  return largest;
}

// kVectors * 8 elements from d on, the last vector under `tail`; the sums join the first block.
template <int kHeads, int kVectors>
void weigh_block(const float* p, uint32_t p_stride, const float* const* values, uint32_t count,
                 uint32_t dim, uint32_t d, __m256i tail, float* acc, float* sum) {
  const __m256i all = _mm256_set1_epi32(-1);
  __m256 block[kHeads][kVectors];
  float total[kHeads];
  REDECODE_UNROLL
  for (int h = 0; h < kHeads; ++h) {
    total[h] = sum[h];
    REDECODE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      block[h][v] = _mm256_maskload_ps(acc + uint64_t(h) * dim + d + 8u * uint32_t(v),
                                       v + 1 < kVectors ? all : tail);
    }
  }
  for (uint32_t j = 0; j < count; ++j) {
    __m256 value[kVectors];
    REDECODE_UNROLL
    for (int v = 0; v + 1 < kVectors; ++v) {
      value[v] = _mm256_loadu_ps(values[j] + d + 8u * uint32_t(v));
    }
    value[kVectors - 1] = _mm256_maskload_ps(values[j] + d + 8u * uint32_t(kVectors - 1), tail);
    REDECODE_UNROLL
    for (int h = 0; h < kHeads; ++h) {
      const float weight = p[uint64_t(h) * p_stride + j];
      total[h] += weight;
      const __m256 w = _mm256_set1_ps(weight);
      REDECODE_UNROLL
      for (int v = 0; v < kVectors; ++v) block[h][v] = _mm256_fmadd_ps(w, value[v], block[h][v]);
    }
  }
  REDECODE_UNROLL
  for (int h = 0; h < kHeads; ++h) {
    if (d == 0) sum[h] = total[h];
    REDECODE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      _mm256_maskstore_ps(acc + uint64_t(h) * dim + d + 8u * uint32_t(v),
                          v + 1 < kVectors ? all : tail, block[h][v]);
    }
  }
}

template <int kHeads>
void weigh_heads(const float* p, uint32_t p_stride, const float* const* values, uint32_t count,
                 uint32_t dim, float* acc, float* sum) {
  uint32_t d = 0;
  for (; d + 32 <= dim; d += 32) {
    weigh_block<kHeads, 4>(p, p_stride, values, count, dim, d, _mm256_set1_epi32(-1), acc, sum);
  }
  for (; d < dim; d += 8) {
    weigh_block<kHeads, 1>(p, p_stride, values, count, dim, d, mask_of(dim - d), acc, sum);
  }
}

void weigh(const float* p, uint32_t p_stride, uint32_t heads, const float* const* values,
           uint32_t count, uint32_t dim, float* acc, float* sum) {
  uint32_t h = 0;
  for (; h + 2 <= heads; h += 2) {
    weigh_heads<2>(p + uint64_t{h} * p_stride, p_stride, values, count, dim,
                   acc + uint64_t{h} * dim, sum + h);
  }
  if (h < heads) {
    weigh_heads<1>(p + uint64_t{h} * p_stride, p_stride, values, count, dim,
                   acc + uint64_t{h} * dim, sum + h);
  }
}

void combine(float* total, float a, const float* part, float b, uint32_t dim) {
  const __m256 keep = _mm256_set1_ps(a), take = _mm256_set1_ps(b);
  for (uint32_t d = 0; d < dim; d += 8) {
    const __m256i mask = mask_of(dim - d);
    const __m256 kept = _mm256_mul_ps(_mm256_maskload_ps(total + d, mask), keep);
    _mm256_maskstore_ps(total + d, mask,
                        _mm256_fmadd_ps(_mm256_maskload_ps(part + d, mask), take, kept));
  }
}

void fma_all(const float* a, const float* b, float* acc, uint64_t count) {
  for (uint64_t i = 0; i < count; i += 8) {
    const __m256i mask = mask_of(count - i);
    const __m256 sum =
        _mm256_fmadd_ps(_mm256_maskload_ps(a + i, mask), _mm256_maskload_ps(b + i, mask),
                        _mm256_maskload_ps(acc + i, mask));
    _mm256_maskstore_ps(acc + i, mask, sum);
  }
}

void axpy(float w, const float* x, float* acc, uint64_t count) {
  const __m256 weight = _mm256_set1_ps(w);
  for (uint64_t i = 0; i < count; i += 8) {
    const __m256i mask = mask_of(count - i);
    const __m256 sum =
        _mm256_fmadd_ps(weight, _mm256_maskload_ps(x + i, mask), _mm256_maskload_ps(acc + i, mask));
    _mm256_maskstore_ps(acc + i, mask, sum);
  }
}

void index_logits(const float* products, uint32_t stride, uint32_t heads, const float* weights,
                  const float* scales, uint32_t count, float* logits) {
  for (uint32_t j = 0; j < count; j += 8) {
    const __m256i mask = mask_of(count - j);
    const __m256 scale = _mm256_maskload_ps(scales + j, mask);
    __m256 acc = _mm256_setzero_ps();
    for (uint32_t h = 0; h < heads; ++h) {
      const __m256 x = _mm256_maskload_ps(products + uint64_t{h} * stride + j, mask);
      const __m256 term = _mm256_mul_ps(_mm256_max_ps(_mm256_setzero_ps(), x), scale);
      acc = _mm256_fmadd_ps(_mm256_set1_ps(weights[h]), term, acc);
    }
    _mm256_maskstore_ps(logits + j, mask, acc);
  }
}

constexpr LaneKernels kAvx2 = {from_f32, from_bf16, from_e4m3, from_e2m1, dots,        shift_scores,
                               weigh,    combine,   fma_all,   axpy,      index_logits};

}  // namespace

const LaneKernels& lane_kernels_avx2() { return kAvx2; }

}  // namespace redecode
#endif
