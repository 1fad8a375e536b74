#include "engine/model/byte_tokenizer.h"

#include "traces/error.h"

namespace redecode {

ByteTokenizer::ByteTokenizer(uint32_t vocab) : vocab_(vocab) {
  if (vocab <= static_cast<uint32_t>(kEnd))
    throw Error(ErrorCode::usage, "a vocabulary of " + std::to_string(vocab) +
                                      " tokens is too small for bytes; give a tokenizer file");
}

std::vector<int32_t> ByteTokenizer::encode(std::string_view text) const {
  std::vector<int32_t> out = {kBegin};
  out.reserve(text.size() + 1);
  for (const char byte : text) out.push_back(static_cast<uint8_t>(byte));
  return out;
}

std::string ByteTokenizer::decode(int32_t, int32_t token) const {
  if (token < 0 || static_cast<uint32_t>(token) >= vocab_ || token == kBegin || token == kEnd)
    return {};
  if (token < kBegin) return std::string(1, static_cast<char>(token));
  auto code = static_cast<uint32_t>(token - kBegin) + 0x100;
  if (code >= 0xD800) code = 0xFFFD;
  std::string out;
  if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
  } else {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
  }
  out += static_cast<char>(0x80 | (code & 0x3F));
  return out;
}

}  // namespace redecode
