// GCC 12's own intrinsics start from undefined registers on purpose and are then warned about.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include "engine/kernels/dot_isa.h"

namespace redecode {
namespace {

using Vec = __m512;
constexpr int kWidth = 16;
constexpr int kParts = 2;
constexpr int kMaxColumns = 4;
constexpr uint32_t kByPartsFromCols = 256;
// Each weight line is fetched into L2 this many bytes before it is used: in L1, rows a power of two
// apart would push one another out.
constexpr uint32_t kPrefetchBytes = 2048;

template <int N>
struct Width {};
template <int N>
struct Tile {
  static constexpr int rows = 8 / N;
  static constexpr int rows_by_parts = N == 4 ? 4 : 0;
};

inline Vec zero() { return _mm512_setzero_ps(); }
inline Vec load_vec(const float* p) { return _mm512_loadu_ps(p); }
inline void store_vec(float* p, Vec v) { _mm512_storeu_ps(p, v); }
inline Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }

inline __m256 fold(const Vec* acc) {
  const Vec v = _mm512_add_ps(acc[0], acc[1]);
  return _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
}

// In short rows what comes that far on lies in the next panel: there, each row fetches its own
// place.
inline uint32_t ahead_bytes(const GemmTask& task) {
  constexpr uint64_t kLongRowBytes = 8192;
  return task.row_bytes < kLongRowBytes ? static_cast<uint32_t>(kPanelRows * task.row_bytes)
                                        : kPrefetchBytes;
}

inline void prefetch_line(const uint8_t* p) {
  _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
}

struct F32 {
  static constexpr uint32_t decode_from = 5;
  struct Row {
    const uint8_t* values;
    uint32_t ahead_bytes = 0;
  };
  static Row row(const GemmTask& task, uint32_t r) {
    return {task.values + r * task.row_bytes, ahead_bytes(task)};
  }
  static void load(const Row& row, uint32_t col, uint32_t part, Vec& even, Vec& odd) {
    const uint8_t* p = row.values + (uint64_t{col} + part * 32) * 4;
    const __m512 a = _mm512_loadu_ps(p);
    const __m512 b = _mm512_loadu_ps(p + 64);
    const __m512i evens =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odds =
        _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    even = _mm512_permutex2var_ps(a, evens, b);
    odd = _mm512_permutex2var_ps(a, odds, b);
  }
  static void prefetch(const Row& row, uint32_t col) {
    for (int i = 0; i < 4; ++i)
      prefetch_line(row.values + row.ahead_bytes + uint64_t{col} * 4 + i * 64);
  }
};

struct Bf16 {
  static constexpr uint32_t decode_from = UINT32_MAX;
  struct Row {
    const uint8_t* values;
    uint32_t ahead_bytes = 0;
  };
  static Row row(const GemmTask& task, uint32_t r) {
    return {task.values + r * task.row_bytes, ahead_bytes(task)};
  }
  static void load(const Row& row, uint32_t col, uint32_t part, Vec& even, Vec& odd) {
    const __m512i v = _mm512_loadu_si512(row.values + (uint64_t{col} + part * 32) * 2);
    even = _mm512_castsi512_ps(_mm512_slli_epi32(v, 16));
    odd =
        _mm512_castsi512_ps(_mm512_and_si512(v, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  static void prefetch(const Row& row, uint32_t col) {
    for (int i = 0; i < 2; ++i)
      prefetch_line(row.values + row.ahead_bytes + uint64_t{col} * 2 + i * 64);
  }
};

struct Fp8 {
  static constexpr uint32_t decode_from = 5;
  struct Row {
    const uint8_t* values;
    const uint8_t* scales;
    uint32_t ahead_bytes = 0;
  };
  static Row row(const GemmTask& task, uint32_t r) {
    return {task.values + r * task.row_bytes, task.scales + uint64_t{r / 128} * task.scale_stride,
            ahead_bytes(task)};
  }
  static void load(const Row& row, uint32_t col, uint32_t part, Vec& even, Vec& odd) {
    const __m256i v = _mm256_loadu_si256(
        reinterpret_cast<const __m256i*>(row.values + uint64_t{col} + part * 32));
    // Sign and seven bits moved to the places of a bf16 are the value * 2^-120, subnormals
    // included; 2^120 * 2^(s-127) is one factor, as dot.cpp keeps s <= 134. NaN needs a hand.
    const __mmask32 nan =
        _mm256_cmpeq_epi8_mask(_mm256_or_si256(v, _mm256_set1_epi8(-128)), _mm256_set1_epi8(-1));
    const __m512i moved = _mm512_and_si512(_mm512_slli_epi16(_mm512_cvtepi8_epi16(v), 4),
                                           _mm512_set1_epi16(static_cast<int16_t>(0x87f0)));
    const __m512i pairs = _mm512_mask_mov_epi16(moved, nan, _mm512_set1_epi16(0x7fc0));
    const __m512 scale =
        _mm512_castsi512_ps(_mm512_set1_epi32((int{row.scales[col / 128]} + 120) << 23));
    even = _mm512_mul_ps(_mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)), scale);
    odd = _mm512_mul_ps(_mm512_castsi512_ps(_mm512_and_si512(
                            pairs, _mm512_set1_epi32(static_cast<int>(0xffff0000u)))),
                        scale);
  }
  static void prefetch(const Row& row, uint32_t col) {
    prefetch_line(row.values + row.ahead_bytes + col);
  }
};

struct Nvfp4 {
  static constexpr uint32_t decode_from = 5;
  struct Row {
    const uint8_t* values;
    const uint8_t* scales;
    float tensor_scale;
    uint32_t ahead_bytes = 0;
  };
  static Row row(const GemmTask& task, uint32_t r) {
    return {task.values + r * task.row_bytes, task.scales + uint64_t{r} * task.scale_stride,
            task.tensor_scale, ahead_bytes(task)};
  }
  // The 8 magnitudes times the scales of the two 16-element groups: a table of 16, looked up by
  // group and magnitude.
  static void load(const Row& row, uint32_t col, uint32_t part, Vec& even, Vec& odd) {
    const __m512i v = _mm512_cvtepu8_epi32(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(row.values + col / 2 + part * 16)));
    const uint8_t* s = row.scales + col / 16 + part * 2;
    const __m512 scales = _mm512_mask_mov_ps(_mm512_set1_ps(kE4m3.value[s[0]]), 0xff00,
                                             _mm512_set1_ps(kE4m3.value[s[1]]));
    const __m512 magnitudes = _mm512_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, 0.0f,
                                             0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f);
    const __m512 table =
        _mm512_mul_ps(_mm512_mul_ps(magnitudes, scales), _mm512_set1_ps(row.tensor_scale));
    const __m512i group = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8, 8, 8);
    even = signed_lookup(table, v, group, _mm512_slli_epi32(v, 28));
    odd = signed_lookup(table, _mm512_srli_epi32(v, 4), group, _mm512_slli_epi32(v, 24));
  }
  static __m512 signed_lookup(__m512 table, __m512i code, __m512i group, __m512i sign) {
    // (code & 7) | group, and value ^ (sign & 0x80000000).
    const __m512i index = _mm512_ternarylogic_epi32(code, _mm512_set1_epi32(7), group, 0xea);
    const __m512i value = _mm512_castps_si512(_mm512_permutexvar_ps(index, table));
    const __m512i sign_bit = _mm512_set1_epi32(static_cast<int>(0x80000000u));
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(value, sign, sign_bit, 0x78));
  }
  static void prefetch(const Row& row, uint32_t col) {
    if (col % 128 == 0) prefetch_line(row.values + row.ahead_bytes + col / 2);
  }
};

#include "engine/kernels/dot_tiles.h"

}  // namespace

const DotKernels kDotAvx512 = {to_blocked, gemm, dot_f32, dot_bf16};

}  // namespace redecode
