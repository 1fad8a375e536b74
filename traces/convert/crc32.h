// traces/convert/crc32.h - CRC-32 as zip files have it (reflected 0xEDB88320); about 1 GB/s.
#pragma once
#include <cstddef>
#include <cstdint>

namespace redecode {

// crc32("123456789") is 0xCBF43926. To continue over a second range, pass the result so far.
uint32_t crc32(const void* data, size_t size_bytes, uint32_t so_far = 0);

// The CRC of two ranges, one behind the other, from those of each. Cost: O(log second_bytes).
uint32_t crc32_joined(uint32_t first, uint32_t second, uint64_t second_bytes);

}  // namespace redecode
