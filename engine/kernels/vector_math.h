// engine/kernels/vector_math.h - functions of math.h over arrays; each element has the scalar's
// bits.
#pragma once
#include <cstddef>

#include "engine/kernels/exec.h"

namespace redecode {

// out[i] = exp_f32(x[i]); out may be x.
void exp_array(Isa isa, const float* x, size_t count, float* out);
// out[i] = gate[i] * sigmoid_f32(gate[i]) * up[i], multiplied from the left; out may be either
// input.
void swiglu_array(Isa isa, const float* gate, const float* up, size_t count, float* out);
// sin_out[i], cos_out[i] = sincos_f32(x[i]).
void sincos_array(Isa isa, const float* x, size_t count, float* sin_out, float* cos_out);

}  // namespace redecode
