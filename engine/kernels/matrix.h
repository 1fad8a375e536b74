// engine/kernels/matrix.h - Matrix: weights [rows, cols] in one of four storage types.
//
// One persistent buffer holds a matrix: values row-major, then scales. Row r is one output element.
//   f32    [rows, cols] f32
//   bf16   [rows, cols] u16
//   fp8    [rows, cols] e4m3, then [ceil(rows/128), ceil(cols/128)] u8 ue8m0 scales: w = e4m3 *
//   2^(s-127) nvfp4  [rows, cols/2] two e2m1 a byte, even column in the low nibble, then [rows,
//   cols/16] e4m3
//          scales, then (4-byte aligned) one f32: w = (e2m1 * e4m3) * f32; the first product is
//          exact
// cols is a multiple of 16 for nvfp4 and of 2 otherwise.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace redecode {

enum class DType : uint8_t { f32, bf16, fp8, nvfp4 };

struct Matrix {
  DType dtype = DType::f32;
  uint32_t rows = 0, cols = 0;
  const std::byte* data = nullptr;  // values, at least 4-byte aligned
};

uint64_t matrix_bytes(DType dtype, uint32_t rows, uint32_t cols);
// Bytes of one output row's values, without scales: what a GEMV streams.
uint64_t matrix_row_bytes(DType dtype, uint32_t cols);

// Rounds `values` [rows, cols] f32 into `out` [matrix_bytes]. fp8 scales are the smallest powers of
// two that keep a block within 448; nvfp4: tensor scale = max|w| / (6 * 448), block scale rounded
// to e4m3.
void encode_matrix(DType dtype, uint32_t rows, uint32_t cols, std::span<const float> values,
                   std::byte* out);
// The value that gemm multiplies by, exactly.
float matrix_value(const Matrix& m, uint32_t row, uint32_t col);

}  // namespace redecode
