// engine/model/text_codec.h - TextCodec: text to the token ids of a model and back, whichever
// tokenizer it has.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace redecode {

// Safe to use from several threads at once.
class TextCodec {
 public:
  virtual ~TextCodec() = default;
  // Tokens of a prompt, with the token that begins one in front: never empty.
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  // Bytes of `token` after `previous` (-1: none); empty for tokens that only control, and for ids
  // outside the vocabulary. Characters may span tokens.
  virtual std::string decode(int32_t previous, int32_t token) const = 0;
  virtual int32_t end_token() const = 0;     // ends a text
  virtual uint32_t token_bytes() const = 0;  // of the longest token
};

// The tokenizer of a model as factory.h names it: the byte tokenizer for seeded models, the
// vocabulary file `path` for llama2c:PATH (empty: tok<vocab>.bin beside the checkpoint). Errors:
// missing, truncated, corrupt for the file; usage when a seeded model is given one, or its
// vocabulary is too small for bytes.
std::unique_ptr<TextCodec> make_text_codec(std::string_view model, uint32_t vocab,
                                           const std::string& path = {});

// "tok<vocab>.bin" beside a llama2.c checkpoint.
std::string default_tokenizer_file(const std::string& checkpoint, uint32_t vocab);

}  // namespace redecode
