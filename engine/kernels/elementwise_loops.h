// engine/kernels/elementwise_loops.h - the element-wise loops, compiled once an instruction set.
//
// Straight-line bodies of math_inline.h over independent elements: the compiler widens them, no
// step changes its rounding. Internal linkage throughout; no std header.
#pragma once
#include <cstddef>
#include <cstdint>

#include "engine/kernels/elementwise_isa.h"
#include "engine/kernels/math_inline.h"

// An output may be one of the inputs, never a shifted part of it: iterations are independent.
#if defined(__clang__)
#define REDECODE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define REDECODE_INDEPENDENT _Pragma("GCC ivdep")
#else
#define REDECODE_INDEPENDENT
#endif

namespace redecode {

namespace element_loops {

static void exp_loop(const float* x, size_t count, float* out) {
  REDECODE_INDEPENDENT
  for (size_t i = 0; i < count; ++i) out[i] = math_inline::exp_value(x[i]);
}

static void swiglu_loop(const float* gate, const float* up, size_t count, float* out) {
  REDECODE_INDEPENDENT
  for (size_t i = 0; i < count; ++i) {
    out[i] = gate[i] * math_inline::sigmoid_value(gate[i]) * up[i];
  }
}

static void sincos_loop(const float* x, size_t count, float* sin_out, float* cos_out) {
  REDECODE_INDEPENDENT
  for (size_t i = 0; i < count; ++i) {
    float s, c;
    math_inline::sincos_value(x[i], &s, &c);
    sin_out[i] = s;
    cos_out[i] = c;
  }
}

static void scale_loop(const float* x, float factor, const float* weight, size_t count,
                       float* out) {
  if (weight == nullptr) {
    REDECODE_INDEPENDENT
    for (size_t i = 0; i < count; ++i) out[i] = x[i] * factor;
    return;
  }
  REDECODE_INDEPENDENT
  for (size_t i = 0; i < count; ++i) out[i] = x[i] * factor * weight[i];
}

static void add_loop(const float* a, const float* b, size_t count, float* out) {
  REDECODE_INDEPENDENT
  for (size_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
}

static void rotate_loop(float* x, const float* cc, const float* ss, size_t count) {
  REDECODE_INDEPENDENT
  for (size_t i = 0; i < count; i += 2) {
    const float even = x[i], odd = x[i + 1];
    x[i] = REDECODE_FMAF(even, cc[i], odd * ss[i]);
    x[i + 1] = REDECODE_FMAF(odd, cc[i + 1], even * ss[i + 1]);
  }
}

static void widen_bf16_loop(const uint16_t* x, size_t count, float* out) {
  REDECODE_INDEPENDENT
  for (size_t i = 0; i < count; ++i) {
    out[i] = math_inline::from_bits(static_cast<unsigned>(x[i]) << 16);
  }
}

static void hadamard_loop(float* x, size_t dim) {
  for (size_t stride = 1; stride < dim; stride *= 2) {
    for (size_t base = 0; base < dim; base += 2 * stride) {
      float* low = x + base;
      float* high = low + stride;
      REDECODE_INDEPENDENT
      for (size_t i = 0; i < stride; ++i) {
        const float a = low[i], b = high[i];
        low[i] = a + b;
        high[i] = a - b;
      }
    }
  }
}

}  // namespace element_loops
}  // namespace redecode
