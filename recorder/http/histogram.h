// recorder/http/histogram.h - Histogram: durations counted in fixed buckets, as Prometheus has
// them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace redecode {

struct Histogram {
  static constexpr std::array<double, 13> kUpperSeconds = {
      0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30};
  std::array<uint64_t, kUpperSeconds.size() + 1> counts{};  // the last: above all
  double sum_seconds = 0.0;

  void add(double seconds) {
    size_t bucket = 0;
    while (bucket < kUpperSeconds.size() && seconds > kUpperSeconds[bucket]) ++bucket;
    ++counts[bucket];
    sum_seconds += seconds;
  }
  uint64_t count() const {
    uint64_t total = 0;
    for (const uint64_t n : counts) total += n;
    return total;
  }
};

}  // namespace redecode
