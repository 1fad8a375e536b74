#include "engine/model/weights.h"

#include <utility>

#include "traces/check.h"
#include "traces/random.h"

namespace redecode {
namespace {

void fill_uniform(uint64_t seed, uint64_t ordinal, uint64_t matrix, WeightSet::Init init,
                  std::vector<float>& out) {
  const uint64_t stream = (ordinal << 32) | matrix;
  for (size_t i = 0; i < out.size(); i += 4) {
    const auto words = philox(seed, i / 4, stream);
    for (size_t k = 0; k < 4 && i + k < out.size(); ++k)
      out[i + k] = init.offset + init.amplitude * (2.0f * random_unit(words[k]) - 1.0f);
  }
}

}  // namespace

void WeightSet::add(const Weight& weight, Init init) { entries_.push_back({weight, init, {}}); }

void WeightSet::add(const Weight& weight, std::vector<float> values) {
  REDECODE_CHECK_OP(values.size(), ==, size_t{weight.count} * weight.rows * weight.cols);
  entries_.push_back({weight, {}, std::move(values)});
}

void WeightSet::each(uint64_t seed,
                     const std::function<void(BufferId, std::span<const std::byte>)>& sink) const {
  std::vector<float> values;
  std::vector<std::byte> bytes;
  for (size_t ordinal = 0; ordinal < entries_.size(); ++ordinal) {
    const auto& [w, init, given] = entries_[ordinal];
    const size_t elements = size_t{w.rows} * w.cols;
    const uint64_t one = matrix_bytes(w.dtype, w.rows, w.cols);
    bytes.assign(w.size_bytes(), std::byte{0});
    values.resize(elements);
    for (uint32_t m = 0; m < w.count; ++m) {
      if (given.empty()) fill_uniform(seed, ordinal, m, init, values);
      const std::span<const float> source =
          given.empty() ? std::span<const float>(values)
                        : std::span<const float>(given).subspan(m * elements, elements);
      encode_matrix(w.dtype, w.rows, w.cols, source, bytes.data() + m * one);
    }
    sink(w.buffer, bytes);
  }
}

uint64_t WeightSet::size_bytes() const {
  uint64_t sum = 0;
  for (const auto& e : entries_) sum += e.weight.size_bytes();
  return sum;
}

}  // namespace redecode
