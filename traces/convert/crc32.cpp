#include "traces/convert/crc32.h"

#include <array>

#include "traces/little_endian.h"

namespace redecode {
namespace {

constexpr uint32_t kPolynomial = 0xEDB88320u;
using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t t = 1; t < 8; ++t)
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[t - 1][byte];
      tables[t][byte] = (before >> 8) ^ tables[0][before & 0xFFu];
    }
  return tables;
}

constexpr Tables kTables = make_tables();

// A product of polynomials modulo the CRC's; bit 31 is the constant term.
constexpr uint32_t product(uint32_t a, uint32_t b) {
  uint32_t out = 0;
  for (int bit = 31; bit >= 0; --bit) {
    if (((a >> bit) & 1u) != 0) out ^= b;
    b = (b >> 1) ^ ((b & 1u) != 0 ? kPolynomial : 0);
  }
  return out;
}

}  // namespace

uint32_t crc32(const void* data, size_t size_bytes, uint32_t so_far) {
  const auto* at = static_cast<const uint8_t*>(data);
  uint32_t crc = ~so_far;
  for (; size_bytes >= 8; size_bytes -= 8, at += 8) {
    const uint64_t word = load_le<uint64_t>(at) ^ crc;
    crc = 0;
    for (size_t i = 0; i < 8; ++i) crc ^= kTables[7 - i][(word >> (8 * i)) & 0xFFu];
  }
  for (; size_bytes > 0; --size_bytes, ++at) crc = (crc >> 8) ^ kTables[0][(crc ^ *at) & 0xFFu];
  return ~crc;
}

uint32_t crc32_joined(uint32_t first, uint32_t second, uint64_t second_bytes) {
  uint32_t power = uint32_t{1} << 23;  // x^8: one byte
  uint32_t shift = uint32_t{1} << 31;  // 1
  for (uint64_t n = second_bytes; n != 0; n >>= 1) {
    if ((n & 1u) != 0) shift = product(shift, power);
    power = product(power, power);
  }
  return product(shift, first) ^ second;
}

}  // namespace redecode
