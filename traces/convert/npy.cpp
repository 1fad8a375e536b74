#include "traces/convert/npy.h"

namespace redecode {
namespace {

constexpr std::string_view kMagic{"\x93NUMPY\x01\x00", 8};
constexpr size_t kAlignment = 64;

}  // namespace

std::string npy_header(std::string_view type, std::span<const uint64_t> shape) {
  std::string text = "{'descr': '";
  text += type;
  text += "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : " ") + std::to_string(shape[i]);
    if (i + 1 < shape.size() || shape.size() == 1) text += ',';
  }
  text += "), }";
  const size_t prefix = kMagic.size() + 2;
  text.append((kAlignment - (prefix + text.size() + 1) % kAlignment) % kAlignment, ' ');
  text += '\n';
  std::string out(kMagic);
  out += static_cast<char>(text.size() & 0xFF);
  out += static_cast<char>(text.size() >> 8);
  return out + text;
}

}  // namespace redecode
