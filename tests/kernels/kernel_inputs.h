// tests/kernels/kernel_inputs.h - inputs and comparisons shared by the kernel tests.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "engine/kernels/exec.h"
#include "engine/kernels/matrix.h"
#include "traces/random.h"

namespace redecode::testing {

inline std::vector<Isa> supported_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::plain, Isa::avx2, Isa::avx512}) {
    if (isa_supported(isa)) isas.push_back(isa);
  }
  return isas;
}

// In [-scale, scale).
inline std::vector<float> random_floats(size_t count, uint64_t seed, float scale = 1.0f) {
  RandomSequence random(seed);
  std::vector<float> out(count);
  for (float& v : out) v = (random.unit() * 2.0f - 1.0f) * scale;
  return out;
}

// Any bits: subnormals, infinities and NaN included.
inline std::vector<float> random_bit_floats(size_t count, uint64_t seed) {
  RandomSequence random(seed);
  std::vector<float> out(count);
  for (float& v : out) v = std::bit_cast<float>(static_cast<uint32_t>(random.next()));
  return out;
}

// Bits with every NaN made the same: its payload may follow the order of an instruction's operands.
inline uint32_t canonical_bits(float v) {
  return std::isnan(v) ? 0x7fc00000u : std::bit_cast<uint32_t>(v);
}

inline std::vector<uint32_t> canonical_bits(const std::vector<float>& values) {
  std::vector<uint32_t> out;
  out.reserve(values.size());
  for (const float v : values) out.push_back(canonical_bits(v));
  return out;
}

// Distance from a double reference in units of the last place of the nearest f32.
inline double ulp_error(float value, double reference) {
  const float nearest = static_cast<float>(reference);
  if (std::isnan(value) || std::isnan(nearest)) {
    return std::isnan(value) == std::isnan(nearest) ? 0.0 : 1e30;
  }
  if (std::isinf(value) || std::isinf(nearest)) return value == nearest ? 0.0 : 1e30;
  const float magnitude = std::max(std::fabs(nearest), std::numeric_limits<float>::min());
  const double ulp = std::ldexp(1.0, std::ilogb(magnitude) - 23);
  return std::fabs(double{value} - reference) / ulp;
}

struct OwnedMatrix {
  std::vector<uint32_t> words;
  Matrix view;
};

inline OwnedMatrix encode(DType dtype, uint32_t rows, uint32_t cols,
                          const std::vector<float>& values) {
  OwnedMatrix m;
  m.words.resize(matrix_bytes(dtype, rows, cols) / 4 + 1);
  std::byte* data = reinterpret_cast<std::byte*>(m.words.data());
  encode_matrix(dtype, rows, cols, values, data);
  m.view = {dtype, rows, cols, data};
  return m;
}

}  // namespace redecode::testing
