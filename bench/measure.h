// bench/measure.h - what the benchmarks measure with: CPU time of this thread, medians, and the
// read bandwidth of one core.
#pragma once
#include <time.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "traces/check.h"

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

// Zeroed memory in huge pages where the system has them, as the simulated device keeps weights:
// with small pages the translations cost bandwidth.
class StreamedMemory {
 public:
  explicit StreamedMemory(uint64_t size_bytes)
      : size_bytes_((size_bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes),
        data_(static_cast<std::byte*>(std::aligned_alloc(kHugePageBytes, size_bytes_))) {
    REDECODE_CHECK(data_ != nullptr);
#if defined(__linux__)
    madvise(data_.get(), size_bytes_, MADV_HUGEPAGE);
#endif
    std::memset(data_.get(), 0, size_bytes_);
  }
  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }

 private:
  static constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;
  struct FreeMemory {
    void operator()(std::byte* base) const { std::free(base); }
  };
  uint64_t size_bytes_;
  std::unique_ptr<std::byte, FreeMemory> data_;
};

// 16 bytes: what any x86-64 loads at once.
using Vector = uint64_t __attribute__((vector_size(16)));

// The read bandwidth of one core over a buffer of its own.
class BandwidthReader {
 public:
  // `size_bytes` is rounded up to a block of 128 KiB; a size within a cache measures that cache.
  explicit BandwidthReader(uint64_t size_bytes)
      : line_count_((size_bytes + kBlockBytes - 1) / kBlockBytes * (kBlockBytes / sizeof(Line))),
        memory_(line_count_ * sizeof(Line)) {}

  // GB/s of reading at least `total_bytes`, over and over: the better of one sequential stream and
  // of eight side by side, which use more of the hardware's prefetchers.
  double gb_s(uint64_t total_bytes = uint64_t{64} << 20) {
    const uint64_t size_bytes = line_count_ * sizeof(Line);
    const uint64_t passes = std::max<uint64_t>(1, total_bytes / size_bytes);
    const auto repeat = [&](auto read) {
      for (uint64_t i = 0; i < passes; ++i) read();
    };
    const double one = seconds_of([&] { repeat([&] { read_once<1>(); }); });
    const double eight = seconds_of([&] { repeat([&] { read_once<8>(); }); });
    return static_cast<double>(passes * size_bytes) / std::min(one, eight) * 1e-9;
  }

 private:
  struct Line {
    Vector part[4];
  };
  static constexpr size_t kRowLines = 256;  // 16 KiB
  static constexpr uint64_t kBlockBytes = 8 * kRowLines * sizeof(Line);

  template <size_t kStreams>
  void read_once() {
    const auto* lines = reinterpret_cast<const Line*>(memory_.data());
    Vector a = {}, b = {}, c = {}, d = {};
    for (size_t base = 0; base < line_count_; base += kStreams * kRowLines) {
      for (size_t i = 0; i < kRowLines; ++i) {
        for (size_t s = 0; s < kStreams; ++s) {
          const Line* line = lines + base + s * kRowLines + i;
          __builtin_prefetch(line + 32, 0, 2);
          a += line->part[0];
          b += line->part[1];
          c += line->part[2];
          d += line->part[3];
        }
      }
    }
    const Vector total = a + b + c + d;
    sink_ = total[0] + total[1];
  }

  size_t line_count_;
  StreamedMemory memory_;
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
