// compare/ulp.h - how far apart two stored numbers are, in units in the last place.
//
// A number's bits are mapped to an integer that grows with the number; the distance is the
// difference of the integers. So neighbours are 1 apart, -0 and +0 are 1 apart, and 0 means equal
// bits and nothing else. One NaN against a number is kFarUlps. Two NaNs with different bits are 1
// apart: they are not the same bits, and no number lies between them.
#pragma once
#include <bit>
#include <cstdint>
#include <string>

namespace redecode {

inline constexpr uint32_t kFarUlps = UINT32_MAX;

inline uint32_t ulp_distance(float a, float b);
constexpr uint32_t ulp_distance_f32_bits(uint32_t a, uint32_t b);
uint32_t ulp_distance_bf16(uint16_t a, uint16_t b);
// OCP FP8 e4m3: no infinities, NaN is 0x7f and 0xff.
uint32_t ulp_distance_e4m3(uint8_t a, uint8_t b);
// By element size: 4 is f32, 2 is bf16, 1 is e4m3. Other sizes fail a CHECK.
uint32_t ulp_distance_bits(uint32_t a, uint32_t b, uint32_t element_size_bytes);

// The float that the bits stand for, by element size as above.
float float_of_bits(uint32_t bits, uint32_t element_size_bytes);

// Nine significant digits, enough to read the same bits back; "nan", "inf", "-inf". Four-byte
// elements whose float is denormal are most likely integers (token ids, top-k indices), and are
// written "denormal (as i32: 42)".
std::string bits_text(uint32_t bits, uint32_t element_size_bytes);

namespace detail {
// Grows with the number that `bits` stand for; one apart for neighbours.
constexpr uint32_t ordered_bits(uint32_t bits, uint32_t sign_bit) {
  return (bits & sign_bit) != 0 ? (2 * sign_bit - 1 - bits) : (bits | sign_bit);
}
static_assert(ordered_bits(0x80000000u, 0x80000000u) + 1 == ordered_bits(0, 0x80000000u));
static_assert(ordered_bits(0x80u, 0x80u) == 0x7fu && ordered_bits(0xffu, 0x80u) == 0);

// `infinity` is the largest magnitude that is not a NaN. Without branches, so that loops vectorise.
constexpr uint32_t ulp_distance_of(uint32_t a, uint32_t b, uint32_t sign_bit, uint32_t infinity) {
  const uint32_t a_nan = (a & (sign_bit - 1)) > infinity, b_nan = (b & (sign_bit - 1)) > infinity;
  const uint32_t x = ordered_bits(a, sign_bit), y = ordered_bits(b, sign_bit);
  const uint32_t between = x > y ? x - y : y - x;
  const uint32_t unequal = a_nan + b_nan == 2 ? 1 : a_nan + b_nan == 1 ? kFarUlps : between;
  return a == b ? 0 : unequal;
}
}  // namespace detail

constexpr uint32_t ulp_distance_f32_bits(uint32_t a, uint32_t b) {
  return detail::ulp_distance_of(a, b, 0x80000000u, 0x7f800000u);
}

inline uint32_t ulp_distance(float a, float b) {
  return ulp_distance_f32_bits(std::bit_cast<uint32_t>(a), std::bit_cast<uint32_t>(b));
}

}  // namespace redecode
