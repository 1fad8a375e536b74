// traces/convert/distribution.h - Distribution and RateOverTime: many values in little memory.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace redecode {

// How whole numbers are spread. Count, sum, min and max are exact; percentiles are exact below
// 2,048 and at most 0.1% too small above. Memory: 16 KiB and a node a distinct step of 0.1%.
class Distribution {
 public:
  void add(uint64_t value);
  uint64_t count() const { return count_; }
  uint64_t min() const { return count_ == 0 ? 0 : min_; }
  uint64_t max() const { return max_; }
  double mean() const;
  // The smallest value that `percent` of all values do not exceed; 0 when there are none.
  uint64_t percentile(double percent) const;

 private:
  static constexpr size_t kExact = 2048;
  std::vector<uint64_t> small_;         // counts by value; empty until the first one
  std::map<uint64_t, uint64_t> large_;  // by value rounded down to 11 significant bits
  uint64_t count_ = 0, min_ = UINT64_MAX, max_ = 0;
  double sum_ = 0;
};

// How often something happened in equal stretches from 0 on: at most 64 of them; a later time makes
// all stretches 2 or 5 times as long (1, 2, 10, 20, 100 ... times the first length).
class RateOverTime {
 public:
  explicit RateOverTime(uint64_t first_length) : length_(first_length) {}
  void add(uint64_t at);
  uint64_t length() const { return length_; }  // of one stretch
  const std::vector<uint64_t>& counts() const { return counts_; }
  uint64_t count() const { return count_; }
  uint64_t first() const { return count_ == 0 ? 0 : first_; }
  uint64_t last() const { return last_; }

 private:
  static constexpr size_t kStretches = 64;
  uint64_t length_;
  bool doubles_next_ = true;
  std::vector<uint64_t> counts_;
  uint64_t count_ = 0, first_ = UINT64_MAX, last_ = 0;
};

// Which numbers were seen. Memory: 512 bytes for every 4,096 numbers of which one was seen.
class SeenNumbers {
 public:
  // True the first time.
  bool add(uint32_t number);
  uint64_t count() const { return count_; }

 private:
  std::map<uint32_t, std::array<uint64_t, 64>> pages_;
  uint64_t count_ = 0;
};

}  // namespace redecode
