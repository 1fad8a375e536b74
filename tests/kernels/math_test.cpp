#include "engine/kernels/math.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "engine/kernels/math_inline.h"
#include "engine/kernels/vector_math.h"
#include "tests/kernels/kernel_inputs.h"

namespace redecode {
namespace {

using testing::canonical_bits;
using testing::random_bit_floats;
using testing::supported_isas;
using testing::ulp_error;

std::vector<float> grid(double low, double high, size_t count) {
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>(low + (high - low) * static_cast<double>(i) /
                                          static_cast<double>(count - 1));
  }
  return out;
}

template <class F, class Reference>
double worst_ulp(const std::vector<float>& inputs, const F& f, const Reference& reference) {
  double worst = 0.0;
  for (const float x : inputs) worst = std::max(worst, ulp_error(f(x), reference(double{x})));
  return worst;
}

// Grids, special values and random bits.
std::vector<float> all_inputs() {
  std::vector<float> inputs = grid(-110, 95, 200001);
  for (const float v : random_bit_floats(100000, 7)) inputs.push_back(v);
  for (const float v : {0.0f, 1e-45f, 1e-38f, 1e38f, INFINITY, 88.72283f, 88.7229f, 103.97f, 104.0f,
                        87.3365f, 20.0f, 0.625f, 4e6f, 5e6f, NAN}) {
    inputs.push_back(v);
    inputs.push_back(-v);
  }
  return inputs;
}

TEST_CASE("exp is within 2 ULP, subnormal results included") {
  const auto reference = [](double x) { return std::exp(x); };
  CHECK(worst_ulp(grid(-87.3, 88.72, 400001), exp_f32, reference) <= 2.0);
  CHECK(worst_ulp(grid(-1, 1, 400001), exp_f32, reference) <= 1.0);
  CHECK(worst_ulp(grid(-104.5, -87.3, 100001), exp_f32, reference) <= 1.0);
  CHECK(exp_f32(0.0f) == 1.0f);
  CHECK(exp_f32(-0.0f) == 1.0f);
  CHECK(exp_f32(-104.0f) == 0.0f);
  CHECK(exp_f32(-INFINITY) == 0.0f);
  CHECK(exp_f32(88.73f) == INFINITY);
  CHECK(std::isfinite(exp_f32(88.7228f)));
  CHECK(exp_f32(INFINITY) == INFINITY);
  CHECK(std::isnan(exp_f32(NAN)));
}

TEST_CASE("log is within 2 ULP, subnormal arguments included") {
  const auto reference = [](double x) { return std::log(x); };
  std::vector<float> inputs = grid(0.5, 2, 400001);
  for (const float v : random_bit_floats(200000, 8)) inputs.push_back(std::fabs(v));
  inputs.push_back(1e-45f);
  CHECK(worst_ulp(inputs, log_f32, reference) <= 2.0);
  CHECK(log_f32(1.0f) == 0.0f);
  CHECK(log_f32(0.0f) == -INFINITY);
  CHECK(log_f32(-0.0f) == -INFINITY);
  CHECK(std::isnan(log_f32(-1.0f)));
  CHECK(std::isnan(log_f32(-INFINITY)));
  CHECK(log_f32(INFINITY) == INFINITY);
  CHECK(std::isnan(log_f32(NAN)));
}

TEST_CASE("sigmoid, softplus and tanh follow their double references") {
  CHECK(worst_ulp(grid(-87, 60, 200001), sigmoid_f32,
                  [](double x) { return 1.0 / (1.0 + std::exp(-x)); }) <= 3.0);
  CHECK(worst_ulp(grid(-87, 60, 200001), softplus_f32,
                  [](double x) { return std::log1p(std::exp(x)); }) <= 3.0);
  CHECK(worst_ulp(grid(-12, 12, 200001), tanh_f32, [](double x) { return std::tanh(x); }) <= 3.0);
  CHECK(sigmoid_f32(-INFINITY) == 0.0f);
  CHECK(sigmoid_f32(INFINITY) == 1.0f);
  CHECK(softplus_f32(1e30f) == 1e30f);
  CHECK(tanh_f32(INFINITY) == 1.0f);
  CHECK(tanh_f32(-INFINITY) == -1.0f);
  CHECK(std::isnan(tanh_f32(NAN)));
  CHECK(std::isnan(softplus_f32(NAN)));
}

TEST_CASE("sin and cos are within 4e-7 up to a million") {
  double worst = 0.0;
  std::vector<float> inputs = grid(-1e6, 1e6, 300001);
  for (const float v : grid(-20, 20, 100001)) inputs.push_back(v);
  for (int i = 0; i < 1000; ++i) inputs.push_back(static_cast<float>(i * 1.5707963267948966));
  for (const float x : inputs) {
    float s = 0.0f, c = 0.0f;
    sincos_f32(x, s, c);
    worst = std::max({worst, std::fabs(double{s} - std::sin(double{x})),
                      std::fabs(double{c} - std::cos(double{x}))});
  }
  CHECK(worst <= 4e-7);
  float s = 1.0f, c = 0.0f;
  sincos_f32(0.0f, s, c);
  CHECK(s == 0.0f);
  CHECK(c == 1.0f);
  for (const float x : {INFINITY, NAN, 5e6f}) {
    sincos_f32(x, s, c);
    CHECK(std::isnan(s));
    CHECK(std::isnan(c));
  }
}

TEST_CASE("The portable text and the compiled functions have the same bits") {
  for (const float x : all_inputs()) {
    REQUIRE(canonical_bits(exp_f32(x)) == canonical_bits(math_inline::exp_value(x)));
    REQUIRE(canonical_bits(log_f32(x)) == canonical_bits(math_inline::log_value(x)));
    REQUIRE(canonical_bits(sigmoid_f32(x)) == canonical_bits(math_inline::sigmoid_value(x)));
    REQUIRE(canonical_bits(softplus_f32(x)) == canonical_bits(math_inline::softplus_value(x)));
    REQUIRE(canonical_bits(tanh_f32(x)) == canonical_bits(math_inline::tanh_value(x)));
  }
  CHECK(fma_f32(1.0f + 0x1p-12f, 1.0f - 0x1p-12f, -1.0f) == -0x1p-24f);
}

TEST_CASE("Array functions have the scalars' bits on every instruction set") {
  const std::vector<float> x = all_inputs();
  std::vector<float> up = random_bit_floats(x.size(), 9);
  for (const Isa isa : supported_isas()) {
    std::vector<float> e(x.size()), g(x.size()), s(x.size()), c(x.size());
    exp_array(isa, x.data(), x.size(), e.data());
    swiglu_array(isa, x.data(), up.data(), x.size(), g.data());
    sincos_array(isa, x.data(), x.size(), s.data(), c.data());
    std::vector<float> in_place = x;
    exp_array(isa, in_place.data(), x.size(), in_place.data());
    for (size_t i = 0; i < x.size(); ++i) {
      float sine = 0.0f, cosine = 0.0f;
      sincos_f32(x[i], sine, cosine);
      REQUIRE(canonical_bits(e[i]) == canonical_bits(exp_f32(x[i])));
      REQUIRE(canonical_bits(in_place[i]) == canonical_bits(e[i]));
      REQUIRE(canonical_bits(g[i]) == canonical_bits(x[i] * sigmoid_f32(x[i]) * up[i]));
      REQUIRE(canonical_bits(s[i]) == canonical_bits(sine));
      REQUIRE(canonical_bits(c[i]) == canonical_bits(cosine));
    }
  }
}

TEST_CASE("Rope frequencies are rounded once") {
  for (const float theta : {1.0f, 10000.0f, 160000.0f, 1e6f, 5e7f}) {
    for (const unsigned dim : {2u, 48u, 64u, 128u}) {
      for (unsigned i = 0; i < dim / 2; ++i) {
        const double exact = std::pow(double{theta}, -2.0 * i / dim);
        REQUIRE(ulp_error(math_inline::rope_frequency_value(theta, i, dim), exact) <= 0.51);
      }
    }
  }
}

}  // namespace
}  // namespace redecode
