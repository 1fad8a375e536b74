#include "traces/digest.h"

#include <xxhash.h>

#include <cstdio>

namespace redecode {

Digest digest_bytes(const void* data, size_t size_bytes, Digest seed) {
  return XXH3_64bits_withSeed(data, size_bytes, seed);
}

Digest combine(Digest a, Digest b) {
  const Digest pair[2] = {a, b};
  return digest_bytes(pair, sizeof pair);
}

std::string digest_hex(Digest digest) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
  return text;
}

}  // namespace redecode
