// tests/kernels/paths.h - what the kernel tests share: every path, random inputs, bit comparison.
#pragma once
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/kernels/exec.h"
#include "traces/random.h"

namespace redecode::test {

inline std::vector<Isa> supported_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::plain, Isa::avx2, Isa::avx512}) {
    if (isa_supported(isa)) isas.push_back(isa);
  }
  return isas;
}

// Uniform in [-spread, spread).
inline std::vector<float> random_floats(uint64_t seed, size_t count, float spread = 1.0f) {
  RandomSequence random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = (2.0f * random.unit() - 1.0f) * spread;
  return values;
}

// The bits of each value; every NaN is one value, for its payload is no part of the contract.
inline std::vector<uint32_t> bits_of(std::span<const float> values) {
  std::vector<uint32_t> bits;
  bits.reserve(values.size());
  for (const float value : values) {
    bits.push_back(value != value ? 0x7fc00000u : std::bit_cast<uint32_t>(value));
  }
  return bits;
}

// Runs `body(exec)` on every path and thread count; body returns f32 results, which must all have
// the bits of the first. Returns a description of the first path that differs, or "".
template <class Body>
std::string path_that_differs(Body body) {
  std::vector<uint32_t> expected;
  for (const Isa isa : supported_isas()) {
    for (const int threads : {1, 2, 3}) {
      Exec exec(threads, isa);
      const std::vector<uint32_t> bits = bits_of(body(exec));
      if (expected.empty()) expected = bits;
      if (bits != expected) {
        return std::string(isa_name(isa)) + ", " + std::to_string(threads) + " threads";
      }
    }
  }
  return {};
}

inline double largest_error(std::span<const float> got, std::span<const double> expected) {
  double error = got.size() == expected.size() ? 0.0 : 1e30;
  for (size_t i = 0; i < got.size() && i < expected.size(); ++i) {
    const double difference = static_cast<double>(got[i]) - expected[i];
    if (!(difference <= error)) error = difference;
    if (-difference > error) error = -difference;
  }
  return error;
}

}  // namespace redecode::test
