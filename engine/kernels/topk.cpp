#include "engine/kernels/topk.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

namespace redecode {
namespace {

// v1: a heap of the k best so far, the worst on top. Entries arrive by ascending index, so one that
// ties with the worst loses.
struct Ranked {
  float score;
  int32_t index;
};

bool better(const Ranked& a, const Ranked& b) {
  const bool a_nan = std::isnan(a.score), b_nan = std::isnan(b.score);
  if (a_nan != b_nan) return b_nan;
  if (!a_nan && a.score != b.score) return a.score > b.score;
  return a.index < b.index;
}

void select_by_heap(const float* scores, uint32_t count, uint32_t k, int32_t* out) {
  thread_local std::vector<Ranked> heap;
  heap.clear();
  for (uint32_t j = 0; j < count; ++j) {
    const Ranked candidate = {scores[j], static_cast<int32_t>(j)};
    if (heap.size() < k) {
      heap.push_back(candidate);
      std::push_heap(heap.begin(), heap.end(), better);
    } else if (better(candidate, heap.front())) {
      std::pop_heap(heap.begin(), heap.end(), better);
      heap.back() = candidate;
      std::push_heap(heap.begin(), heap.end(), better);
    }
  }
  for (uint32_t i = 0; i < k; ++i) out[i] = heap[i].index;
  std::sort(out, out + k);
}

// v2: larger key, better score; -0 and +0 share a key, every NaN has the smallest.
uint32_t order_key(float score) {
  const uint32_t bits = std::bit_cast<uint32_t>(score);
  if ((bits << 1) > 0xff000000u) return 0;
  if ((bits << 1) == 0) return 0x80000000u;
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}

void select_by_radix(const float* scores, uint32_t count, uint32_t k, int32_t* out) {
  thread_local std::vector<uint32_t> keys;
  keys.resize(count);
  for (uint32_t j = 0; j < count; ++j) keys[j] = order_key(scores[j]);
  // Digit by digit from the top: `prefix` becomes the key of the k-th best, `left` how many of the
  // entries with that very key are taken.
  uint32_t prefix = 0, mask = 0, left = k;
  for (int shift = 24; shift >= 0; shift -= 8) {
    std::array<uint32_t, 256> histogram = {};
    for (uint32_t j = 0; j < count; ++j) {
      if ((keys[j] & mask) == prefix) ++histogram[keys[j] >> shift & 255];
    }
    uint32_t digit = 255;
    while (histogram[digit] < left) left -= histogram[digit--];
    prefix |= digit << shift;
    mask |= 255u << shift;
  }
  uint32_t written = 0;
  for (uint32_t j = 0; j < count && written < k; ++j) {
    const bool tie = keys[j] == prefix && left > 0;
    if (tie) --left;
    if (tie || keys[j] > prefix) out[written++] = static_cast<int32_t>(j);
  }
}

}  // namespace

void topk_indices(Exec& exec, TopkVersion version, const float* scores, uint32_t scores_stride,
                  const int32_t* counts, uint32_t rows, uint32_t k, int32_t* out) {
  exec.parallel(rows, 1, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      const auto count = static_cast<uint32_t>(
          std::clamp<int64_t>(int64_t{counts[row]}, 0, int64_t{scores_stride}));
      const float* row_scores = scores + row * scores_stride;
      int32_t* row_out = out + row * k;
      const uint32_t kept = std::min(count, k);
      if (count <= k) {
        for (uint32_t j = 0; j < count; ++j) row_out[j] = static_cast<int32_t>(j);
      } else if (k > 0 && version == TopkVersion::v1) {
        select_by_heap(row_scores, count, k, row_out);
      } else if (k > 0) {
        select_by_radix(row_scores, count, k, row_out);
      }
      std::fill(row_out + kept, row_out + k, -1);
    }
  });
}

}  // namespace redecode
