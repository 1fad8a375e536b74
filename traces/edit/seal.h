// traces/edit/seal.h - Seal: bytes that only who has the key can read, or change unnoticed.
//
// AES-256-GCM by OpenSSL. The nonce is the first 96 bits of HMAC-SHA256(key, label and plaintext):
// equal bytes under equal labels give equal text, and no nonce is used for two plaintexts. Text:
// base64 of nonce, ciphertext and tag. The label is authenticated: a piece moved to another place
// does not open.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redecode {

using SealKey = std::array<uint8_t, 32>;

// 64 hex digits (line ends around them do not count) or 32 raw bytes. Errors: missing, environment;
// usage, saying what a key is and how to make one.
SealKey load_seal_key(const std::filesystem::path& path);

std::string seal(const SealKey& key, std::string_view label, std::span<const uint8_t> plain);
// Nothing when the key is another one, or label or text were changed.
std::optional<std::vector<uint8_t>> unseal(const SealKey& key, std::string_view label,
                                           std::string_view sealed);

// HMAC-SHA256.
std::array<uint8_t, 32> keyed_hash(std::span<const uint8_t> key, std::string_view label,
                                   std::span<const uint8_t> bytes);

}  // namespace redecode
