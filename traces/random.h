// traces/random.h - the only sources of randomness: stateless, counter-based, equal on every
// machine.
#pragma once
#include <array>
#include <cstdint>

namespace redecode {

// Philox4x32-10 (Salmon et al., SC 2011): 128 random bits for a 128-bit counter under a 64-bit key.
constexpr std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_low,
                                         uint64_t counter_high = 0) {
  std::array<uint32_t, 4> c = {
      static_cast<uint32_t>(counter_low), static_cast<uint32_t>(counter_low >> 32),
      static_cast<uint32_t>(counter_high), static_cast<uint32_t>(counter_high >> 32)};
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

// 64 random bits for (key, counter).
constexpr uint64_t random_bits(uint64_t key, uint64_t counter_low, uint64_t counter_high = 0) {
  const auto r = philox(key, counter_low, counter_high);
  return (uint64_t{r[1]} << 32) | r[0];
}

// An integer in [0, bound), bound > 0; multiply-shift, so the bias is below bound / 2^64.
constexpr uint64_t random_below(uint64_t bits, uint64_t bound) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(bits) * bound) >> 64);
}

// A float in [0, 1) with 24 random bits.
constexpr float random_unit(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

// A sequence of draws for code that wants the next number: the counter is the whole state.
class RandomSequence {
 public:
  explicit constexpr RandomSequence(uint64_t key, uint64_t stream = 0)
      : key_(key), stream_(stream) {}
  constexpr uint64_t next() { return random_bits(key_, counter_++, stream_); }
  constexpr uint64_t below(uint64_t bound) { return random_below(next(), bound); }
  constexpr float unit() { return random_unit(static_cast<uint32_t>(next() >> 32)); }

 private:
  uint64_t key_, stream_, counter_ = 0;
};

}  // namespace redecode
