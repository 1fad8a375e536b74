#include "engine/model/text_codec.h"

#include <algorithm>
#include <filesystem>

#include "engine/model/byte_tokenizer.h"
#include "engine/model/tokenizer.h"
#include "traces/error.h"

namespace redecode {
namespace {

constexpr std::string_view kCheckpoint = "llama2c:";

// A llama2.c vocabulary: 0 unknown, 1 begins a text and so ends the one before, 2 ends one.
class FileCodec final : public TextCodec {
 public:
  FileCodec(const std::string& path, uint32_t vocab) : tokenizer_(path, vocab), vocab_(vocab) {
    for (uint32_t token = 0; token < vocab; ++token)
      token_bytes_ = std::max(
          token_bytes_,
          static_cast<uint32_t>(tokenizer_.decode(-1, static_cast<int32_t>(token)).size()));
  }
  std::vector<int32_t> encode(std::string_view text) const override {
    return tokenizer_.encode(text, true);
  }
  std::string decode(int32_t previous, int32_t token) const override {
    if (token < kFirstText || static_cast<uint32_t>(token) >= vocab_) return {};
    return tokenizer_.decode(previous, token);
  }
  int32_t end_token() const override { return kBegin; }
  uint32_t token_bytes() const override { return token_bytes_; }

 private:
  static constexpr int32_t kBegin = 1, kFirstText = 3;
  Tokenizer tokenizer_;
  uint32_t vocab_;
  uint32_t token_bytes_ = 1;
};

}  // namespace

std::string default_tokenizer_file(const std::string& checkpoint, uint32_t vocab) {
  const std::filesystem::path folder = std::filesystem::path(checkpoint).parent_path();
  return (folder / ("tok" + std::to_string(vocab) + ".bin")).string();
}

std::unique_ptr<TextCodec> make_text_codec(std::string_view model, uint32_t vocab,
                                           const std::string& path) {
  if (model.starts_with(kCheckpoint)) {
    const std::string checkpoint(model.substr(kCheckpoint.size()));
    return std::make_unique<FileCodec>(
        path.empty() ? default_tokenizer_file(checkpoint, vocab) : path, vocab);
  }
  if (!path.empty())
    throw Error(ErrorCode::usage, "only llama2c models take a tokenizer file; leave it out", path);
  return std::make_unique<ByteTokenizer>(vocab);
}

}  // namespace redecode
