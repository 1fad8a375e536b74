// engine/kernels/dot_tiles.h - the dot product's loops over vectors of any width; one text for all
// widths.
//
// Included by dot_avx2.cpp and dot_avx512.cpp after they define, in namespace redecode::<isa>:
//   Vec, kWidth (lanes a vector), kParts = 32 / kWidth, zero(), load_vec(), store_vec(), fma();
//   fold(acc) -> __m256: lanes 0..7 after butterfly steps 16 and 8;
//   loaders F32, Bf16, Fp8, Nvfp4: Row row(task, r); load(row, col, part, even, odd) gives lanes
//   [part * kWidth, (part + 1) * kWidth) of the block at `col`;
//   tile shapes: Tile<N>::rows weight rows go with N rows of x; part_by_part: see tile().
// Butterfly steps 4, 2, 1 are done for 8 outputs at
// once.
#pragma once

#if defined(__clang__)
#define REDECODE_UNROLL _Pragma("unroll")
#else
#define REDECODE_UNROLL _Pragma("GCC unroll 16")
#endif

// Rows already in blocked order: decoded panels and padded tails.
struct Blocked {
  struct Row {
    const float* values;
  };
  static void load(const Row& row, uint32_t col, uint32_t part, Vec& even, Vec& odd) {
    const float* p = row.values + col + part * kWidth;
    even = load_vec(p);
    odd = load_vec(p + kBlock / 2);
  }
  static void prefetch(const Row&, uint32_t) {}
};

// Butterfly steps 4, 2, 1: lane 0 of v[i] becomes element i.
static inline __m256 reduce8(const __m256* v) {
  __m256 four[4];
  REDECODE_UNROLL
  for (int i = 0; i < 4; ++i) {
    four[i] = _mm256_add_ps(_mm256_permute2f128_ps(v[i], v[i + 4], 0x20),
                            _mm256_permute2f128_ps(v[i], v[i + 4], 0x31));
  }
  const __m256 low = _mm256_add_ps(_mm256_shuffle_ps(four[0], four[1], 0x44),
                                   _mm256_shuffle_ps(four[0], four[1], 0xee));
  const __m256 high = _mm256_add_ps(_mm256_shuffle_ps(four[2], four[3], 0x44),
                                    _mm256_shuffle_ps(four[2], four[3], 0xee));
  return _mm256_add_ps(_mm256_shuffle_ps(low, high, 0x88), _mm256_shuffle_ps(low, high, 0xdd));
}

static inline float reduce1(__m256 v) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

template <class Loader, int R, int N>
static inline void add_part(const typename Loader::Row* rows, uint32_t col, uint32_t part,
                            const float* x, uint64_t x_stride, Vec (&acc)[R][N]) {
  Vec even[R], odd[R];
  REDECODE_UNROLL
  for (int r = 0; r < R; ++r) Loader::load(rows[r], col, part, even[r], odd[r]);
  REDECODE_UNROLL
  for (int n = 0; n < N; ++n) {
    const float* from = x + static_cast<uint64_t>(n) * x_stride + part * kWidth;
    const Vec x_even = load_vec(from), x_odd = load_vec(from + kBlock / 2);
    REDECODE_UNROLL
    for (int r = 0; r < R; ++r) acc[r][n] = fma(even[r], x_even, acc[r][n]);
    REDECODE_UNROLL
    for (int r = 0; r < R; ++r) acc[r][n] = fma(odd[r], x_odd, acc[r][n]);
  }
}

template <int R, int N>
static inline void clear(Vec (&acc)[R][N]) {
  REDECODE_UNROLL
  for (int r = 0; r < R; ++r) {
    REDECODE_UNROLL
    for (int n = 0; n < N; ++n) acc[r][n] = zero();
  }
}

template <int R, int N>
static inline void fold_tile(const Vec (&sums)[kParts][R][N], __m256* out) {
  REDECODE_UNROLL
  for (int r = 0; r < R; ++r) {
    REDECODE_UNROLL
    for (int n = 0; n < N; ++n) {
      Vec lanes[kParts];
      REDECODE_UNROLL
      for (int part = 0; part < kParts; ++part) lanes[part] = sums[part][r][n];
      out[n * static_cast<int>(kPanelRows) + r] = fold(lanes);
    }
  }
}

// R rows of w times N rows of x over `cols` (whole blocks), then the padded tail where there is
// one; out[n * kPanelRows + r] holds 8 lanes each. Walks the columns once, all lanes in registers.
template <class Loader, int R, int N>
static inline void tile_at_once(const typename Loader::Row* rows, uint32_t cols,
                                const Blocked::Row* tails, const float* x, uint64_t x_stride,
                                __m256* out) {
  Vec sums[kParts][R][N];
  REDECODE_UNROLL
  for (uint32_t part = 0; part < kParts; ++part) clear(sums[part]);
  for (uint32_t col = 0; col < cols; col += kBlock) {
    REDECODE_UNROLL
    for (int r = 0; r < R; ++r) Loader::prefetch(rows[r], col);
    REDECODE_UNROLL
    for (uint32_t part = 0; part < kParts; ++part) {
      add_part<Loader, R, N>(rows, col, part, x + col, x_stride, sums[part]);
    }
  }
  if (tails != nullptr) {
    REDECODE_UNROLL
    for (uint32_t part = 0; part < kParts; ++part) {
      add_part<Blocked, R, N>(tails, 0, part, x + cols, x_stride, sums[part]);
    }
  }
  fold_tile<R, N>(sums, out);
}

// The same, but walks the columns once a part: fewer registers an output, so more outputs a tile
// and fewer loads a multiplication. Pays from a few hundred columns on.
template <class Loader, int R, int N>
static inline void tile_by_parts(const typename Loader::Row* rows, uint32_t cols,
                                 const Blocked::Row* tails, const float* x, uint64_t x_stride,
                                 __m256* out) {
  Vec sums[kParts][R][N];
  for (uint32_t part = 0; part < kParts; ++part) {
    Vec acc[R][N];
    clear(acc);
    for (uint32_t col = 0; col < cols; col += kBlock) {
      if (part == 0) {
        REDECODE_UNROLL
        for (int r = 0; r < R; ++r) Loader::prefetch(rows[r], col);
      }
      add_part<Loader, R, N>(rows, col, part, x + col, x_stride, acc);
    }
    if (tails != nullptr) add_part<Blocked, R, N>(tails, 0, part, x + cols, x_stride, acc);
    REDECODE_UNROLL
    for (int r = 0; r < R; ++r) {
      REDECODE_UNROLL
      for (int n = 0; n < N; ++n) sums[part][r][n] = acc[r][n];
    }
  }
  fold_tile<R, N>(sums, out);
}

// The 8 rows of a panel times N rows of x, into y.
template <class Loader, int N>
static inline void panel_columns(const typename Loader::Row* rows, uint32_t cols,
                                 const Blocked::Row* tails, const float* x, uint64_t x_stride,
                                 float* y, uint64_t y_stride, uint32_t valid_rows) {
  constexpr int kPanel = static_cast<int>(kPanelRows);
  __m256 parts[N * kPanel];
  const auto tails_at = [tails](int r) { return tails == nullptr ? nullptr : tails + r; };
  if (Tile<N>::rows_by_parts > 0 && cols >= kByPartsFromCols) {
    constexpr int R = Tile<N>::rows_by_parts > 0 ? Tile<N>::rows_by_parts : kPanel;
    for (int r = 0; r < kPanel; r += R) {
      tile_by_parts<Loader, R, N>(rows + r, cols, tails_at(r), x, x_stride, parts + r);
    }
  } else {
    constexpr int R = Tile<N>::rows;
    for (int r = 0; r < kPanel; r += R) {
      tile_at_once<Loader, R, N>(rows + r, cols, tails_at(r), x, x_stride, parts + r);
    }
  }
  for (int n = 0; n < N; ++n) {
    const __m256 sums = reduce8(parts + n * kPanel);
    float* to = y + static_cast<uint64_t>(n) * y_stride;
    if (valid_rows == kPanelRows) {
      _mm256_storeu_ps(to, sums);
    } else {
      float values[kPanelRows];
      _mm256_storeu_ps(values, sums);
      for (uint32_t r = 0; r < valid_rows; ++r) to[r] = values[r];
    }
  }
}

template <class Loader>
static void panel_times_x(const GemmTask& task, const typename Loader::Row* rows, uint32_t cols,
                          const Blocked::Row* tails, uint32_t row_begin, uint32_t valid_rows) {
  uint32_t t = 0;
  const auto go = [&]<int N>(Width<N>) {
    for (; t + N <= task.x_rows; t += N) {
      panel_columns<Loader, N>(rows, cols, tails, task.x + t * task.x_stride, task.x_stride,
                               task.y + t * task.y_stride + row_begin, task.y_stride, valid_rows);
    }
  };
  go(Width<kMaxColumns>{});
  if constexpr (kMaxColumns > 2) go(Width<2>{});
  go(Width<1>{});
}

// Whole rows into task.panel in blocked order, tails included.
template <class Loader>
static void decode_panel(const GemmTask& task, const typename Loader::Row* rows, uint32_t cols,
                         uint32_t row_begin, uint32_t valid_rows) {
  for (uint32_t r = 0; r < valid_rows; ++r) {
    float* to = task.panel + r * task.x_stride;
    for (uint32_t col = 0; col < cols; col += kBlock) {
      Loader::prefetch(rows[r], col);
      for (uint32_t part = 0; part < kParts; ++part) {
        Vec even, odd;
        Loader::load(rows[r], col, part, even, odd);
        store_vec(to + col + part * kWidth, even);
        store_vec(to + col + part * kWidth + kBlock / 2, odd);
      }
    }
    if (cols < task.cols) decode_block(task, row_begin + r, cols, to + cols);
  }
}

template <class Loader>
static void gemm_of(const GemmTask& task) {
  const uint32_t cols = task.cols / kBlock * kBlock;
  const bool has_tail = cols < task.cols;
  alignas(64) float tail_values[kPanelRows * kBlock];
  for (uint32_t begin = task.row_begin; begin < task.row_end; begin += kPanelRows) {
    const uint32_t left = task.row_end - begin;
    const uint32_t valid = left < kPanelRows ? left : kPanelRows;
    typename Loader::Row rows[kPanelRows];
    Blocked::Row blocked[kPanelRows];
    for (uint32_t r = 0; r < kPanelRows; ++r) {
      rows[r] = Loader::row(task, begin + (r < valid ? r : valid - 1));
    }
    if (task.x_rows >= Loader::decode_from) {
      decode_panel<Loader>(task, rows, cols, begin, valid);
      for (uint32_t r = 0; r < kPanelRows; ++r) {
        blocked[r].values = task.panel + (r < valid ? r : valid - 1) * task.x_stride;
      }
      panel_times_x<Blocked>(task, blocked, static_cast<uint32_t>(task.x_stride), nullptr, begin,
                             valid);
      continue;
    }
    if (has_tail) {
      for (uint32_t r = 0; r < kPanelRows; ++r) {
        blocked[r].values = tail_values + r * kBlock;
        decode_block(task, begin + (r < valid ? r : valid - 1), cols, tail_values + r * kBlock);
      }
    }
    panel_times_x<Loader>(task, rows, cols, has_tail ? blocked : nullptr, begin, valid);
  }
}

static void gemm(const GemmTask& task) {
  switch (task.dtype) {
    case DType::f32:
      return gemm_of<F32>(task);
    case DType::bf16:
      return gemm_of<Bf16>(task);
    case DType::fp8:
      return gemm_of<Fp8>(task);
    case DType::nvfp4:
      return gemm_of<Nvfp4>(task);
  }
}

// a in the loader's type, b f32, both in natural order.
template <class Loader, class T>
static inline float dot_of(const T* a, const float* b, size_t count) {
  Vec acc[kParts];
  for (int part = 0; part < kParts; ++part) acc[part] = zero();
  const auto add = [&acc](const T* a_block, const float* b_block) {
    REDECODE_UNROLL
    for (int part = 0; part < kParts; ++part) {
      Vec a_even, a_odd, b_even, b_odd;
      const uint32_t p = static_cast<uint32_t>(part);
      Loader::load({reinterpret_cast<const uint8_t*>(a_block)}, 0, p, a_even, a_odd);
      F32::load({reinterpret_cast<const uint8_t*>(b_block)}, 0, p, b_even, b_odd);
      acc[part] = fma(a_even, b_even, acc[part]);
      acc[part] = fma(a_odd, b_odd, acc[part]);
    }
  };
  size_t i = 0;
  for (; i + kBlock <= count; i += kBlock) add(a + i, b + i);
  if (i < count) {
    T a_tail[kBlock] = {};
    float b_tail[kBlock] = {};
    __builtin_memcpy(a_tail, a + i, (count - i) * sizeof(T));
    __builtin_memcpy(b_tail, b + i, (count - i) * sizeof(float));
    add(a_tail, b_tail);
  }
  return reduce1(fold(acc));
}

static float dot_f32(const float* a, const float* b, size_t count) {
  return dot_of<F32>(a, b, count);
}

static float dot_bf16(const uint16_t* a, const float* b, size_t count) {
  return dot_of<Bf16>(a, b, count);
}

static void to_blocked(const float* x, size_t count, float* out) {
  const auto block = [](const float* from, float* to) {
    for (uint32_t part = 0; part < kParts; ++part) {
      Vec even, odd;
      F32::load({reinterpret_cast<const uint8_t*>(from)}, 0, part, even, odd);
      store_vec(to + part * kWidth, even);
      store_vec(to + part * kWidth + kBlock / 2, odd);
    }
  };
  size_t i = 0;
  for (; i + kBlock <= count; i += kBlock) block(x + i, out + i);
  if (i < count) {
    float tail[kBlock] = {};
    __builtin_memcpy(tail, x + i, (count - i) * sizeof(float));
    block(tail, out + i);
  }
}
