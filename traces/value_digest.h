// traces/value_digest.h - ValueDigest: a digest of values given one by one, never of their memory.
#pragma once
#include <bit>
#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

#include "traces/digest.h"
#include "traces/little_endian.h"
#include "traces/step.h"

namespace redecode {

class ValueDigest {
 public:
  // Every integer counts as 64 bits, every float as its 32 bits.
  template <std::integral I>
  void add(I value) {
    words_.push_back(static_cast<uint64_t>(value));
  }
  void add(float value) { words_.push_back(std::bit_cast<uint32_t>(value)); }

  // Room for so many integers at once, to be filled before the next call.
  std::span<uint64_t> extend(size_t values) {
    words_.resize(words_.size() + values);
    return std::span(words_).last(values);
  }
  void reserve(size_t values) { words_.reserve(values); }
  // The values count as little-endian; the object can be used again then.
  Digest finish() {
    if constexpr (std::endian::native != std::endian::little)
      for (uint64_t& word : words_)
        store_le<uint64_t>(reinterpret_cast<uint8_t*>(&word), uint64_t{word});
    const Digest digest = digest_bytes(words_.data(), words_.size() * 8);
    words_.clear();
    return digest;
  }

 private:
  std::vector<uint64_t> words_;
};

// As digest_step of trace_file.h; `scratch` keeps its memory for the next one.
Digest digest_step(const Step& step, ValueDigest& scratch);

}  // namespace redecode
