#include "engine/kernels/math.h"

#include "engine/kernels/math_fma.h"
#include "engine/kernels/math_inline.h"

namespace redecode {
namespace {

#if defined(__x86_64__)
bool has_fma() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#else
constexpr bool has_fma() { return false; }
#endif

}  // namespace

float exp_f32(float x) { return has_fma() ? math_fma::exp_f32(x) : math_inline::exp_value(x); }

float log_f32(float x) { return has_fma() ? math_fma::log_f32(x) : math_inline::log_value(x); }

float sigmoid_f32(float x) {
  return has_fma() ? math_fma::sigmoid_f32(x) : math_inline::sigmoid_value(x);
}

float softplus_f32(float x) {
  return has_fma() ? math_fma::softplus_f32(x) : math_inline::softplus_value(x);
}

float tanh_f32(float x) { return has_fma() ? math_fma::tanh_f32(x) : math_inline::tanh_value(x); }

void sincos_f32(float x, float& sin_out, float& cos_out) {
  if (has_fma()) return math_fma::sincos_f32(x, sin_out, cos_out);
  math_inline::sincos_value(x, &sin_out, &cos_out);
}

float fma_f32(float a, float b, float c) {
  return has_fma() ? math_fma::fma_f32(a, b, c) : __builtin_fmaf(a, b, c);
}

}  // namespace redecode
