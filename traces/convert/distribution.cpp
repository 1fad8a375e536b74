#include "traces/convert/distribution.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace redecode {

void Distribution::add(uint64_t value) {
  if (value < kExact) {
    if (small_.empty()) small_.resize(kExact);
    ++small_[value];
  } else {
    const int shift = static_cast<int>(std::bit_width(value)) - 11;
    ++large_[(value >> shift) << shift];
  }
  ++count_;
  sum_ += static_cast<double>(value);
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
}

double Distribution::mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

uint64_t Distribution::percentile(double percent) const {
  if (count_ == 0) return 0;
  const double wanted = std::ceil(percent / 100.0 * static_cast<double>(count_));
  const uint64_t rank = std::clamp<uint64_t>(static_cast<uint64_t>(wanted), 1, count_);
  if (rank == count_) return max_;
  uint64_t below = 0;
  for (size_t value = 0; value < small_.size(); ++value)
    if ((below += small_[value]) >= rank) return value;
  for (const auto& [value, count] : large_)
    if ((below += count) >= rank) return std::max(value, min_);
  return max_;
}

void RateOverTime::add(uint64_t at) {
  while (at / length_ >= kStretches) {
    const uint64_t factor = doubles_next_ ? 2 : 5;
    doubles_next_ = !doubles_next_;
    // The last length covers every time there is, so that the product fits.
    length_ = length_ > UINT64_MAX / factor ? UINT64_MAX : length_ * factor;
    std::vector<uint64_t> merged((counts_.size() + factor - 1) / factor);
    for (size_t i = 0; i < counts_.size(); ++i) merged[i / factor] += counts_[i];
    counts_ = std::move(merged);
  }
  const uint64_t stretch = at / length_;
  if (counts_.size() <= stretch) counts_.resize(stretch + 1);
  ++counts_[stretch];
  ++count_;
  first_ = std::min(first_, at);
  last_ = std::max(last_, at);
}

bool SeenNumbers::add(uint32_t number) {
  uint64_t& word = pages_[number >> 12][(number >> 6) & 63u];
  const uint64_t bit = uint64_t{1} << (number & 63u);
  if ((word & bit) != 0) return false;
  word |= bit;
  ++count_;
  return true;
}

}  // namespace redecode
