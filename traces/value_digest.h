// traces/value_digest.h - ValueDigest: a digest of values given one by one, never of their memory.
#pragma once
#include <bit>
#include <concepts>
#include <cstdint>
#include <vector>

#include "traces/digest.h"
#include "traces/little_endian.h"

namespace redecode {

class ValueDigest {
 public:
  // Every integer counts as 64 bits, every float as its 32 bits.
  template <std::integral I>
  void add(I value) {
    words_.push_back(static_cast<uint64_t>(value));
  }
  void add(float value) { words_.push_back(std::bit_cast<uint32_t>(value)); }

  Digest finish() {
    std::vector<uint8_t> bytes(words_.size() * 8);
    for (size_t i = 0; i < words_.size(); ++i) store_le<uint64_t>(bytes.data() + 8 * i, words_[i]);
    return digest_bytes(bytes.data(), bytes.size());
  }

 private:
  std::vector<uint64_t> words_;
};

}  // namespace redecode
