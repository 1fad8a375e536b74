#include "engine/kernels/moe.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "engine/kernels/dot.h"
#include "engine/kernels/elementwise.h"
#include "engine/kernels/lanes.h"
#include "engine/kernels/math.h"
#include "traces/check.h"

namespace redecode {
namespace {

// The total order of top-k: larger first, NaN last, ties to the lower expert.
bool ranks_before(const std::vector<float>& rank, int32_t a, int32_t b) {
  const float x = rank[static_cast<size_t>(a)], y = rank[static_cast<size_t>(b)];
  const bool x_nan = std::isnan(x), y_nan = std::isnan(y);
  if (x_nan != y_nan) return y_nan;
  if (!x_nan && x != y) return x > y;
  return a < b;
}

void route_row(const float* logits, const float* bias, uint32_t experts, uint32_t k, float scaling,
               int32_t* ids, float* weights) {
  thread_local std::vector<float> score, rank;
  score.resize(experts);
  rank.resize(experts);
  for (uint32_t e = 0; e < experts; ++e) {
    score[e] = std::sqrt(softplus_f32(logits[e]));
    rank[e] = bias == nullptr ? score[e] : score[e] + bias[e];
  }
  uint32_t chosen = 0;  // ids[0..chosen) are the best so far, in order
  for (uint32_t e = 0; e < experts; ++e) {
    const auto id = static_cast<int32_t>(e);
    if (chosen == k && !ranks_before(rank, id, ids[k - 1])) continue;
    uint32_t at = chosen < k ? chosen++ : k - 1;
    for (; at > 0 && ranks_before(rank, id, ids[at - 1]); --at) ids[at] = ids[at - 1];
    ids[at] = id;
  }
  float sum = 0.0f;
  for (uint32_t s = 0; s < k; ++s) sum += score[static_cast<size_t>(ids[s])];
  for (uint32_t s = 0; s < k; ++s) {
    weights[s] = score[static_cast<size_t>(ids[s])] / sum * scaling;
  }
}

Matrix of_expert(Matrix matrix, uint64_t stride_bytes, uint32_t expert) {
  matrix.data += stride_bytes * expert;
  return matrix;
}

// Assignments (row * k + slot) sorted by expert; begin[e]..begin[e+1] are those of expert e. Ids
// outside [0, count) appear nowhere.
struct Grouping {
  std::vector<uint32_t> begin, assignments,
      place;  // place[assignment]: where it stands, or kNowhere
  static constexpr uint32_t kNowhere = UINT32_MAX;

  void build(const int32_t* ids, uint32_t total, uint32_t experts) {
    begin.assign(size_t{experts} + 1, 0);
    assignments.resize(total);
    place.assign(total, kNowhere);
    const auto valid = [&](int32_t id) { return id >= 0 && static_cast<uint32_t>(id) < experts; };
    for (uint32_t i = 0; i < total; ++i) {
      if (valid(ids[i])) ++begin[static_cast<size_t>(ids[i]) + 1];
    }
    for (uint32_t e = 0; e < experts; ++e) begin[e + 1] += begin[e];
    next_ = begin;
    for (uint32_t i = 0; i < total; ++i) {
      if (!valid(ids[i])) continue;
      place[i] = next_[static_cast<size_t>(ids[i])]++;
      assignments[place[i]] = i;
    }
  }

 private:
  std::vector<uint32_t> next_;
};

}  // namespace

void moe_route(Exec& exec, const float* logits, const float* bias, uint32_t rows, uint32_t experts,
               uint32_t k, float scaling, int32_t* ids, float* weights) {
  REDECODE_CHECK_OP(k, <=, experts);
  if (k == 0) return;
  exec.parallel(rows, 1, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      route_row(logits + row * experts, bias, experts, k, scaling, ids + row * k,
                weights + row * k);
    }
  });
}

uint64_t moe_scratch_floats(uint32_t rows, uint32_t k, uint32_t dim, uint32_t inter) {
  return uint64_t{rows} * k * (uint64_t{dim} + 3 * uint64_t{inter});
}

void moe_experts(Exec& exec, const Experts& experts, const float* x, uint32_t rows, uint32_t k,
                 const int32_t* ids, const float* weights, float* scratch, float* out) {
  const uint32_t dim = experts.gate.cols, inter = experts.gate.rows;
  REDECODE_CHECK_OP(experts.up.cols, ==, dim);
  REDECODE_CHECK_OP(experts.up.rows, ==, inter);
  REDECODE_CHECK_OP(experts.down.rows, ==, dim);
  REDECODE_CHECK_OP(experts.down.cols, ==, inter);
  thread_local Grouping grouping;
  Grouping& groups = grouping;
  const uint32_t total = rows * k;
  groups.build(ids, total, experts.count);
  // Gathered rows [total, dim], later the experts' outputs; gate, up and activation [total, inter].
  float* gathered = scratch;
  float* gate = gathered + uint64_t{total} * dim;
  float* up = gate + uint64_t{total} * inter;
  float* act = up + uint64_t{total} * inter;
  for (uint32_t e = 0; e < experts.count; ++e) {
    const uint32_t first = groups.begin[e], count = groups.begin[e + 1] - first;
    if (count == 0) continue;
    float* rows_in = gathered + uint64_t{first} * dim;
    float* expert_gate = gate + uint64_t{first} * inter;
    float* expert_up = up + uint64_t{first} * inter;
    float* expert_act = act + uint64_t{first} * inter;
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t row = groups.assignments[first + i] / k;
      std::memcpy(rows_in + uint64_t{i} * dim, x + row * dim, dim * sizeof(float));
    }
    gemm(exec, of_expert(experts.gate, experts.gate_stride_bytes, e), rows_in, dim, expert_gate,
         inter, count);
    gemm(exec, of_expert(experts.up, experts.up_stride_bytes, e), rows_in, dim, expert_up, inter,
         count);
    swiglu(exec, expert_gate, inter, expert_up, inter, count, inter, expert_act, inter);
    gemm(exec, of_expert(experts.down, experts.down_stride_bytes, e), expert_act, inter, rows_in,
         dim, count);
  }
  const LaneKernels& lanes = lane_kernels(exec.isa());
  exec.parallel(rows, 1, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      float* target = out + row * dim;
      std::fill_n(target, dim, 0.0f);
      for (size_t slot = row * k; slot < (row + 1) * k; ++slot) {
        if (groups.place[slot] == Grouping::kNowhere) continue;
        lanes.axpy(weights[slot], gathered + uint64_t{groups.place[slot]} * dim, target, dim);
      }
    }
  });
}

}  // namespace redecode
