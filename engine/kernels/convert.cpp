#include "engine/kernels/convert.h"

#include "engine/kernels/dot_isa.h"

namespace redecode {
namespace {

// Shifts right by `shift` (1..31), rounding to nearest, ties to even.
uint32_t shift_round_even(uint32_t v, uint32_t shift) {
  return (v + ((1u << (shift - 1)) - 1) + ((v >> shift) & 1u)) >> shift;
}

constexpr float decode_e4m3(uint32_t v) {
  const uint32_t sign = (v & 0x80u) << 24;
  const uint32_t magnitude = v & 0x7fu;
  if (magnitude == 0x7fu) return std::bit_cast<float>(sign | 0x7fc00000u);
  if (magnitude >= 8) return std::bit_cast<float>(sign | ((magnitude << 20) + (120u << 23)));
  const float value = static_cast<float>(magnitude) * 0x1p-9f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
}

constexpr E4m3Table make_e4m3_table() {
  E4m3Table table{};
  for (uint32_t v = 0; v < 256; ++v) table.value[v] = decode_e4m3(v);
  return table;
}

}  // namespace

constinit const E4m3Table kE4m3 = make_e4m3_table();

uint16_t bf16_from_f32(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float f32_from_e4m3(uint8_t v) { return kE4m3.value[v]; }

uint8_t e4m3_from_f32(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  const uint32_t sign = (bits >> 24) & 0x80u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7f;
  if (magnitude >= 0x43e00000u) return static_cast<uint8_t>(sign | 0x7eu);  // >= 448
  const uint32_t exponent = magnitude >> 23;
  uint32_t code = 0;
  if (exponent >= 121) {  // normal: at least 2^-6
    code = shift_round_even(magnitude - (120u << 23), 20);
  } else if (exponent >= 117) {  // multiples of 2^-9; below 2^-10 all is 0
    const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    code = shift_round_even(mantissa, 141 - exponent);
  }
  return static_cast<uint8_t>(sign | (code > 0x7eu ? 0x7eu : code));
}

float f32_from_ue8m0(uint8_t v) {
  if (v == 255) return std::bit_cast<float>(0x7fc00000u);
  return std::bit_cast<float>(v == 0 ? 0x00400000u : uint32_t{v} << 23);
}

float f32_from_e2m1(uint8_t nibble) {
  const uint32_t sign = uint32_t{nibble & 8u} << 28;
  const uint32_t magnitude = nibble & 7u;
  if (magnitude >= 2) return std::bit_cast<float>(sign | ((magnitude << 22) + (126u << 23)));
  return std::bit_cast<float>(sign | (magnitude == 1 ? 0x3f000000u : 0u));
}

uint8_t e2m1_from_f32(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  const uint32_t sign = (bits >> 28) & 8u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x40c00000u) return static_cast<uint8_t>(sign | 7u);  // >= 6, NaN
  uint32_t code = 0;
  if (magnitude >= 0x3f800000u) {  // normal: at least 1
    code = shift_round_even(magnitude - (126u << 23), 22);
  } else if (magnitude > 0x3e800000u) {  // multiples of 0.5; 0.25 ties to 0, 0.75 to 1
    code = magnitude >= 0x3f400000u ? 2u : 1u;
  }
  return static_cast<uint8_t>(sign | (code > 7u ? 7u : code));
}

}  // namespace redecode
