#include "compare/rows.h"

#include <algorithm>
#include <cstring>

#include "compare/ulp.h"
#include "traces/check.h"

namespace redecode {
namespace {

// Elements looked at together: equal blocks cost one memcmp, others a loop without branches.
constexpr uint64_t kBlockElements = 1024;

// `distance(i)` is called for elements of blocks in which `same_block(begin, end)` is false.
template <class SameBlock, class Distance>
std::optional<ArrayDifference> scan(uint64_t count, uint32_t max_ulps, const SameBlock& same_block,
                                    const Distance& distance) {
  ArrayDifference out;
  for (uint64_t begin = 0; begin < count; begin += kBlockElements) {
    const uint64_t end = std::min(begin + kBlockElements, count);
    if (same_block(begin, end)) continue;
    uint32_t differing = 0, largest = 0;
    for (uint64_t i = begin; i < end; ++i) {
      const uint32_t ulps = distance(i);
      differing += ulps > max_ulps;
      largest = std::max(largest, ulps);
    }
    if (out.count == 0 && differing != 0)
      for (out.first = begin; distance(out.first) <= max_ulps;) ++out.first;
    out.count += differing;
    out.largest_ulps = std::max(out.largest_ulps, largest);
  }
  if (out.count == 0) return std::nullopt;
  return out;
}

}  // namespace

bool same_f32(std::span<const float> expected, std::span<const float> found) {
  REDECODE_CHECK_OP(expected.size(), ==, found.size());
  return expected.empty() || std::memcmp(expected.data(), found.data(), expected.size_bytes()) == 0;
}

std::optional<ArrayDifference> compare_f32(std::span<const float> expected,
                                           std::span<const float> found, uint32_t max_ulps) {
  REDECODE_CHECK_OP(expected.size(), ==, found.size());
  return scan(
      expected.size(), max_ulps,
      [&](uint64_t begin, uint64_t end) {
        return same_f32(expected.subspan(begin, end - begin), found.subspan(begin, end - begin));
      },
      [&](uint64_t i) { return ulp_distance(expected[i], found[i]); });
}

uint32_t element_bits(std::span<const uint8_t> bytes, uint64_t index, uint32_t element_size_bytes) {
  REDECODE_CHECK(element_size_bytes == 1 || element_size_bytes == 2 || element_size_bytes == 4);
  REDECODE_CHECK_OP(index, <, bytes.size() / element_size_bytes);
  const uint8_t* at = bytes.data() + index * element_size_bytes;
  uint32_t bits = 0;
  for (uint32_t i = 0; i < element_size_bytes; ++i) bits |= uint32_t{at[i]} << (8 * i);
  return bits;
}

std::optional<ArrayDifference> compare_elements(std::span<const uint8_t> expected,
                                                std::span<const uint8_t> found,
                                                uint32_t element_size_bytes) {
  REDECODE_CHECK_OP(expected.size(), ==, found.size());
  if (expected.empty()) return std::nullopt;
  return scan(
      expected.size() / element_size_bytes, 0,
      [&](uint64_t begin, uint64_t end) {
        const uint64_t offset_bytes = begin * element_size_bytes;
        return std::memcmp(expected.data() + offset_bytes, found.data() + offset_bytes,
                           (end - begin) * element_size_bytes) == 0;
      },
      [&](uint64_t i) {
        return ulp_distance_bits(element_bits(expected, i, element_size_bytes),
                                 element_bits(found, i, element_size_bytes), element_size_bytes);
      });
}

}  // namespace redecode
