#include <immintrin.h>

#include "engine/kernels/dot_isa.h"

namespace redecode {
namespace {

using Vec = __m256;
constexpr int kWidth = 8;
constexpr int kParts = 4;
constexpr int kMaxColumns = 2;
constexpr uint32_t kByPartsFromCols = 256;
// Each weight line is fetched into L2 this many bytes before it is used: in L1, rows a power of two
// apart would push one another out.
constexpr uint32_t kPrefetchBytes = 2048;

template <int N>
struct Width {};
template <int N>
struct Tile {
  static constexpr int rows = 2 / N;
  static constexpr int rows_by_parts = N == 2 ? 4 : 0;
};

inline Vec zero() { return _mm256_setzero_ps(); }
inline Vec load_vec(const float* p) { return _mm256_loadu_ps(p); }
inline void store_vec(float* p, Vec v) { _mm256_storeu_ps(p, v); }
inline Vec fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }

inline __m256 fold(const Vec* acc) {
  return _mm256_add_ps(_mm256_add_ps(acc[0], acc[2]), _mm256_add_ps(acc[1], acc[3]));
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
  static constexpr uint32_t decode_from = 3;
  struct Row {
    const uint8_t* values;
    uint32_t ahead_bytes = 0;
  };
  static Row row(const GemmTask& task, uint32_t r) {
    return {task.values + r * task.row_bytes, ahead_bytes(task)};
  }
  static void load(const Row& row, uint32_t col, uint32_t part, Vec& even, Vec& odd) {
    const uint8_t* p = row.values + (uint64_t{col} + part * 16) * 4;
    const __m256 a = _mm256_loadu_ps(reinterpret_cast<const float*>(p));
    const __m256 b = _mm256_loadu_ps(reinterpret_cast<const float*>(p + 32));
    even = in_order(_mm256_shuffle_ps(a, b, 0x88));
    odd = in_order(_mm256_shuffle_ps(a, b, 0xdd));
  }
  static __m256 in_order(__m256 v) {
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xd8));
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
    const __m256i v = _mm256_loadu_si256(
        reinterpret_cast<const __m256i*>(row.values + (uint64_t{col} + part * 16) * 2));
    even = _mm256_castsi256_ps(_mm256_slli_epi32(v, 16));
    odd =
        _mm256_castsi256_ps(_mm256_and_si256(v, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  static void prefetch(const Row& row, uint32_t col) {
    for (int i = 0; i < 2; ++i)
      prefetch_line(row.values + row.ahead_bytes + uint64_t{col} * 2 + i * 64);
  }
};

struct Fp8 {
  static constexpr uint32_t decode_from = 3;
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
    const __m128i v =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(row.values + uint64_t{col} + part * 16));
    // Sign and seven bits moved to the places of a bf16 are the value * 2^-120, subnormals
    // included; 2^120 * 2^(s-127) is one factor, as dot.cpp keeps s <= 134. NaN needs a hand.
    const __m128i nan = _mm_cmpeq_epi8(_mm_or_si128(v, _mm_set1_epi8(-128)), _mm_set1_epi8(-1));
    const __m256i moved = _mm256_and_si256(_mm256_slli_epi16(_mm256_cvtepi8_epi16(v), 4),
                                           _mm256_set1_epi16(static_cast<int16_t>(0x87f0)));
    const __m256i pairs = _mm256_or_si256(
        moved, _mm256_and_si256(_mm256_cvtepi8_epi16(nan), _mm256_set1_epi16(0x7fc0)));
    const __m256 scale =
        _mm256_castsi256_ps(_mm256_set1_epi32((int{row.scales[col / 128]} + 120) << 23));
    even = _mm256_mul_ps(_mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)), scale);
    odd = _mm256_mul_ps(_mm256_castsi256_ps(_mm256_and_si256(
                            pairs, _mm256_set1_epi32(static_cast<int>(0xffff0000u)))),
                        scale);
  }
  static void prefetch(const Row& row, uint32_t col) {
    prefetch_line(row.values + row.ahead_bytes + col);
  }
};

struct Nvfp4 {
  static constexpr uint32_t decode_from = 3;
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
  // A part is one 16-element group: the 8 magnitudes times its scale are a table of 8.
  static void load(const Row& row, uint32_t col, uint32_t part, Vec& even, Vec& odd) {
    const __m256i v = _mm256_cvtepu8_epi32(
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(row.values + col / 2 + part * 8)));
    const __m256 scale = _mm256_set1_ps(kE4m3.value[row.scales[col / 16 + part]]);
    const __m256 magnitudes = _mm256_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f);
    const __m256 table =
        _mm256_mul_ps(_mm256_mul_ps(magnitudes, scale), _mm256_set1_ps(row.tensor_scale));
    even = signed_lookup(table, v, _mm256_slli_epi32(v, 28));
    odd = signed_lookup(table, _mm256_srli_epi32(v, 4), _mm256_slli_epi32(v, 24));
  }
  static __m256 signed_lookup(__m256 table, __m256i code, __m256i sign) {
    const __m256i sign_bit = _mm256_set1_epi32(static_cast<int>(0x80000000u));
    return _mm256_xor_ps(_mm256_permutevar8x32_ps(table, code),
                         _mm256_castsi256_ps(_mm256_and_si256(sign, sign_bit)));
  }
  static void prefetch(const Row& row, uint32_t col) {
    if (col % 128 == 0) prefetch_line(row.values + row.ahead_bytes + col / 2);
  }
};

#include "engine/kernels/dot_tiles.h"

}  // namespace

const DotKernels kDotAvx2 = {to_blocked, gemm, dot_f32, dot_bf16};

}  // namespace redecode
