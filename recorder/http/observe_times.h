// recorder/http/observe_times.h - DurationHistogram: percentiles of any number of durations in
// little memory.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace redecode {

// Counts in buckets of at most 1.6 % width; exact below 128 us.
class DurationHistogram {
 public:
  void add(uint64_t duration_us) {
    ++counts_[bucket_of(duration_us)];
    ++count_;
    most_us_ = std::max(most_us_, duration_us);
  }
  uint64_t count() const { return count_; }
  uint64_t most_us() const { return most_us_; }
  // The least duration that a share of at least `share` does not pass, rounded up to its bucket;
  // 0 of none.
  uint64_t at(double share) const {
    const auto wanted = static_cast<uint64_t>(std::ceil(share * static_cast<double>(count_)));
    uint64_t seen = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen != 0 && seen >= wanted) return std::min(most_us_, last_of(i));
    }
    return 0;
  }

 private:
  static constexpr unsigned kBits = 6;  // kept below the leading one
  static size_t bucket_of(uint64_t value) {
    if (value < (2u << kBits)) return value;
    const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - kBits - 1;
    return (static_cast<size_t>(shift) << kBits) + static_cast<size_t>(value >> shift);
  }
  static uint64_t last_of(size_t bucket) {
    if (bucket < (2u << kBits)) return bucket;
    const size_t shift = (bucket >> kBits) - 1;
    const uint64_t lead = (bucket & ((1u << kBits) - 1)) + (1u << kBits);
    return ((lead + 1) << shift) - 1;
  }

  std::array<uint64_t, (65 - kBits) << kBits> counts_{};
  uint64_t count_ = 0, most_us_ = 0;
};

}  // namespace redecode
