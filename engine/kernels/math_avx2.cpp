#include "engine/kernels/math_fma.h"
#include "engine/kernels/math_inline.h"

namespace redecode::math_fma {

float exp_f32(float x) { return math_inline::exp_value(x); }
float log_f32(float x) { return math_inline::log_value(x); }
float sigmoid_f32(float x) { return math_inline::sigmoid_value(x); }
float softplus_f32(float x) { return math_inline::softplus_value(x); }
float tanh_f32(float x) { return math_inline::tanh_value(x); }
void sincos_f32(float x, float& sin_out, float& cos_out) {
  math_inline::sincos_value(x, &sin_out, &cos_out);
}
float fma_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

}  // namespace redecode::math_fma
