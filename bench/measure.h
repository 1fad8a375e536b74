// bench/measure.h - what the benchmarks measure with: CPU time of this thread, medians, and the
// read bandwidth of one core.
#pragma once
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace redecode {

// This thread's CPU time: what other processes take from the core does not count, what they do to
// its caches and to the memory bus does.
inline double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

template <class Body>
double seconds_of(const Body& body) {
  const double start = thread_seconds();
  body();
  return thread_seconds() - start;
}

// The middle one; 0 of none.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Reads a buffer of its own as eight neighbouring streams side by side, which uses more of the
// hardware's prefetchers than one stream does.
class BandwidthReader {
 public:
  // `size_bytes` is rounded up to 16 KiB; a size within a cache measures that cache.
  explicit BandwidthReader(uint64_t size_bytes)
      : data_((size_bytes + kBlockBytes - 1) / kBlockBytes * (kBlockBytes / sizeof(Line)),
              Line{3}) {}

  // GB/s of reading at least `total_bytes`, over and over.
  double gb_s(uint64_t total_bytes = uint64_t{64} << 20) {
    const uint64_t size_bytes = data_.size() * sizeof(Line);
    const uint64_t passes = std::max<uint64_t>(1, total_bytes / size_bytes);
    const double seconds = seconds_of([&] {
      for (uint64_t i = 0; i < passes; ++i) read_once();
    });
    return static_cast<double>(passes * size_bytes) / seconds * 1e-9;
  }

 private:
  using Line = uint64_t __attribute__((vector_size(64)));
  static constexpr size_t kStreams = 8, kLinesAStream = 32;
  static constexpr uint64_t kBlockBytes = kStreams * kLinesAStream * sizeof(Line);

  void read_once() {
    Line sums[kStreams] = {};
    for (size_t base = 0; base < data_.size(); base += kStreams * kLinesAStream) {
      for (size_t i = 0; i < kLinesAStream; ++i) {
        for (size_t s = 0; s < kStreams; ++s) {
          const Line* line = data_.data() + base + s * kLinesAStream + i;
          __builtin_prefetch(line + 32, 0, 2);
          sums[s] += *line;
        }
      }
    }
    uint64_t total = 0;
    for (const Line& sum : sums) total += sum[0] + sum[7];
    sink_ = total;
  }

  std::vector<Line> data_;
  volatile uint64_t sink_ = 0;
};

// Whether `flag` is among the arguments.
inline bool has_flag(int argc, char** argv, std::string_view flag) {
  for (int i = 1; i < argc; ++i)
    if (flag == argv[i]) return true;
  return false;
}

// What follows `flag`, or `otherwise`.
inline std::string_view flag_value(int argc, char** argv, std::string_view flag,
                                   std::string_view otherwise) {
  for (int i = 1; i + 1 < argc; ++i)
    if (flag == argv[i]) return argv[i + 1];
  return otherwise;
}

}  // namespace redecode
