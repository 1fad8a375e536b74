// engine/kernels/math.h - transcendental functions in fp32 with explicit fused multiply-adds.
//
// The same bits on every CPU, instruction set and GPU: polynomials and reductions are written out,
// no library function is called but fma, floor-like integer conversion, sqrt and IEEE division.
// Errors against a double reference are bounded by tests/kernels (in ULP over the ranges stated).
#pragma once

namespace redecode {

float exp_f32(float x);       // <= 2 ULP; 0 below -104, +inf above 88.73; NaN stays
float log_f32(float x);       // <= 2 ULP for normal x > 0; -inf at 0, NaN below
float sigmoid_f32(float x);   // 1 / (1 + exp(-x))
float softplus_f32(float x);  // log(1 + exp(x)), x itself above 20
float tanh_f32(float x);
void sincos_f32(float x, float& sin_out, float& cos_out);  // |x| <= 1e6: <= 4e-7 absolute

// a*b + c with one rounding.
float fma_f32(float a, float b, float c);

}  // namespace redecode
