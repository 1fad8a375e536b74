// engine/kernels/math_fma.h - the functions of math.h compiled for CPUs with a fused multiply-add.
//
// Same bits as the portable ones; math.cpp picks them, so that no fma is a library call.
#pragma once

namespace redecode::math_fma {

float exp_f32(float x);
float log_f32(float x);
float sigmoid_f32(float x);
float softplus_f32(float x);
float tanh_f32(float x);
void sincos_f32(float x, float& sin_out, float& cos_out);
float fma_f32(float a, float b, float c);

}  // namespace redecode::math_fma
