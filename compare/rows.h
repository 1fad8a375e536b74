// compare/rows.h - comparing two arrays of stored numbers: equal first, details only where not.
//
// Equal arrays cost one memcmp, at memory speed: a row pair of 129,280 f32 reads 1.03 MB.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

namespace redecode {

struct ArrayDifference {
  uint64_t first = 0;         // index of the first element that differs by more than `max_ulps`
  uint64_t count = 0;         // elements that do
  uint32_t largest_ulps = 0;  // over all elements
  bool operator==(const ArrayDifference&) const = default;
};

// Equal sizes (CHECK) and equal bits: one memcmp.
bool same_f32(std::span<const float> expected, std::span<const float> found);

// nullopt when no element differs by more than `max_ulps`; 0 asks for equal bits.
// Both arrays have equal sizes (CHECK).
std::optional<ArrayDifference> compare_f32(std::span<const float> expected,
                                           std::span<const float> found, uint32_t max_ulps = 0);

// The same, bit for bit, over raw bytes of elements of 1, 2 or 4 bytes (little-endian). A tail
// shorter than an element is left out. Both arrays have equal sizes (CHECK).
std::optional<ArrayDifference> compare_elements(std::span<const uint8_t> expected,
                                                std::span<const uint8_t> found,
                                                uint32_t element_size_bytes);

// Element `index` of such bytes, zero-extended. Within bounds (CHECK).
uint32_t element_bits(std::span<const uint8_t> bytes, uint64_t index, uint32_t element_size_bytes);

}  // namespace redecode
