// engine/kernels/dot.h - the one written order of a dot product (DESIGN: arithmetic contract).
//
// 32 lanes. Lane l takes elements 64i+2l and 64i+2l+1, in that order, for i = 0, 1, 2, ...; each
// step is one fp32 fused multiply-add onto the lane. Tails are zero-padded. The lanes are then
// summed by xor-butterfly 16, 8, 4, 2, 1. The result depends on the two vectors and on nothing
// else.
#pragma once
#include <cstddef>
#include <cstdint>

#include "engine/kernels/exec.h"
#include "engine/kernels/matrix.h"

namespace redecode {

float dot_f32(Isa isa, const float* a, const float* b, size_t count);
float dot_bf16(Isa isa, const uint16_t* a, const float* b, size_t count);

// y[t, n] = dot(w[n, :], x[t, :]) for t in [0, rows), n in [0, w.rows). Strides in elements. Each
// output is the contract's dot product, whatever `rows` and the thread count. x and y must not
// overlap. Cost: streams w once for up to 8 rows of x at a time.
void gemm(Exec& exec, const Matrix& w, const float* x, size_t x_stride, float* y, size_t y_stride,
          uint32_t rows);

}  // namespace redecode
