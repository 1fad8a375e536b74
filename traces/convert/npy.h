// traces/convert/npy.h - the head of a NumPy array file (.npy, version 1.0), little-endian, C
// order.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace redecode {

// `type` as NumPy writes it: "<f4", "<u8". The data follows at once, at a multiple of 64 bytes.
std::string npy_header(std::string_view type, std::span<const uint64_t> shape);

}  // namespace redecode
