// engine/model/tokenizer.h - Tokenizer: token ids to text and back, for a llama2.c vocabulary file.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redecode {

class Tokenizer {
 public:
  // Reads `vocab` entries (i32 longest length, then f32 score, i32 length, bytes). Errors: missing,
  // truncated, corrupt.
  Tokenizer(const std::string& path, uint32_t vocab);

  // Byte-pair encoding by best score, as llama2.c does, with the leading space and, if asked, BOS
  // (1) in front.
  std::vector<int32_t> encode(std::string_view text, bool bos) const;
  // Text of `token` after `previous`: a leading space is dropped after BOS, <0xNN> is that byte.
  std::string decode(int32_t previous, int32_t token) const;

 private:
  struct Entry {
    std::string text;
    float score = 0.0f;
  };
  int32_t find(std::string_view text) const;

  std::vector<Entry> entries_;
  std::vector<int32_t> sorted_;  // entry indices by text
};

}  // namespace redecode
