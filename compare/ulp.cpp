#include "compare/ulp.h"

#include <bit>
#include <cmath>
#include <cstdio>

#include "traces/check.h"

namespace redecode {
namespace {

float float_of_e4m3(uint32_t bits) {
  const uint32_t exponent = (bits >> 3) & 0xf, mantissa = bits & 7;
  float magnitude = 0.0f;
  if ((bits & 0x7f) == 0x7f)
    magnitude = std::bit_cast<float>(0x7fc00000u);
  else if (exponent == 0)
    magnitude = static_cast<float>(mantissa) * 0x1p-9f;
  else
    magnitude = std::bit_cast<float>(((exponent + 120) << 23) | (mantissa << 20));
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

}  // namespace

uint32_t ulp_distance_bf16(uint16_t a, uint16_t b) {
  return detail::ulp_distance_of(a, b, 0x8000u, 0x7f80u);
}

uint32_t ulp_distance_e4m3(uint8_t a, uint8_t b) {
  return detail::ulp_distance_of(a, b, 0x80u, 0x7eu);
}

uint32_t ulp_distance_bits(uint32_t a, uint32_t b, uint32_t element_size_bytes) {
  switch (element_size_bytes) {
    case 1:
      return ulp_distance_e4m3(static_cast<uint8_t>(a), static_cast<uint8_t>(b));
    case 2:
      return ulp_distance_bf16(static_cast<uint16_t>(a), static_cast<uint16_t>(b));
    default:
      REDECODE_CHECK_OP(element_size_bytes, ==, 4u);
      return ulp_distance_f32_bits(a, b);
  }
}

float float_of_bits(uint32_t bits, uint32_t element_size_bytes) {
  switch (element_size_bytes) {
    case 1:
      return float_of_e4m3(bits);
    case 2:
      return std::bit_cast<float>(bits << 16);
    default:
      REDECODE_CHECK_OP(element_size_bytes, ==, 4u);
      return std::bit_cast<float>(bits);
  }
}

std::string bits_text(uint32_t bits, uint32_t element_size_bytes) {
  const float number = float_of_bits(bits, element_size_bytes);
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char text[48];
  if (element_size_bytes == 4 && std::fpclassify(number) == FP_SUBNORMAL)
    std::snprintf(text, sizeof text, "denormal (as i32: %d)", static_cast<int32_t>(bits));
  else
    std::snprintf(text, sizeof text, "%.9g", static_cast<double>(number));
  return text;
}

}  // namespace redecode
