// traces/sha256.h - SHA-256 of bytes and files, for naming weights, tokenizers and configurations
// by their content. OpenSSL's implementation.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace redecode {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void add(std::span<const uint8_t> bytes);
  std::string hex();  // 64 digits; the object is done then

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::string sha256_hex(std::span<const uint8_t> bytes);
// Errors: missing, environment.
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace redecode
