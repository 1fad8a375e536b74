// engine/kernels/elementwise_isa.h - table of the element-wise loops of one instruction set.
#pragma once
#include <cstddef>
#include <cstdint>

namespace redecode {

struct ElementKernels {
  void (*exp)(const float* x, size_t count, float* out);
  void (*swiglu)(const float* gate, const float* up, size_t count, float* out);
  void (*sincos)(const float* x, size_t count, float* sin_out, float* cos_out);
  // out = x * factor * weight; weight may be null.
  void (*scale)(const float* x, float factor, const float* weight, size_t count, float* out);
  void (*add)(const float* a, const float* b, size_t count, float* out);
  // x[i] = fma(x[i], cc[i], x[i ^ 1] * ss[i]); count is even.
  void (*rotate)(float* x, const float* cc, const float* ss, size_t count);
  void (*widen_bf16)(const uint16_t* x, size_t count, float* out);
  // Unscaled Walsh-Hadamard transform, strides 1, 2, 4, ...
  void (*hadamard)(float* x, size_t dim);
};

extern const ElementKernels kElementsPlain;
extern const ElementKernels kElementsAvx2;
extern const ElementKernels kElementsAvx512;

}  // namespace redecode
