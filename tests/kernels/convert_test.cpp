#include "engine/kernels/convert.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "engine/kernels/reference.h"
#include "tests/kernels/kernel_inputs.h"

namespace redecode {
namespace {

using testing::encode;
using testing::OwnedMatrix;
using testing::random_bit_floats;
using testing::random_floats;

// Nearest of the finite codes, ties to the even code, beyond the largest: the largest.
template <class Decode>
uint8_t nearest_code(float v, int codes, const Decode& decode) {
  const double magnitude = std::min(std::fabs(double{v}), 1e6);  // differences stay exact
  int best = 0;
  for (int code = 1; code < codes; ++code) {
    const double now = std::fabs(double{decode(static_cast<uint8_t>(code))} - magnitude);
    const double before = std::fabs(double{decode(static_cast<uint8_t>(best))} - magnitude);
    if (now < before || (now == before && code % 2 == 0)) best = code;
  }
  return static_cast<uint8_t>(best);
}

std::vector<float> interesting_floats() {
  std::vector<float> values = random_bit_floats(20000, 1);
  for (const float scale : {0.01f, 1.0f, 10.0f, 600.0f}) {
    const std::vector<float> more = random_floats(5000, 2, scale);
    values.insert(values.end(), more.begin(), more.end());
  }
  for (int code = 0; code < 127;
       ++code) {  // all values and midpoints of e4m3, and their neighbours
    const float low = f32_from_e4m3(static_cast<uint8_t>(code));
    const float high = code == 126 ? 480.0f : f32_from_e4m3(static_cast<uint8_t>(code + 1));
    for (const float v : {low, (low + high) / 2}) {
      for (const float w : {v, std::nextafter(v, 1e9f), std::nextafter(v, -1e9f)}) {
        values.push_back(w);
        values.push_back(-w);
      }
    }
  }
  for (const float v : {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f, 6.0f, 7.0f}) {
    for (const float w : {v, std::nextafter(v, 1e9f), std::nextafter(v, 0.0f)}) {
      values.push_back(w);
      values.push_back(-w);
    }
  }
  return values;
}

TEST_CASE("bf16 rounds to nearest even and keeps NaN and infinity") {
  for (const float v : interesting_floats()) {
    const uint16_t code = bf16_from_f32(v);
    if (std::isnan(v)) {
      CHECK(std::isnan(f32_from_bf16(code)));
      continue;
    }
    const uint32_t bits = std::bit_cast<uint32_t>(v);
    const uint16_t low = static_cast<uint16_t>(bits >> 16);
    const uint32_t rest = bits & 0xffffu;
    const bool up = rest > 0x8000u || (rest == 0x8000u && (low & 1) != 0);
    REQUIRE(code == static_cast<uint16_t>(low + (up ? 1 : 0)));
  }
  CHECK(bf16_from_f32(std::numeric_limits<float>::max()) == 0x7f80);
  CHECK(bf16_from_f32(-std::numeric_limits<float>::infinity()) == 0xff80);
}

TEST_CASE("e4m3 codes are the values of OCP FP8") {
  CHECK(f32_from_e4m3(0x01) == 0x1p-9f);
  CHECK(f32_from_e4m3(0x07) == 7 * 0x1p-9f);
  CHECK(f32_from_e4m3(0x08) == 0x1p-6f);
  CHECK(f32_from_e4m3(0x38) == 1.0f);
  CHECK(f32_from_e4m3(0x7e) == 448.0f);
  CHECK(f32_from_e4m3(0xfe) == -448.0f);
  CHECK(std::isnan(f32_from_e4m3(0x7f)));
  CHECK(std::isnan(f32_from_e4m3(0xff)));
  CHECK(std::signbit(f32_from_e4m3(0x80)));
}

TEST_CASE("e4m3 rounds to the nearest code and saturates") {
  for (const float v : interesting_floats()) {
    const uint8_t code = e4m3_from_f32(v);
    if (std::isnan(v)) {
      REQUIRE(code == 0x7f);
      continue;
    }
    const uint8_t sign = std::signbit(v) ? 0x80 : 0;
    REQUIRE(int{code} == int{sign | nearest_code(v, 127, f32_from_e4m3)});
  }
}

TEST_CASE("e2m1 rounds to the nearest code and saturates") {
  const float values[] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  for (uint8_t code = 0; code < 8; ++code) {
    CHECK(f32_from_e2m1(code) == values[code]);
    CHECK(f32_from_e2m1(static_cast<uint8_t>(code | 8)) == -values[code]);
  }
  for (const float v : interesting_floats()) {
    const uint8_t sign = std::signbit(v) ? 8 : 0;
    const uint8_t expected = std::isnan(v) ? 7 : nearest_code(v, 8, f32_from_e2m1);
    REQUIRE(int{e2m1_from_f32(v)} == int{sign | expected});
  }
}

TEST_CASE("ue8m0 scales are powers of two over the whole range") {
  for (int s = 0; s < 255; ++s) {
    REQUIRE(f32_from_ue8m0(static_cast<uint8_t>(s)) == std::ldexp(1.0f, s - 127));
  }
  CHECK(std::isnan(f32_from_ue8m0(255)));
}

TEST_CASE("A matrix keeps its values to the precision of its type") {
  const uint32_t rows = 130, cols = 272;
  std::vector<float> values = random_floats(rows * cols, 3, 0.7f);
  values[5] = 40.0f;  // one large value in the first fp8 block and nvfp4 group
  for (size_t i = 16; i < 32; ++i) values[i] = 0.0f;
  for (const DType dtype : {DType::f32, DType::bf16, DType::fp8, DType::nvfp4}) {
    const OwnedMatrix m = encode(dtype, rows, cols, values);
    for (uint32_t r = 0; r < rows; ++r) {
      for (uint32_t c = 0; c < cols; ++c) {
        const double exact = double{values[r * cols + c]};
        double group_max = 0.0;
        for (uint32_t i = c / 16 * 16; i < c / 16 * 16 + 16; ++i) {
          group_max = std::max(group_max, std::fabs(double{values[r * cols + i]}));
        }
        double bound = 0.0;
        if (dtype == DType::bf16) bound = std::fabs(exact) * 0x1p-8;
        if (dtype == DType::fp8) bound = std::max(std::fabs(exact) * 0x1p-4, 40.0 / 448 * 0x1p-9);
        if (dtype == DType::nvfp4)
          bound = group_max * (1.0 / 6 + 0x1p-4) + 40.0 / 2688 * 0x1p-9 * 6;
        REQUIRE(std::fabs(double{matrix_value(m.view, r, c)} - exact) <= bound);
      }
    }
  }
}

TEST_CASE("fp8 block scales are the smallest that keep a block within 448") {
  for (const float top : {448.0f, 449.0f, 1.0f, 0.875f, 0.8751f, 1e-30f, 3e38f}) {
    std::vector<float> values(128 * 4, 0.0f);
    values[7] = -top;
    const OwnedMatrix m = encode(DType::fp8, 4, 128, values);
    const uint8_t scale = reinterpret_cast<const uint8_t*>(m.view.data)[4 * 128];
    CHECK(std::ldexp(double{top}, 127 - scale) <= 448.0);
    CHECK(std::ldexp(double{top}, 128 - scale) > 448.0);
    CHECK(std::fabs(double{matrix_value(m.view, 0, 7)} + double{top}) <= double{top} / 16);
  }
}

TEST_CASE("matrix_bytes counts values and scales") {
  CHECK(matrix_bytes(DType::f32, 3, 10) == 120);
  CHECK(matrix_bytes(DType::bf16, 3, 10) == 60);
  CHECK(matrix_bytes(DType::fp8, 129, 130) == 129 * 130 + 4);
  CHECK(matrix_bytes(DType::nvfp4, 3, 48) == 72 + 12 + 4);  // 9 scales padded to 12
  CHECK(matrix_row_bytes(DType::nvfp4, 48) == 24);
}

}  // namespace
}  // namespace redecode
