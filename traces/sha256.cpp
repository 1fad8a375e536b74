#include "traces/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <vector>

#include "traces/byte_source.h"
#include "traces/check.h"

namespace redecode {

struct Sha256::Impl {
  Impl() : context(EVP_MD_CTX_new()) {
    REDECODE_CHECK(context != nullptr);
    REDECODE_CHECK(EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1);
  }
  ~Impl() { EVP_MD_CTX_free(context); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  EVP_MD_CTX* context;
};

Sha256::Sha256() : impl_(std::make_unique<Impl>()) {}
Sha256::~Sha256() = default;

void Sha256::add(std::span<const uint8_t> bytes) {
  REDECODE_CHECK(EVP_DigestUpdate(impl_->context, bytes.data(), bytes.size()) == 1);
}

std::string Sha256::hex() {
  std::array<uint8_t, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  REDECODE_CHECK(EVP_DigestFinal_ex(impl_->context, digest.data(), &size) == 1);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (unsigned i = 0; i < size; ++i) {
    out += kDigits[digest[i] >> 4];
    out += kDigits[digest[i] & 15];
  }
  return out;
}

std::string sha256_hex(std::span<const uint8_t> bytes) {
  Sha256 sha;
  sha.add(bytes);
  return sha.hex();
}

std::string sha256_of_file(const std::filesystem::path& path) {
  const std::unique_ptr<ByteSource> source = open_file(path);
  std::vector<uint8_t> buffer(size_t{1} << 20);
  Sha256 sha;
  for (uint64_t at = 0;;) {
    const size_t count = source->read(at, buffer);
    if (count == 0) return sha.hex();
    sha.add(std::span<const uint8_t>(buffer).first(count));
    at += count;
  }
}

}  // namespace redecode
