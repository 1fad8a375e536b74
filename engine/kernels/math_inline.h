// engine/kernels/math_inline.h - the text of the fp32 functions of math.h, for every compiler that
// needs it.
//
// All functions have internal linkage, so that a file compiled for a wider instruction set keeps
// its own copies. Only IEEE add, multiply, divide and the fused multiply-add appear; a device
// compiler defines REDECODE_MATH_FN (qualifiers) and REDECODE_FMAF before including this and
// switches contraction off.
//
//   exp      n = round(x log2 e), r = x - n ln 2 in two steps, |r| <= 0.3466; degree 7 in r (Cephes
//            expf), then * 2^(n/2) * 2^(n - n/2), so that subnormal results round once.
//   log      x = 2^k m, m in [sqrt(1/2), sqrt 2), s = f/(2+f), f = m - 1; degree 8 in s (fdlibm
//   logf). sin/cos  n = round(x 2/pi), r = x - n pi/2 in three steps; degree 7 and 8 (Cephes sinf,
//   cosf). tanh     odd polynomial of degree 11 below 0.625, else 1 - 2 / (exp(2x) + 1).
#pragma once

#ifndef REDECODE_MATH_FN
#define REDECODE_MATH_FN static inline
#endif
#ifndef REDECODE_FMAF
#define REDECODE_FMAF(a, b, c) __builtin_fmaf((a), (b), (c))
#endif

namespace redecode::math_inline {

REDECODE_MATH_FN unsigned bits_of(float x) {
  unsigned u;
  __builtin_memcpy(&u, &x, sizeof u);
  return u;
}

REDECODE_MATH_FN float from_bits(unsigned u) {
  float x;
  __builtin_memcpy(&x, &u, sizeof x);
  return x;
}

REDECODE_MATH_FN float exp_value(float x) {
  const float magic = 0x1.8p23f;
  const float hi = x > 89.0f ? 89.0f : x;
  const float v = hi < -105.0f ? -105.0f : hi;
  const float t = REDECODE_FMAF(v, 1.44269504f, magic);
  const float n = t - magic;
  float r = REDECODE_FMAF(n, -0.693147182f, v);
  r = REDECODE_FMAF(n, 1.90465421e-9f, r);
  float p = 1.9875691500e-4f;
  p = REDECODE_FMAF(p, r, 1.3981999507e-3f);
  p = REDECODE_FMAF(p, r, 8.3334519073e-3f);
  p = REDECODE_FMAF(p, r, 4.1665795894e-2f);
  p = REDECODE_FMAF(p, r, 1.6666665459e-1f);
  p = REDECODE_FMAF(p, r, 5.0000001201e-1f);
  const float y = REDECODE_FMAF(p, r * r, r) + 1.0f;
  const unsigned count = bits_of(t) - bits_of(magic);
  const unsigned half = (count >> 1) | (count & 0x80000000u);  // arithmetic shift
  const unsigned rest = count - half;
  return y * from_bits((half + 127u) << 23) * from_bits((rest + 127u) << 23);
}

REDECODE_MATH_FN float log_value(float x) {
  unsigned u = bits_of(x);
  if ((u << 1) == 0) return from_bits(0xff800000u);
  if ((u & 0x7fffffffu) > 0x7f800000u || u == 0x7f800000u) return x;
  if ((u >> 31) != 0) return from_bits(0x7fc00000u);
  float k = 0.0f;
  if (u < 0x00800000u) {
    u = bits_of(x * 0x1p25f);
    k = -25.0f;
  }
  u += 0x3f800000u - 0x3f3504f3u;
  k = k + static_cast<float>(static_cast<int>(u >> 23) - 127);
  const float f = from_bits((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  const float s = f / (2.0f + f);
  const float z = s * s;
  const float w = z * z;
  const float t1 = w * REDECODE_FMAF(w, 0.24279078841f, 0.40000972152f);
  const float t2 = z * REDECODE_FMAF(w, 0.28498786688f, 0.66666662693f);
  const float half_square = 0.5f * f * f;
  const float low = REDECODE_FMAF(s, half_square + (t2 + t1), k * 9.0580006145e-6f);
  return REDECODE_FMAF(k, 0.69313812256f, low - half_square + f);
}

REDECODE_MATH_FN float sigmoid_value(float x) { return 1.0f / (1.0f + exp_value(-x)); }

// log(1 + e) with the rounding error of 1 + e given back, so that small e keep their digits.
REDECODE_MATH_FN float softplus_value(float x) {
  if (x > 20.0f) return x;
  const float e = exp_value(x);
  const float u = 1.0f + e;
  return log_value(u) + (e - (u - 1.0f)) / u;
}

REDECODE_MATH_FN float tanh_value(float x) {
  const float a = from_bits(bits_of(x) & 0x7fffffffu);
  if (a < 0.625f) {
    const float z = x * x;
    float p = -5.70498872745e-3f;
    p = REDECODE_FMAF(p, z, 2.06390887954e-2f);
    p = REDECODE_FMAF(p, z, -5.37397155531e-2f);
    p = REDECODE_FMAF(p, z, 1.33314422036e-1f);
    p = REDECODE_FMAF(p, z, -3.33332819422e-1f);
    return REDECODE_FMAF(p * z, x, x);
  }
  const float y = a > 10.0f ? 1.0f : 1.0f - 2.0f / (exp_value(a + a) + 1.0f);
  return x != x ? x : (x < 0.0f ? -y : y);
}

// NaN for both where |x| > 4e6, infinite or NaN.
REDECODE_MATH_FN void sincos_value(float x, float* sin_out, float* cos_out) {
  const float a = from_bits(bits_of(x) & 0x7fffffffu);
  const float v = a <= 4e6f ? x : from_bits(0x7fc00000u);
  const float magic = 0x1.8p23f;
  const float t = REDECODE_FMAF(v, 0.636619747f, magic);
  const float n = t - magic;
  float r = REDECODE_FMAF(n, -1.57079637f, v);
  r = REDECODE_FMAF(n, 4.37113883e-8f, r);
  r = REDECODE_FMAF(n, 1.71512489e-15f, r);
  const float z = r * r;
  float ps = -1.9515295891e-4f;
  ps = REDECODE_FMAF(ps, z, 8.3321608736e-3f);
  ps = REDECODE_FMAF(ps, z, -1.6666654611e-1f);
  ps = REDECODE_FMAF(ps * z, r, r);
  float pc = 2.443315711809948e-5f;
  pc = REDECODE_FMAF(pc, z, -1.388731625493765e-3f);
  pc = REDECODE_FMAF(pc, z, 4.166664568298827e-2f);
  pc = REDECODE_FMAF(pc, z, -0.5f);
  pc = REDECODE_FMAF(pc, z, 1.0f);
  const unsigned quadrant = bits_of(t);
  const float s = (quadrant & 1u) != 0 ? pc : ps;
  const float c = (quadrant & 1u) != 0 ? ps : pc;
  *sin_out = from_bits(bits_of(s) ^ ((quadrant & 2u) << 30));
  *cos_out = from_bits(bits_of(c) ^ (((quadrant + 1u) & 2u) << 30));
}

// theta^(-2 pair / rope_dim), rounded once from double; IEEE double operations only.
REDECODE_MATH_FN float rope_frequency_value(float theta, unsigned pair, unsigned rope_dim) {
  double m = static_cast<double>(theta);
  int k = 0;
  for (; m > 1.5 && k < 128; ++k) m = m * 0.5;
  for (; m < 0.75 && k > -150; --k) m = m * 2.0;
  const double s = (m - 1.0) / (m + 1.0);
  double series = 0.0;
  for (int i = 41; i >= 1; i -= 2) series = series * (s * s) + 1.0 / i;
  const double ln2 = 0.693147180559945309;
  const double log_theta = 2.0 * s * series + k * ln2;
  const double x = -(2.0 * pair / rope_dim) * log_theta;
  const double scaled = x * 1.44269504088896341;
  const int n = static_cast<int>(scaled < 0.0 ? scaled - 0.5 : scaled + 0.5);
  const double r = x - n * ln2;
  double e = 1.0;
  for (int i = 18; i >= 1; --i) e = 1.0 + e * r / i;
  for (int i = n; i < 0; ++i) e = e * 0.5;
  for (int i = n; i > 0; --i) e = e * 2.0;
  return static_cast<float>(e);
}

}  // namespace redecode::math_inline
