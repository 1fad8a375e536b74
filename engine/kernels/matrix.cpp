#include "engine/kernels/matrix.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "engine/kernels/convert.h"
#include "traces/check.h"

namespace redecode {
namespace {

constexpr uint32_t kFp8Block = 128;
constexpr uint32_t kFp4Block = 16;

uint64_t blocks_of(uint32_t count, uint32_t block) { return (uint64_t{count} + block - 1) / block; }

uint64_t fp4_tensor_scale_offset(uint32_t rows, uint32_t cols) {
  return (uint64_t{rows} * (cols / 2) + uint64_t{rows} * (cols / kFp4Block) + 3) / 4 * 4;
}

uint8_t* bytes_of(std::byte* p) { return reinterpret_cast<uint8_t*>(p); }
const uint8_t* bytes_of(const std::byte* p) { return reinterpret_cast<const uint8_t*>(p); }

// Largest finite magnitude; NaN and infinities are left to saturation.
float max_magnitude(float best, float v) {
  const float magnitude = std::fabs(v);
  return magnitude > best && magnitude <= 3.4028235e38f ? magnitude : best;
}

// Smallest s with magnitude * 2^(127-s) <= 448; 127 for a block of zeros.
uint8_t fp8_block_scale(float magnitude) {
  if (magnitude == 0.0f) return 127;
  int exponent = 0;
  const float mantissa = std::frexp(magnitude, &exponent);  // 448 = 0.875 * 2^9
  const int power = exponent - 9 + (mantissa > 0.875f ? 1 : 0);
  return static_cast<uint8_t>(std::clamp(power + 127, 0, 254));
}

void encode_fp8(uint32_t rows, uint32_t cols, std::span<const float> values, std::byte* out) {
  uint8_t* codes = bytes_of(out);
  uint8_t* scales = codes + uint64_t{rows} * cols;
  const uint64_t scale_stride = blocks_of(cols, kFp8Block);
  for (uint32_t r0 = 0; r0 < rows; r0 += kFp8Block) {
    const uint32_t r1 = std::min(rows, r0 + kFp8Block);
    for (uint32_t c0 = 0; c0 < cols; c0 += kFp8Block) {
      const uint32_t c1 = std::min(cols, c0 + kFp8Block);
      float best = 0.0f;
      for (uint32_t r = r0; r < r1; ++r) {
        for (uint32_t c = c0; c < c1; ++c)
          best = max_magnitude(best, values[uint64_t{r} * cols + c]);
      }
      const uint8_t scale = fp8_block_scale(best);
      scales[r0 / kFp8Block * scale_stride + c0 / kFp8Block] = scale;
      for (uint32_t r = r0; r < r1; ++r) {
        for (uint32_t c = c0; c < c1; ++c) {
          const uint64_t i = uint64_t{r} * cols + c;
          codes[i] = e4m3_from_f32(std::ldexp(values[i], 127 - scale));
        }
      }
    }
  }
}

void encode_nvfp4(uint32_t rows, uint32_t cols, std::span<const float> values, std::byte* out) {
  float best = 0.0f;
  for (const float v : values) best = max_magnitude(best, v);
  const float scaled = best / (6.0f * 448.0f);
  const float tensor_scale = scaled > 0.0f ? scaled : 1.0f;
  uint8_t* codes = bytes_of(out);
  uint8_t* scales = codes + uint64_t{rows} * (cols / 2);
  for (uint64_t block = 0; block < values.size() / kFp4Block; ++block) {
    const float* v = values.data() + block * kFp4Block;
    float block_best = 0.0f;
    for (uint32_t i = 0; i < kFp4Block; ++i) block_best = max_magnitude(block_best, v[i]);
    scales[block] = e4m3_from_f32(block_best / 6.0f / tensor_scale);
    const float step = f32_from_e4m3(scales[block]) * tensor_scale;
    for (uint32_t i = 0; i < kFp4Block; i += 2) {
      const float even = step > 0.0f ? v[i] / step : 0.0f;
      const float odd = step > 0.0f ? v[i + 1] / step : 0.0f;
      codes[block * (kFp4Block / 2) + i / 2] =
          static_cast<uint8_t>(e2m1_from_f32(even) | (e2m1_from_f32(odd) << 4));
    }
  }
  const uint64_t end = uint64_t{rows} * (cols / 2 + cols / kFp4Block);
  const uint64_t offset = fp4_tensor_scale_offset(rows, cols);
  std::memset(out + end, 0, offset - end);
  std::memcpy(out + offset, &tensor_scale, sizeof tensor_scale);
}

}  // namespace

uint64_t matrix_row_bytes(DType dtype, uint32_t cols) {
  switch (dtype) {
    case DType::f32:
      return uint64_t{cols} * 4;
    case DType::bf16:
      return uint64_t{cols} * 2;
    case DType::fp8:
      return cols;
    case DType::nvfp4:
      return cols / 2;
  }
  return 0;
}

uint64_t matrix_bytes(DType dtype, uint32_t rows, uint32_t cols) {
  const uint64_t values = rows * matrix_row_bytes(dtype, cols);
  if (dtype == DType::fp8) return values + blocks_of(rows, kFp8Block) * blocks_of(cols, kFp8Block);
  if (dtype == DType::nvfp4) return fp4_tensor_scale_offset(rows, cols) + sizeof(float);
  return values;
}

void encode_matrix(DType dtype, uint32_t rows, uint32_t cols, std::span<const float> values,
                   std::byte* out) {
  REDECODE_CHECK_OP(values.size(), ==, uint64_t{rows} * cols);
  REDECODE_CHECK_OP(cols % (dtype == DType::nvfp4 ? 16u : 2u), ==, 0u);
  switch (dtype) {
    case DType::f32:
      if (!values.empty()) std::memcpy(out, values.data(), values.size_bytes());
      return;
    case DType::bf16:
      for (size_t i = 0; i < values.size(); ++i) {
        reinterpret_cast<uint16_t*>(out)[i] = bf16_from_f32(values[i]);
      }
      return;
    case DType::fp8:
      return encode_fp8(rows, cols, values, out);
    case DType::nvfp4:
      return encode_nvfp4(rows, cols, values, out);
  }
}

float matrix_value(const Matrix& m, uint32_t row, uint32_t col) {
  REDECODE_CHECK_OP(row, <, m.rows);
  REDECODE_CHECK_OP(col, <, m.cols);
  const uint64_t i = uint64_t{row} * m.cols + col;
  const uint8_t* codes = bytes_of(m.data);
  switch (m.dtype) {
    case DType::f32:
      return reinterpret_cast<const float*>(m.data)[i];
    case DType::bf16:
      return f32_from_bf16(reinterpret_cast<const uint16_t*>(m.data)[i]);
    case DType::fp8: {
      const uint8_t* scales = codes + uint64_t{m.rows} * m.cols;
      const uint8_t s = scales[row / kFp8Block * blocks_of(m.cols, kFp8Block) + col / kFp8Block];
      return f32_from_e4m3(codes[i]) * f32_from_ue8m0(s);
    }
    case DType::nvfp4: {
      const uint8_t scale = codes[uint64_t{m.rows} * (m.cols / 2) + i / kFp4Block];
      float tensor_scale = 0.0f;
      std::memcpy(&tensor_scale, m.data + fp4_tensor_scale_offset(m.rows, m.cols), 4);
      const uint8_t nibble =
          static_cast<uint8_t>((i & 1) != 0 ? codes[i / 2] >> 4 : codes[i / 2] & 15);
      return f32_from_e2m1(nibble) * f32_from_e4m3(scale) * tensor_scale;
    }
  }
  return 0.0f;
}

}  // namespace redecode
