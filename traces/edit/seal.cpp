#include "traces/edit/seal.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>

#include "traces/check.h"
#include "traces/error.h"

namespace redecode {
namespace {

constexpr size_t kNonceBytes = 12, kTagBytes = 16;

struct FreeContext {
  void operator()(EVP_CIPHER_CTX* c) const { EVP_CIPHER_CTX_free(c); }
};
using Context = std::unique_ptr<EVP_CIPHER_CTX, FreeContext>;

Context new_context() {
  Context context(EVP_CIPHER_CTX_new());
  REDECODE_CHECK(context != nullptr);
  return context;
}

const uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

std::string base64(std::span<const uint8_t> bytes) {
  std::string out(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), bytes.data(),
                                   static_cast<int>(bytes.size()));
  out.resize(static_cast<size_t>(size));
  return out;
}

std::optional<std::vector<uint8_t>> from_base64(std::string_view text) {
  if (text.size() % 4 != 0 || text.empty() || text.size() > (size_t{1} << 30)) return std::nullopt;
  std::vector<uint8_t> out(text.size() / 4 * 3);
  const int size = EVP_DecodeBlock(out.data(), bytes_of(text), static_cast<int>(text.size()));
  if (size < 0) return std::nullopt;
  const auto padding = static_cast<size_t>(std::ranges::count(text.substr(text.size() - 2), '='));
  out.resize(static_cast<size_t>(size) - padding);
  return out;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::optional<SealKey> key_of_hex(std::string text) {
  std::erase_if(text, [](char c) { return c == '\n' || c == '\r' || c == ' '; });
  SealKey key{};
  if (text.size() != 2 * key.size()) return std::nullopt;
  for (size_t i = 0; i < key.size(); ++i) {
    const int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    key[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return key;
}

}  // namespace

std::array<uint8_t, 32> keyed_hash(std::span<const uint8_t> key, std::string_view label,
                                   std::span<const uint8_t> bytes) {
  std::vector<uint8_t> message(label.begin(), label.end());
  message.push_back(0);
  message.insert(message.end(), bytes.begin(), bytes.end());
  std::array<uint8_t, 32> out{};
  unsigned size = 0;
  REDECODE_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), message.data(),
                      message.size(), out.data(), &size) != nullptr);
  REDECODE_CHECK_OP(size_t{size}, ==, out.size());
  return out;
}

SealKey load_seal_key(const std::filesystem::path& path) {
  constexpr size_t kMostBytes = 256;
  if (!std::filesystem::exists(path)) throw Error(ErrorCode::missing, "no such key file", path);
  std::ifstream in(path, std::ios::binary);
  std::string text(kMostBytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad() || !in.is_open()) throw Error(ErrorCode::environment, "cannot be read", path);
  text.resize(static_cast<size_t>(in.gcount()));
  if (const auto key = key_of_hex(text)) return *key;
  SealKey key{};
  if (text.size() != key.size())
    throw Error(ErrorCode::usage,
                "a key is 64 hex digits or 32 bytes; make one with: openssl rand -hex 32", path);
  std::ranges::copy(text, key.begin());
  return key;
}

std::string seal(const SealKey& key, std::string_view label, std::span<const uint8_t> plain) {
  const auto hash = keyed_hash(key, label, plain);
  std::vector<uint8_t> out(kNonceBytes + plain.size() + kTagBytes);
  std::copy_n(hash.begin(), kNonceBytes, out.begin());
  const Context context = new_context();
  int size = 0;
  REDECODE_CHECK(
      EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key.data(), out.data()) == 1);
  REDECODE_CHECK(EVP_EncryptUpdate(context.get(), nullptr, &size, bytes_of(label),
                                   static_cast<int>(label.size())) == 1);
  REDECODE_CHECK(EVP_EncryptUpdate(context.get(), out.data() + kNonceBytes, &size, plain.data(),
                                   static_cast<int>(plain.size())) == 1);
  REDECODE_CHECK(EVP_EncryptFinal_ex(context.get(), out.data() + kNonceBytes + size, &size) == 1);
  REDECODE_CHECK(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes,
                                     out.data() + kNonceBytes + plain.size()) == 1);
  return base64(out);
}

std::optional<std::vector<uint8_t>> unseal(const SealKey& key, std::string_view label,
                                           std::string_view sealed) {
  auto bytes = from_base64(sealed);
  if (!bytes || bytes->size() < kNonceBytes + kTagBytes) return std::nullopt;
  const size_t size_bytes = bytes->size() - kNonceBytes - kTagBytes;
  std::vector<uint8_t> plain(size_bytes + 1);
  const Context context = new_context();
  int size = 0;
  uint8_t* const tag = bytes->data() + kNonceBytes + size_bytes;
  const bool opened =
      EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key.data(), bytes->data()) ==
          1 &&
      EVP_DecryptUpdate(context.get(), nullptr, &size, bytes_of(label),
                        static_cast<int>(label.size())) == 1 &&
      EVP_DecryptUpdate(context.get(), plain.data(), &size, bytes->data() + kNonceBytes,
                        static_cast<int>(size_bytes)) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, tag) == 1 &&
      EVP_DecryptFinal_ex(context.get(), plain.data() + size, &size) == 1;
  if (!opened) return std::nullopt;
  plain.resize(size_bytes);
  return plain;
}

}  // namespace redecode
