// engine/kernels/lanes_avx512.cpp - lanes.h with 512-bit vectors: two vectors hold the 32 lanes.
#include "engine/kernels/lanes.h"

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns about the undefined inputs in its own intrinsics headers.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

// Unrolled early, so that small arrays of vectors become registers.
#if defined(__clang__)
#define REDECODE_UNROLL _Pragma("unroll")
#else
#define REDECODE_UNROLL _Pragma("GCC unroll 8")
#endif

namespace redecode {
namespace {

__mmask16 mask_of(uint64_t left) {
  return left >= 16 ? __mmask16{0xffff} : static_cast<__mmask16>((1u << left) - 1u);
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

// `left` elements of a chunk, the rest of it zero.
void chunk_f32(const float* x, uint32_t left, float* out) {
  const uint64_t mask = left >= 64 ? ~uint64_t{0} : (uint64_t{1} << left) - 1;
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  for (int half = 0; half < 2; ++half) {
    const auto first = static_cast<__mmask16>(mask >> (32 * half));
    const auto second = static_cast<__mmask16>(mask >> (32 * half + 16));
    const __m512 a = _mm512_maskz_loadu_ps(first, x + 32 * half);
    const __m512 b = _mm512_maskz_loadu_ps(second, x + 32 * half + 16);
    _mm512_storeu_ps(out + 16 * half, _mm512_permutex2var_ps(a, even, b));
    _mm512_storeu_ps(out + 32 + 16 * half, _mm512_permutex2var_ps(a, odd, b));
  }
}

void chunk_bf16(const uint16_t* x, uint32_t left, float* out) {
  const uint64_t mask = left >= 64 ? ~uint64_t{0} : (uint64_t{1} << left) - 1;
  const __m512i high = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  for (int half = 0; half < 2; ++half) {
    const __m512i pairs =
        _mm512_maskz_loadu_epi16(static_cast<__mmask32>(mask >> (32 * half)), x + 32 * half);
    _mm512_storeu_si512(out + 16 * half, _mm512_slli_epi32(pairs, 16));
    _mm512_storeu_si512(out + 32 + 16 * half, _mm512_and_si512(pairs, high));
  }
}

// One e4m3 in the low 8 bits of each element: the bits move to an f32 of the same digits, whose
// exponent is then 120 too small; the product is exact.
__m512 from_e4m3_bits(__m512i v) {
  const __m512i magnitude = _mm512_and_si512(v, _mm512_set1_epi32(0x7f));
  const __m512i sign = _mm512_slli_epi32(_mm512_and_si512(v, _mm512_set1_epi32(0x80)), 24);
  const __m512 value = _mm512_mul_ps(_mm512_castsi512_ps(_mm512_slli_epi32(magnitude, 20)),
                                     _mm512_set1_ps(0x1p120f));
  const __mmask16 nan = _mm512_cmpeq_epi32_mask(magnitude, _mm512_set1_epi32(0x7f));
  const __m512i bits =
      _mm512_mask_mov_epi32(_mm512_castps_si512(value), nan, _mm512_set1_epi32(0x7fc00000));
  return _mm512_castsi512_ps(_mm512_or_si512(bits, sign));
}

void chunk_e4m3(const uint8_t* x, float* out) {
  for (int half = 0; half < 2; ++half) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + 32 * half));
    const __m512i pairs = _mm512_cvtepu16_epi32(bytes);
    _mm512_storeu_ps(out + 16 * half, from_e4m3_bits(pairs));
    _mm512_storeu_ps(out + 32 + 16 * half, from_e4m3_bits(_mm512_srli_epi32(pairs, 8)));
  }
}

void chunk_e2m1(const uint8_t* x, float* out) {
  const __m512 table = _mm512_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, -0.0f, -0.5f,
                                      -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f);
  for (int half = 0; half < 2; ++half) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + 16 * half));
    const __m512i pairs = _mm512_cvtepu8_epi32(bytes);
    _mm512_storeu_ps(out + 16 * half, _mm512_permutexvar_ps(pairs, table));
    _mm512_storeu_ps(out + 32 + 16 * half,
                     _mm512_permutexvar_ps(_mm512_srli_epi32(pairs, 4), table));
  }
}

void from_f32(const float* x, uint32_t dim, float* out) {
  for (uint32_t i = 0; i < dim; i += kLaneChunk) chunk_f32(x + i, dim - i, out + i);
}
void from_bf16(const uint16_t* x, uint32_t dim, float* out) {
  for (uint32_t i = 0; i < dim; i += kLaneChunk) chunk_bf16(x + i, dim - i, out + i);
}
void from_e4m3(const uint8_t* x, uint32_t dim, float* out) {
  each_chunk<uint8_t, 64>(x, dim, dim % 64, out, chunk_e4m3);
}
void from_e2m1(const uint8_t* x, uint32_t dim, float* out) {
  each_chunk<uint8_t, 32>(x, dim, dim % 64 / 2, out, chunk_e2m1);
}

// Steps 16, 8 and 4 of the butterfly for four dot products: block b of the result holds the last
// four lanes of product b.
__m512 butterfly_to_4(const __m512 (*acc)[2]) {
  __m512 x[4];
  for (int k = 0; k < 4; ++k) x[k] = _mm512_add_ps(acc[k][0], acc[k][1]);
  const __m512 xy =
      _mm512_add_ps(_mm512_shuffle_f32x4(x[0], x[1], 0x44), _mm512_shuffle_f32x4(x[0], x[1], 0xee));
  const __m512 zw =
      _mm512_add_ps(_mm512_shuffle_f32x4(x[2], x[3], 0x44), _mm512_shuffle_f32x4(x[2], x[3], 0xee));
  return _mm512_add_ps(_mm512_shuffle_f32x4(xy, zw, 0x88), _mm512_shuffle_f32x4(xy, zw, 0xdd));
}

// Steps 2 and 1 for sixteen products, four a vector; the result is in key order.
__m512 butterfly_to_1(const __m512* w) {
  const __m512 t0 =
      _mm512_add_ps(_mm512_shuffle_ps(w[0], w[1], 0x44), _mm512_shuffle_ps(w[0], w[1], 0xee));
  const __m512 t1 =
      _mm512_add_ps(_mm512_shuffle_ps(w[2], w[3], 0x44), _mm512_shuffle_ps(w[2], w[3], 0xee));
  const __m512 s = _mm512_add_ps(_mm512_shuffle_ps(t0, t1, 0x88), _mm512_shuffle_ps(t0, t1, 0xdd));
  return _mm512_permutexvar_ps(
      _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), s);
}

// Four keys against kHeads queries.
template <int kHeads>
void dots_tile(const float* q, const float* const* keys, uint32_t padded, __m512* out) {
  __m512 acc[kHeads][4][2];
  for (int h = 0; h < kHeads; ++h) {
    for (int k = 0; k < 4; ++k) acc[h][k][0] = acc[h][k][1] = _mm512_setzero_ps();
  }
  for (uint32_t d = 0; d < padded; d += 32) {
    __m512 query[kHeads][2];
    for (int h = 0; h < kHeads; ++h) {
      query[h][0] = _mm512_loadu_ps(q + uint64_t(h) * padded + d);
      query[h][1] = _mm512_loadu_ps(q + uint64_t(h) * padded + d + 16);
    }
    for (int k = 0; k < 4; ++k) {
      const __m512 low = _mm512_loadu_ps(keys[k] + d), high = _mm512_loadu_ps(keys[k] + d + 16);
      for (int h = 0; h < kHeads; ++h) {
        acc[h][k][0] = _mm512_fmadd_ps(query[h][0], low, acc[h][k][0]);
        acc[h][k][1] = _mm512_fmadd_ps(query[h][1], high, acc[h][k][1]);
      }
    }
  }
  for (int h = 0; h < kHeads; ++h) out[h * 4] = butterfly_to_4(acc[h]);
}

template <int kHeads>
void dots_heads(const float* q, const float* keys, uint32_t count, uint32_t padded, float* out,
                uint32_t out_stride) {
  for (uint32_t j = 0; j < count; j += 16) {
    const uint32_t left = count - j < 16 ? count - j : 16;
    __m512 w[kHeads * 4];
    for (int i = 0; i < kHeads * 4; ++i) w[i] = _mm512_setzero_ps();
    for (uint32_t part = 0; part * 4 < left; ++part) {
      const float* tile[4];
      for (uint32_t k = 0; k < 4; ++k) {
        const uint32_t key = part * 4 + k < left ? part * 4 + k : left - 1;
        tile[k] = keys + uint64_t{j + key} * padded;
      }
      dots_tile<kHeads>(q, tile, padded, w + part);
    }
    for (int h = 0; h < kHeads; ++h) {
      _mm512_mask_storeu_ps(out + uint64_t(h) * out_stride + j, mask_of(left),
                            butterfly_to_1(w + h * 4));
    }
  }
}

void dots(const float* q, uint32_t heads, const float* keys, uint32_t count, uint32_t padded,
          float* out, uint32_t out_stride) {
  uint32_t h = 0;
  for (; h + 2 <= heads; h += 2) {
    dots_heads<2>(q + uint64_t{h} * padded, keys, count, padded, out + uint64_t{h} * out_stride,
                  out_stride);
  }
  if (h < heads) {
    dots_heads<1>(q + uint64_t{h} * padded, keys, count, padded, out + uint64_t{h} * out_stride,
                  out_stride);
  }
}

float shift_scores(float* x, uint32_t count, float scale) {
  const __m512 lowest = _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(0xff800000u)));
  const __m512 factor = _mm512_set1_ps(scale);
  __m512 best = lowest;
  for (uint32_t j = 0; j < count; j += 16) {
    const __mmask16 mask = mask_of(count - j);
    const __m512 s = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, x + j), factor);
    _mm512_mask_storeu_ps(x + j, mask, s);
    best = _mm512_mask_max_ps(best, mask, s, best);
  }
  const float largest = _mm512_reduce_max_ps(best);
  const __m512 shift = _mm512_set1_ps(largest);
  for (uint32_t j = 0; j < count; j += 16) {
    const __mmask16 mask = mask_of(count - j);
    const __m512 s = _mm512_maskz_loadu_ps(mask, x + j);
    _mm512_mask_storeu_ps(x + j, mask, _mm512_sub_ps(s, shift));
  }
  return largest;
}

// kVectors * 16 elements from d on, the last vector under `mask`; the sums join the first block.
template <int kHeads, int kVectors>
void weigh_block(const float* p, uint32_t p_stride, const float* const* values, uint32_t count,
                 uint32_t dim, uint32_t d, __mmask16 mask, float* acc, float* sum) {
  __m512 block[kHeads][kVectors];
  float total[kHeads];
  REDECODE_UNROLL
  for (int h = 0; h < kHeads; ++h) {
    total[h] = sum[h];
    REDECODE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const __mmask16 m = v + 1 < kVectors ? __mmask16{0xffff} : mask;
      block[h][v] = _mm512_maskz_loadu_ps(m, acc + uint64_t(h) * dim + d + 16u * uint32_t(v));
    }
  }
  for (uint32_t j = 0; j < count; ++j) {
    __m512 value[kVectors];
    REDECODE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const __mmask16 m = v + 1 < kVectors ? __mmask16{0xffff} : mask;
      value[v] = _mm512_maskz_loadu_ps(m, values[j] + d + 16u * uint32_t(v));
    }
    REDECODE_UNROLL
    for (int h = 0; h < kHeads; ++h) {
      const float weight = p[uint64_t(h) * p_stride + j];
      total[h] += weight;
      const __m512 w = _mm512_set1_ps(weight);
      REDECODE_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        block[h][v] = _mm512_fmadd_ps(w, value[v], block[h][v]);
      }
    }
  }
  REDECODE_UNROLL
  for (int h = 0; h < kHeads; ++h) {
    if (d == 0) sum[h] = total[h];
    REDECODE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const __mmask16 m = v + 1 < kVectors ? __mmask16{0xffff} : mask;
      _mm512_mask_storeu_ps(acc + uint64_t(h) * dim + d + 16u * uint32_t(v), m, block[h][v]);
    }
  }
}

template <int kHeads>
void weigh_heads(const float* p, uint32_t p_stride, const float* const* values, uint32_t count,
                 uint32_t dim, float* acc, float* sum) {
  uint32_t d = 0;
  for (; d + 64 <= dim; d += 64) {
    weigh_block<kHeads, 4>(p, p_stride, values, count, dim, d, 0xffff, acc, sum);
  }
  for (; d < dim; d += 16) {
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
  const __m512 keep = _mm512_set1_ps(a), take = _mm512_set1_ps(b);
  for (uint32_t d = 0; d < dim; d += 16) {
    const __mmask16 mask = mask_of(dim - d);
    const __m512 kept = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, total + d), keep);
    _mm512_mask_storeu_ps(total + d, mask,
                          _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, part + d), take, kept));
  }
}

void fma_all(const float* a, const float* b, float* acc, uint64_t count) {
  for (uint64_t i = 0; i < count; i += 16) {
    const __mmask16 mask = mask_of(count - i);
    const __m512 sum =
        _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, a + i), _mm512_maskz_loadu_ps(mask, b + i),
                        _mm512_maskz_loadu_ps(mask, acc + i));
    _mm512_mask_storeu_ps(acc + i, mask, sum);
  }
}

void axpy(float w, const float* x, float* acc, uint64_t count) {
  const __m512 weight = _mm512_set1_ps(w);
  for (uint64_t i = 0; i < count; i += 16) {
    const __mmask16 mask = mask_of(count - i);
    const __m512 sum = _mm512_fmadd_ps(weight, _mm512_maskz_loadu_ps(mask, x + i),
                                       _mm512_maskz_loadu_ps(mask, acc + i));
    _mm512_mask_storeu_ps(acc + i, mask, sum);
  }
}

void index_logits(const float* products, uint32_t stride, uint32_t heads, const float* weights,
                  const float* scales, uint32_t count, float* logits) {
  for (uint32_t j = 0; j < count; j += 16) {
    const __mmask16 mask = mask_of(count - j);
    const __m512 scale = _mm512_maskz_loadu_ps(mask, scales + j);
    __m512 acc = _mm512_setzero_ps();
    for (uint32_t h = 0; h < heads; ++h) {
      const __m512 x = _mm512_maskz_loadu_ps(mask, products + uint64_t{h} * stride + j);
      const __m512 term = _mm512_mul_ps(_mm512_max_ps(_mm512_setzero_ps(), x), scale);
      acc = _mm512_fmadd_ps(_mm512_set1_ps(weights[h]), term, acc);
    }
    _mm512_mask_storeu_ps(logits + j, mask, acc);
  }
}

constexpr LaneKernels kAvx512 = {from_f32, from_bf16,    from_e4m3,   from_e2m1,
                                 dots,     shift_scores, weigh,       combine,
                                 fma_all,  axpy,         index_logits};

}  // namespace

const LaneKernels& lane_kernels_avx512() { return kAvx512; }

}  // namespace redecode
#endif
