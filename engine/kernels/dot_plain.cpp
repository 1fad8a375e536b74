#include <algorithm>

#include "engine/kernels/convert.h"
#include "engine/kernels/dot_isa.h"

namespace redecode {
namespace {

constexpr uint32_t kLanes = 32;

struct Lanes {
  float lane[kLanes] = {};

  void add_block(const float* a, const float* b) {
    for (uint32_t l = 0; l < kLanes; ++l) {
      lane[l] = __builtin_fmaf(a[l], b[l], lane[l]);
      lane[l] = __builtin_fmaf(a[kLanes + l], b[kLanes + l], lane[l]);
    }
  }

  float sum() {
    for (uint32_t m = kLanes / 2; m >= 1; m /= 2) {
      for (uint32_t l = 0; l < m; ++l) lane[l] = lane[l] + lane[l + m];
    }
    return lane[0];
  }
};

float nvfp4_value(const GemmTask& task, uint32_t row, uint32_t col) {
  const uint8_t pair = task.values[row * task.row_bytes + col / 2];
  const uint8_t scale = task.scales[uint64_t{row} * task.scale_stride + col / 16];
  const float value = f32_from_e2m1(static_cast<uint8_t>((col & 1) != 0 ? pair >> 4 : pair & 15));
  return value * f32_from_e4m3(scale) * task.tensor_scale;
}

float fp8_value(const GemmTask& task, uint32_t row, uint32_t col) {
  const uint8_t s = task.scales[uint64_t{row / 128} * task.scale_stride + col / 128];
  return f32_from_e4m3(task.values[row * task.row_bytes + col]) * f32_from_ue8m0(s);
}

float value_at(const GemmTask& task, uint32_t row, uint32_t col) {
  const uint8_t* values = task.values + row * task.row_bytes;
  switch (task.dtype) {
    case DType::f32:
      return reinterpret_cast<const float*>(values)[col];
    case DType::bf16:
      return f32_from_bf16(reinterpret_cast<const uint16_t*>(values)[col]);
    case DType::fp8:
      return fp8_value(task, row, col);
    case DType::nvfp4:
      return nvfp4_value(task, row, col);
  }
  return 0.0f;
}

void to_blocked(const float* x, size_t count, float* out) {
  for (size_t base = 0; base < count; base += kBlock) {
    for (size_t l = 0; l < kLanes; ++l) {
      const size_t even = base + 2 * l;
      out[base + l] = even < count ? x[even] : 0.0f;
      out[base + kLanes + l] = even + 1 < count ? x[even + 1] : 0.0f;
    }
  }
}

void gemm(const GemmTask& task) {
  for (uint32_t row = task.row_begin; row < task.row_end; ++row) {
    for (uint32_t col = 0; col < task.cols; col += kBlock) {
      decode_block(task, row, col, task.panel + col);
    }
    for (uint32_t t = 0; t < task.x_rows; ++t) {
      const float* x = task.x + t * task.x_stride;
      Lanes lanes;
      for (uint32_t col = 0; col < task.cols; col += kBlock) {
        lanes.add_block(task.panel + col, x + col);
      }
      task.y[t * task.y_stride + row] = lanes.sum();
    }
  }
}

float dot_f32(const float* a, const float* b, size_t count) {
  Lanes lanes;
  float a_block[kBlock], b_block[kBlock];
  for (size_t i = 0; i < count; i += kBlock) {
    const size_t part = std::min<size_t>(kBlock, count - i);
    to_blocked(a + i, part, a_block);
    to_blocked(b + i, part, b_block);
    lanes.add_block(a_block, b_block);
  }
  return lanes.sum();
}

float dot_bf16(const uint16_t* a, const float* b, size_t count) {
  Lanes lanes;
  float values[kBlock], a_block[kBlock], b_block[kBlock];
  for (size_t i = 0; i < count; i += kBlock) {
    const size_t part = std::min<size_t>(kBlock, count - i);
    for (size_t j = 0; j < part; ++j) values[j] = f32_from_bf16(a[i + j]);
    to_blocked(values, part, a_block);
    to_blocked(b + i, part, b_block);
    lanes.add_block(a_block, b_block);
  }
  return lanes.sum();
}

}  // namespace

void decode_block(const GemmTask& task, uint32_t row, uint32_t first_col, float* out) {
  float values[kBlock];
  const uint32_t part = std::min(kBlock, task.cols - first_col);
  for (uint32_t j = 0; j < part; ++j) values[j] = value_at(task, row, first_col + j);
  to_blocked(values, part, out);
}

const DotKernels kDotPlain = {to_blocked, gemm, dot_f32, dot_bf16};

}  // namespace redecode
