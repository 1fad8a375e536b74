// engine/kernels/elementwise.h - embedding, norm, rope, activation, addition. T rows, all f32.
#pragma once
#include <cstdint>

#include "engine/kernels/exec.h"
#include "engine/kernels/matrix.h"

namespace redecode {

// out[t, :] = table[tokens[t], :]. Tokens outside [0, table.rows) read row 0.
void embed(Exec& exec, const Matrix& table, const int32_t* tokens, uint32_t rows, float* out);

// out[t, d] = x[t, d] * (1 / sqrt(dot(x, x) / dim + eps)) * weight[d]; dot in the contract's order.
// weight may be null (ones). Strides in elements, so that parts of wider rows can be normalised.
void rms_norm(Exec& exec, const float* x, uint64_t x_stride, const float* weight, float eps,
              uint32_t rows, uint32_t dim, float* out, uint64_t out_stride);

// Rotates `rope_dim` elements at `offset` of each of `heads` heads of `head_dim`, in place, pairs
// (2i, 2i+1), angle position * theta^(-2i/rope_dim). The inverse turns back. row_stride in
// elements.
struct RopeShape {
  uint32_t heads = 1, head_dim = 0, offset = 0, rope_dim = 0;
  float theta = 10000.0f;
  bool inverse = false;
};
void rope(Exec& exec, float* x, uint64_t row_stride, const RopeShape& shape,
          const int32_t* positions, uint32_t rows);

// out = gate * sigmoid(gate) * up, [rows, dim].
void swiglu(Exec& exec, const float* gate, uint64_t gate_stride, const float* up,
            uint64_t up_stride, uint32_t rows, uint32_t dim, float* out, uint64_t out_stride);

// out = a + b, count elements; out may be a or b.
void add(Exec& exec, const float* a, const float* b, uint64_t count, float* out);

// In-place Walsh-Hadamard transform of vectors of `dim` (a power of two), scaled by 1/sqrt(dim).
void hadamard(Exec& exec, float* x, uint32_t vectors, uint32_t dim);

}  // namespace redecode
