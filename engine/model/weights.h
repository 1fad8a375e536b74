// engine/model/weights.h - WeightSet: the weight buffers of a model and how each gets its values.
//
// Seeded values come from a counter-based generator keyed by (seed, buffer ordinal, element), so
// any machine makes the same bytes, in any order.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/kernels/matrix.h"
#include "traces/program.h"

namespace redecode {

// A weight buffer: `count` matrices [rows, cols] of one dtype, back to back.
struct Weight {
  BufferId buffer;
  DType dtype = DType::f32;
  uint32_t rows = 0, cols = 0, count = 1;

  uint64_t size_bytes() const { return count * matrix_bytes(dtype, rows, cols); }
};

class WeightSet {
 public:
  // Values uniform in [-amplitude, amplitude] around `offset`.
  struct Init {
    float offset = 0.0f, amplitude = 0.0f;
  };

  void add(const Weight& weight, Init init);
  // Values given: [count * rows * cols] f32, encoded when asked for.
  void add(const Weight& weight, std::vector<float> values);

  void each(uint64_t seed,
            const std::function<void(BufferId, std::span<const std::byte>)>& sink) const;
  uint64_t size_bytes() const;

 private:
  struct Entry {
    Weight weight;
    Init init;
    std::vector<float> values;
  };
  std::vector<Entry> entries_;
};

}  // namespace redecode
