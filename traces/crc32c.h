// traces/crc32c.h - CRC-32C (Castagnoli, reflected 0x82F63B78), as in iSCSI and ext4; about 2 GB/s.
#pragma once
#include <cstddef>
#include <cstdint>

namespace redecode {

// crc32c("123456789") is 0xE3069283. To continue over a second range, pass the result so far.
uint32_t crc32c(const void* data, size_t size_bytes, uint32_t so_far = 0);

}  // namespace redecode
