#include "engine/kernels/dot.h"

#include <cstring>
#include <vector>

#include "engine/kernels/dot_isa.h"
#include "traces/check.h"

namespace redecode {
namespace {

const DotKernels& kernels_of(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return kDotAvx512;
  if (isa == Isa::avx2) return kDotAvx2;
#endif
  return kDotPlain;
}

uint64_t padded(uint32_t count) { return (uint64_t{count} + kBlock - 1) / kBlock * kBlock; }

// A thread's scratch, aligned to 64 bytes; grows and stays.
float* aligned_scratch(std::vector<float>& buffer, size_t count) {
  if (buffer.size() < count + 16) buffer.resize(count + 16);
  const uintptr_t past_bytes = reinterpret_cast<uintptr_t>(buffer.data()) % 64;
  return buffer.data() + (64 - past_bytes) % 64 / sizeof(float);
}

float* x_scratch(size_t count) {
  thread_local std::vector<float> buffer;
  return aligned_scratch(buffer, count);
}

float* panel_scratch(size_t count) {
  thread_local std::vector<float> buffer;
  return aligned_scratch(buffer, count);
}

GemmTask task_of(const Matrix& w) {
  GemmTask task;
  task.dtype = w.dtype;
  task.cols = w.cols;
  task.values = reinterpret_cast<const uint8_t*>(w.data);
  task.row_bytes = matrix_row_bytes(w.dtype, w.cols);
  task.scales = task.values + w.rows * task.row_bytes;
  if (w.dtype == DType::fp8) task.scale_stride = (w.cols + 127) / 128;
  if (w.dtype == DType::nvfp4) {
    task.scale_stride = w.cols / 16;
    std::memcpy(&task.tensor_scale, w.data + matrix_bytes(w.dtype, w.rows, w.cols) - 4, 4);
  }
  return task;
}

// The fast paths fold the scale 2^(s-127) with the exponent shift of e4m3, 2^120, into one factor,
// which would overflow above 134. Blocks with values above 57344 take the plain path.
bool has_extreme_scales(const Matrix& w, const GemmTask& task) {
  if (w.dtype != DType::fp8) return false;
  const size_t count = size_t{(w.rows + 127) / 128} * task.scale_stride;
  uint8_t best = 0;
  for (size_t i = 0; i < count; ++i) best = task.scales[i] > best ? task.scales[i] : best;
  return best > 134;
}

}  // namespace

float dot_f32(Isa isa, const float* a, const float* b, size_t count) {
  return kernels_of(isa).dot_f32(a, b, count);
}

float dot_bf16(Isa isa, const uint16_t* a, const float* b, size_t count) {
  return kernels_of(isa).dot_bf16(a, b, count);
}

void gemm(Exec& exec, const Matrix& w, const float* x, size_t x_stride, float* y, size_t y_stride,
          uint32_t rows) {
  if (rows == 0 || w.rows == 0) return;
  REDECODE_CHECK_OP(w.cols % (w.dtype == DType::nvfp4 ? 16u : 2u), ==, 0u);
  GemmTask task = task_of(w);
  const DotKernels& kernels = has_extreme_scales(w, task) ? kDotPlain : kernels_of(exec.isa());
  task.x_stride = padded(w.cols);
  task.x_rows = rows;
  task.y = y;
  task.y_stride = y_stride;
  float* blocked = x_scratch(rows * task.x_stride);
  task.x = blocked;
  for (uint32_t t = 0; t < rows; ++t) {
    kernels.to_blocked(x + t * x_stride, w.cols, blocked + t * task.x_stride);
  }
  const auto body = [&kernels, &task](size_t begin, size_t end) {
    GemmTask part = task;
    part.row_begin = static_cast<uint32_t>(begin);
    part.row_end = static_cast<uint32_t>(end);
    part.panel = panel_scratch(kPanelRows * task.x_stride);
    kernels.gemm(part);
  };
  if (exec.threads() == 1) return body(0, w.rows);
  exec.parallel(w.rows, kPanelRows, body);
}

}  // namespace redecode
