// engine/kernels/dot_isa.h - what the instruction-set files of the dot product are called with.
//
// Plain data and function pointers only: the files behind it are compiled for wider instruction
// sets and must not instantiate shared inline code.
//
// Blocked order of a vector: every 64 elements as 32 even ones, then 32 odd ones; the last block is
// padded with +0. Lane l of a block is then even[l], odd[l].
#pragma once
#include <cstddef>
#include <cstdint>

#include "engine/kernels/exec.h"
#include "engine/kernels/matrix.h"

namespace redecode {

inline constexpr uint32_t kBlock = 64;
inline constexpr uint32_t kPanelRows = 8;  // weight rows worked on together

// y[t, n] for n in [row_begin, row_end), t in [0, x_rows).
struct GemmTask {
  DType dtype = DType::f32;
  uint32_t cols = 0;
  uint32_t row_begin = 0, row_end = 0;
  const uint8_t* values = nullptr;
  uint64_t row_bytes = 0;
  const uint8_t* scales =
      nullptr;  // fp8: [ceil(rows/128), scale_stride]; nvfp4: [rows, scale_stride]
  uint32_t scale_stride = 0;
  float tensor_scale = 1.0f;  // nvfp4
  const float* x = nullptr;   // blocked order
  uint64_t x_stride = 0;      // elements, a multiple of kBlock
  uint32_t x_rows = 0;
  float* y = nullptr;
  uint64_t y_stride = 0;
  float* panel = nullptr;  // scratch of this thread: kPanelRows * cols rounded up to kBlock
};

struct DotKernels {
  void (*to_blocked)(const float* x, size_t count, float* out);
  void (*gemm)(const GemmTask& task);
  float (*dot_f32)(const float* a, const float* b, size_t count);
  float (*dot_bf16)(const uint16_t* a, const float* b, size_t count);
};

extern const DotKernels kDotPlain;
extern const DotKernels kDotAvx2;
extern const DotKernels kDotAvx512;

// Value of every e4m3 code (convert.cpp).
struct E4m3Table {
  float value[256];
};
extern const E4m3Table kE4m3;

// Columns [first_col, first_col + kBlock) of a row in blocked order, padded; plain code, for tails.
void decode_block(const GemmTask& task, uint32_t row, uint32_t first_col, float* out);

}  // namespace redecode
