// traces/digest.h - 64-bit content digests (XXH3), equal on every machine for equal bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace redecode {

using Digest = uint64_t;

Digest digest_bytes(const void* data, size_t size_bytes, Digest seed = 0);
inline Digest digest_text(std::string_view text, Digest seed = 0) {
  return digest_bytes(text.data(), text.size(), seed);
}
template <class T>
Digest digest_span(std::span<const T> values, Digest seed = 0) {
  static_assert(std::is_trivially_copyable_v<T>);
  return digest_bytes(values.data(), values.size_bytes(), seed);
}
// Order-sensitive: combine(a, b) != combine(b, a).
Digest combine(Digest a, Digest b);
// 16 lower-case hex digits.
std::string digest_hex(Digest digest);

}  // namespace redecode
