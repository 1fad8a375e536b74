#include "cli/content_hashes.h"

#include <filesystem>
#include <span>
#include <string_view>

#include "engine/model/byte_tokenizer.h"
#include "engine/model/text_codec.h"
#include "traces/digest.h"
#include "traces/sha256.h"

namespace redecode {
namespace {

constexpr std::string_view kCheckpoint = "llama2c:";

std::string sha256_of_text(const std::string& text) {
  return sha256_hex({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

std::string config_text(const ModelIdentity& identity) {
  return "redecode configuration 1\nfamily " + identity.family + "\nvocab " +
         std::to_string(identity.vocab) + "\nlayers " + std::to_string(identity.layers) +
         "\ndigest " + digest_hex(identity.config_digest) + "\n";
}

std::string weights_text(const ModelIdentity& identity) {
  return "redecode weights 1\nconfiguration " + digest_hex(identity.config_digest) + "\ndigest " +
         digest_hex(identity.weights_digest) + "\n";
}

std::string tokenizer_text(const ModelIdentity& identity) {
  return "redecode byte tokenizer 1\nvocab " + std::to_string(identity.vocab) + "\nbegin " +
         std::to_string(ByteTokenizer::kBegin) + "\nend " + std::to_string(ByteTokenizer::kEnd) +
         "\n";
}

}  // namespace

void add_content_hashes(const std::string& model, const std::string& tokenizer,
                        ModelIdentity& identity) {
  identity.config_sha256 = sha256_of_text(config_text(identity));
  if (!model.starts_with(kCheckpoint)) {
    identity.weights_sha256 = sha256_of_text(weights_text(identity));
    identity.tokenizer_sha256 = sha256_of_text(tokenizer_text(identity));
    return;
  }
  const std::string checkpoint = model.substr(kCheckpoint.size());
  identity.weights_sha256 = sha256_of_file(checkpoint);
  const std::string file =
      tokenizer.empty() ? default_tokenizer_file(checkpoint, identity.vocab) : tokenizer;
  if (!tokenizer.empty() || std::filesystem::exists(file))
    identity.tokenizer_sha256 = sha256_of_file(file);
}

}  // namespace redecode
