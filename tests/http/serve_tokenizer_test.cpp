// Tokenizers of the endpoint: bytes for seeded models, a vocabulary file for llama2.c checkpoints.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "engine/model/byte_tokenizer.h"
#include "engine/model/text_codec.h"
#include "traces/error.h"
#include "traces/utf8.h"

namespace redecode {

TEST_CASE("Byte tokenizer: text there and back, and a text for every token") {
  const ByteTokenizer codec(512);
  const std::string text = std::string("a\0\xC3\xA9", 4) + "\xFF";
  const auto tokens = codec.encode(text);
  REQUIRE(tokens.size() == 6);
  CHECK(tokens[0] == ByteTokenizer::kBegin);
  std::string back;
  for (const int32_t token : tokens) back += codec.decode(-1, token);
  CHECK(back == text);
  CHECK(codec.encode("") == std::vector<int32_t>{ByteTokenizer::kBegin});
  CHECK(codec.decode(-1, ByteTokenizer::kEnd).empty());
  CHECK(codec.decode(-1, 258) == "\xC4\x82");
  CHECK(codec.decode(-1, 512).empty());
  CHECK(codec.decode(-1, -1).empty());
}

TEST_CASE("Byte tokenizer: every id above 255 is a whole character") {
  const ByteTokenizer codec(70000);
  for (int32_t token = 258; token < 70000; ++token) {
    const std::string text = codec.decode(-1, token);
    if (text.empty() || utf8_length(text, 0) != text.size()) {
      INFO(token);
      CHECK(utf8_length(text, 0) == text.size());
    }
  }
  CHECK_THROWS_AS(ByteTokenizer(257), Error);
}

TEST_CASE("Text codecs: a seeded model takes no file, a checkpoint needs one") {
  CHECK(make_text_codec("llama-small", 512)->end_token() == ByteTokenizer::kEnd);
  CHECK_THROWS_AS(make_text_codec("llama-small", 512, "tok512.bin"), Error);
  CHECK_THROWS_AS(make_text_codec("llama2c:nowhere/model.bin", 512), Error);
}

TEST_CASE("Text codec of a checkpoint: text there and back") {
  const std::filesystem::path checkpoint =
      std::filesystem::path(REDECODE_SOURCE_DIR) / "../shared/data/model/stories260K.bin";
  if (!std::filesystem::exists(checkpoint)) SKIP("no checkpoint in ../shared/data/model");
  const auto codec = make_text_codec("llama2c:" + checkpoint.string(), 512);
  for (const std::string text :
       {"Once upon a time, there was a little girl.", "x", "\xE2\x82\xAC and \xF0\x9F\x98\x80"}) {
    const auto tokens = codec->encode(text);
    CHECK(tokens.at(0) == 1);
    CHECK(tokens.size() <= text.size() + 2);
    std::string back;
    for (size_t i = 1; i < tokens.size(); ++i) back += codec->decode(tokens[i - 1], tokens[i]);
    CHECK(back == text);
  }
  CHECK(codec->encode("Once upon a time").size() < 10);
  CHECK(codec->decode(-1, 1).empty());
  CHECK(codec->decode(-1, 2).empty());
  CHECK(codec->token_bytes() > 3);
}

}  // namespace redecode
