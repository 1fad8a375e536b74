// engine/kernels/convert.h - rounding between f32 and the small formats, written in integers.
//
// All round to nearest, ties to even. bf16 keeps NaN (quiet) and infinities. e4m3 (OCP FP8, no
// infinities) saturates at 448, NaN becomes 0x7f; e2m1 saturates at 6, NaN becomes 6 with its sign.
#pragma once
#include <bit>
#include <cstdint>

namespace redecode {

constexpr float f32_from_bf16(uint16_t v) { return std::bit_cast<float>(uint32_t{v} << 16); }
uint16_t bf16_from_f32(float v);
float f32_from_e4m3(uint8_t v);
uint8_t e4m3_from_f32(float v);
float f32_from_ue8m0(uint8_t v);      // 2^(v-127), exact (subnormal for 0); NaN for 255
float f32_from_e2m1(uint8_t nibble);  // low 4 bits
uint8_t e2m1_from_f32(float v);       // low 4 bits

}  // namespace redecode
