#include "engine/kernels/sample.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/kernels/lanes.h"
#include "engine/kernels/math.h"
#include "engine/kernels/vector_math.h"
#include "traces/random.h"

namespace redecode {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The largest of a row, NaN passed over; token is -1 where every logit is -inf or NaN.
struct Largest {
  int32_t token = -1;
  float logit = -kInfinity;
  bool finite = false;  // some logit of the row is finite
};

Largest largest_of(const float* logits, uint32_t vocab) {
  Largest best;
  for (uint32_t t = 0; t < vocab; ++t) {
    best.finite |= std::fabs(logits[t]) < kInfinity;
    if (logits[t] > best.logit) {
      best.logit = logits[t];
      best.token = static_cast<int32_t>(t);
    }
  }
  return best;
}

// A token under an ascending key for descending logits; equal logits have equal keys.
struct Candidate {
  uint32_t key;
  int32_t token;
};

uint32_t descending_key(float logit) {
  const uint32_t bits = std::bit_cast<uint32_t>(logit);
  if ((bits << 1) == 0) return 0x7fffffffu;
  return (bits >> 31) != 0 ? bits : ~(bits | 0x80000000u);
}

// Stable, by key: equal keys stay in token order.
void sort_candidates(std::vector<Candidate>& candidates, std::vector<Candidate>& spare) {
  spare.resize(candidates.size());
  for (int shift = 0; shift < 32; shift += 8) {
    std::array<uint32_t, 257> begin = {};
    for (const Candidate& c : candidates) ++begin[(c.key >> shift & 255) + 1];
    for (size_t digit = 1; digit < 257; ++digit) begin[digit] += begin[digit - 1];
    for (const Candidate& c : candidates) spare[begin[c.key >> shift & 255]++] = c;
    candidates.swap(spare);
  }
}

struct RowSampling {
  float temperature;
  int32_t top_k;
  float top_p, min_p;
  double draw;  // [0, 1)
};

struct SampleScratch {
  std::vector<Candidate> candidates, spare;
  std::vector<float> p;
};

// How many of the sorted candidates stay, by their masses p.
size_t kept_candidates(const std::vector<float>& p, const RowSampling& row) {
  size_t kept = p.size();
  if (row.top_k > 0) kept = std::min(kept, static_cast<size_t>(row.top_k));
  if (row.top_p < 1.0f) {
    double total = 0.0, mass = 0.0;
    for (size_t i = 0; i < kept; ++i) total += double{p[i]};
    const double wanted = double{row.top_p} * total;
    size_t nucleus = 0;
    while (nucleus < kept && (nucleus == 0 || mass < wanted)) mass += double{p[nucleus++]};
    kept = nucleus;
  }
  size_t above = 1;
  while (above < kept && p[above] >= row.min_p) ++above;  // p[0] is 1, the largest
  return std::min(kept, above);
}

int32_t sample_row(SampleScratch& scratch, Isa isa, const float* logits, uint32_t vocab,
                   const RowSampling& row) {
  const Largest best = largest_of(logits, vocab);
  if (!best.finite) return 0;
  if (!(row.temperature > 0.0f)) return best.token;
  const float largest = best.logit / row.temperature;
  if (!(std::fabs(largest) < kInfinity)) return best.token;
  scratch.candidates.clear();
  for (uint32_t t = 0; t < vocab; ++t) {
    const float scaled = logits[t] / row.temperature;
    if (!(scaled > -kInfinity)) continue;
    scratch.candidates.push_back({descending_key(scaled), static_cast<int32_t>(t)});
  }
  sort_candidates(scratch.candidates, scratch.spare);
  scratch.p.clear();
  for (const Candidate& c : scratch.candidates) {
    scratch.p.push_back(logits[c.token] / row.temperature - largest);
  }
  exp_array(isa, scratch.p.data(), scratch.p.size(), scratch.p.data());
  const size_t kept = kept_candidates(scratch.p, row);
  double total = 0.0, mass = 0.0;
  for (size_t i = 0; i < kept; ++i) total += double{scratch.p[i]};
  const double wanted = row.draw * total;
  size_t drawn = 0;
  for (; drawn + 1 < kept; ++drawn) {
    mass += double{scratch.p[drawn]};
    if (mass > wanted) break;
  }
  return scratch.candidates[drawn].token;
}

// The contract's lanes with additions: lane l takes elements 64i+2l, 64i+2l+1, then the butterfly.
float lane_sum(const std::vector<float>& x) {
  std::array<float, 32> lanes = {};
  const size_t whole = x.size() / kLaneChunk * kLaneChunk;
  for (size_t i = 0; i < whole; i += kLaneChunk) {
    for (size_t l = 0; l < 32; ++l) lanes[l] = lanes[l] + x[i + 2 * l] + x[i + 2 * l + 1];
  }
  for (size_t i = whole; i < x.size(); ++i) lanes[(i - whole) / 2] += x[i];
  for (size_t step = 16; step > 0; step /= 2) {
    for (size_t l = 0; l < step; ++l) lanes[l] += lanes[l + step];
  }
  return lanes[0];
}

// Logit descending, token ascending, NaN last.
bool stands_before(const TopLogit& a, const TopLogit& b) {
  const bool a_nan = std::isnan(a.logit), b_nan = std::isnan(b.logit);
  if (a_nan != b_nan) return b_nan;
  if (!a_nan && a.logit != b.logit) return a.logit > b.logit;
  return a.token < b.token;
}

std::vector<TopLogit> top_logits(std::span<const float> logits, uint32_t top_count) {
  std::vector<TopLogit> top;
  top.reserve(std::min<size_t>(top_count, logits.size()));
  for (size_t t = 0; t < logits.size() && top_count > 0; ++t) {
    if (top.size() == top_count) {
      // Tokens ascend, so a tie with the last loses.
      const float worst = top.back().logit;
      if (std::isnan(logits[t]) || logits[t] <= worst) continue;
      top.pop_back();
    }
    const TopLogit candidate = {static_cast<int32_t>(t), logits[t]};
    top.insert(std::upper_bound(top.begin(), top.end(), candidate, stands_before), candidate);
  }
  return top;
}

}  // namespace

void sample_tokens(Exec& exec, const float* logits, uint32_t vocab, const SamplingColumns& columns,
                   uint32_t rows, int32_t* tokens) {
  exec.parallel(rows, 1, [&](size_t begin, size_t end) {
    thread_local SampleScratch scratch;
    for (size_t row = begin; row < end; ++row) {
      const uint64_t bits =
          random_bits(columns.seed[row], static_cast<uint32_t>(columns.positions[row]));
      const RowSampling sampling = {columns.temperature[row], columns.top_k[row],
                                    columns.top_p[row], columns.min_p[row],
                                    static_cast<double>(bits >> 11) * 0x1p-53};
      tokens[row] = sample_row(scratch, exec.isa(), logits + row * vocab, vocab, sampling);
    }
  });
}

LogitsSummary summarize_logits(std::span<const float> logits, uint32_t top_count) {
  LogitsSummary summary;
  summary.digest = digest_span(logits);
  summary.top = top_logits(logits, top_count);
  float largest = -kInfinity;
  for (const float logit : logits) largest = logit > largest ? logit : largest;
  if (std::fabs(largest) == kInfinity) {
    const bool nan = std::any_of(logits.begin(), logits.end(), [](float v) { return v != v; });
    summary.log_sum_exp = nan ? std::numeric_limits<float>::quiet_NaN() : largest;
    return summary;
  }
  thread_local std::vector<float> shifted;
  shifted.resize(logits.size());
  for (size_t t = 0; t < logits.size(); ++t) shifted[t] = logits[t] - largest;
  exp_array(best_isa(), shifted.data(), shifted.size(), shifted.data());
  summary.log_sum_exp = largest + log_f32(lane_sum(shifted));
  return summary;
}

}  // namespace redecode
