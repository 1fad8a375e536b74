#include "compare/ulp.h"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "compare/rows.h"

using namespace redecode;

TEST_CASE("f32 distance is 0 for equal bits and for nothing else") {
  const float nan = std::bit_cast<float>(0x7fc00000u);
  const float other_nan = std::bit_cast<float>(0xffc00001u);
  CHECK(ulp_distance(1.5f, 1.5f) == 0);
  CHECK(ulp_distance(nan, nan) == 0);
  CHECK(ulp_distance(0.0f, -0.0f) == 1);
  CHECK(ulp_distance(nan, other_nan) == 1);
  CHECK(ulp_distance(nan, 1.0f) == kFarUlps);
  CHECK(ulp_distance(std::numeric_limits<float>::infinity(), nan) == kFarUlps);
}

TEST_CASE("f32 distance counts the numbers between") {
  const float one = 1.0f, infinity = std::numeric_limits<float>::infinity();
  const float tiny = std::numeric_limits<float>::denorm_min();
  CHECK(ulp_distance(one, std::nextafter(one, 2.0f)) == 1);
  CHECK(ulp_distance(std::nextafter(one, 0.0f), std::nextafter(one, 2.0f)) == 2);
  CHECK(ulp_distance(1.0f, 2.0f) == 1u << 23);
  CHECK(ulp_distance(tiny, -tiny) == 3);
  CHECK(ulp_distance(std::numeric_limits<float>::max(), infinity) == 1);
  CHECK(ulp_distance(-infinity, infinity) == 0xff000001u);
  CHECK(ulp_distance(2.0f, 1.0f) == ulp_distance(1.0f, 2.0f));
}

TEST_CASE("bf16 and e4m3 distances") {
  CHECK(ulp_distance_bf16(0x3f80, 0x3f81) == 1);
  CHECK(ulp_distance_bf16(0x0000, 0x8000) == 1);
  CHECK(ulp_distance_bf16(0x7fc0, 0x3f80) == kFarUlps);
  CHECK(ulp_distance_bf16(0x7f80, 0x7f7f) == 1);
  CHECK(ulp_distance_bf16(0x7fc0, 0xffc1) == 1);
  CHECK(ulp_distance_e4m3(0x38, 0x3a) == 2);
  CHECK(ulp_distance_e4m3(0x00, 0x80) == 1);
  CHECK(ulp_distance_e4m3(0x7e, 0x7f) == kFarUlps);
  CHECK(ulp_distance_e4m3(0x7f, 0xff) == 1);
  CHECK(ulp_distance_e4m3(0x7e, 0xfe) == 253);
}

TEST_CASE("bits are written as the numbers they stand for") {
  CHECK(bits_text(0x3f000000u, 4) == "0.5");
  CHECK(bits_text(0x3dcccccdu, 4) == "0.100000001");
  CHECK(bits_text(0x7fc00000u, 4) == "nan");
  CHECK(bits_text(0xff800000u, 4) == "-inf");
  CHECK(bits_text(42, 4) == "denormal (as i32: 42)");
  CHECK(bits_text(0x3f80u, 2) == "1");
  CHECK(bits_text(0x38u, 1) == "1");
  CHECK(bits_text(0x7eu, 1) == "448");
  CHECK(bits_text(0x81u, 1) == "-0.001953125");
  CHECK(bits_text(0xffu, 1) == "nan");
}

TEST_CASE("arrays of floats: first, count and largest distance") {
  std::vector<float> a(1000, 1.0f);
  std::vector<float> b = a;
  CHECK_FALSE(compare_f32(a, b));
  b[17] = std::nextafter(1.0f, 2.0f);
  b[999] = 2.0f;
  CHECK(compare_f32(a, b) == ArrayDifference{17, 2, 1u << 23});
  CHECK(compare_f32(a, b, 1) == ArrayDifference{999, 1, 1u << 23});
  CHECK_FALSE(compare_f32(a, b, 1u << 23));
  b[3] = std::bit_cast<float>(0x7fc00000u);
  CHECK(compare_f32(a, b, kFarUlps - 1) == ArrayDifference{3, 1, kFarUlps});
  CHECK_FALSE(compare_f32({}, {}));
}

TEST_CASE("a NaN in both arrays at the same place is no difference") {
  const std::vector<float> a = {1.0f, std::bit_cast<float>(0x7fc00001u)};
  CHECK_FALSE(compare_f32(a, std::vector<float>(a)));
}

TEST_CASE("arrays of bytes are read by their element size") {
  const std::vector<uint8_t> a = {0x80, 0x3f, 0x00, 0x00, 0x01};
  std::vector<uint8_t> b = a;
  CHECK_FALSE(compare_elements(a, b, 2));
  b[4] = 2;
  CHECK_FALSE(compare_elements(a, b, 2));  // a tail shorter than an element
  CHECK(compare_elements(a, b, 1) == ArrayDifference{4, 1, 1});
  b[1] = 0x40;
  CHECK(compare_elements(a, b, 2) == ArrayDifference{0, 1, 256});
  CHECK(compare_elements(a, b, 1) == ArrayDifference{1, 2, 1});
  CHECK(element_bits(a, 0, 2) == 0x3f80);
}
