// traces/little_endian.h - integers to and from little-endian bytes, on any machine.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace redecode {

template <std::unsigned_integral T>
constexpr void store_le(uint8_t* at, T value) {
  for (size_t i = 0; i < sizeof(T); ++i)
    at[i] = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i));
}

template <std::unsigned_integral T>
constexpr T load_le(const uint8_t* at) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= uint64_t{at[i]} << (8 * i);
  return static_cast<T>(value);
}

}  // namespace redecode
