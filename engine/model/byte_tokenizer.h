// engine/model/byte_tokenizer.h - ByteTokenizer: one token a byte, for models with random weights.
//
//   id              stands for
//   0 to 255        that byte
//   256             the beginning of a prompt; no text
//   257             the end of a text; no text
//   258 and above   one character, U+0100 + (id - 256); from 0xD800 on U+FFFD
//
// Text becomes bytes only, so encoding never makes an id above 256; models with random weights
// sample those as readily as bytes, and must still give text.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/text_codec.h"

namespace redecode {

class ByteTokenizer final : public TextCodec {
 public:
  static constexpr int32_t kBegin = 256, kEnd = 257;

  // Errors: usage below 258 tokens.
  explicit ByteTokenizer(uint32_t vocab);
  std::vector<int32_t> encode(std::string_view text) const override;
  std::string decode(int32_t previous, int32_t token) const override;
  int32_t end_token() const override { return kEnd; }
  uint32_t token_bytes() const override { return 1; }  // of those that encode makes

 private:
  uint32_t vocab_;
};

}  // namespace redecode
