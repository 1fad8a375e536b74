// engine/kernels/reference_attention.h - attention and index scores in double, slow and obviously
// right.
//
// For tests: no splits, no lanes, no paths; one loop a formula. Arguments as in attention.h and
// indexer.h.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/kernels/attention.h"
#include "engine/kernels/indexer.h"

namespace redecode::reference {

// softmax(scale * q . k) . v over keys and values [count][dim]; a sink adds exp(sink) to the mass.
// Zeros without keys.
std::vector<double> softmax_attention(const float* q, uint32_t dim, double scale,
                                      const std::vector<std::vector<double>>& keys,
                                      const std::vector<std::vector<double>>& values,
                                      const float* sink = nullptr);

// out [rows, heads, head_dim].
std::vector<double> gqa_attention(const GqaShape& shape, const PagedRows& paged, const float* q,
                                  const float* k_cache, const float* v_cache);
std::vector<double> latent_attention(const LatentShape& shape, const PagedRows& paged,
                                     const float* q, const uint16_t* swa_cache,
                                     const uint16_t* extra_cache, const int32_t* selected,
                                     uint32_t selected_count, const float* sink);

// Entry `entry` of row `row` from the states [slots, 2 * dim], with norm and rope.
std::vector<double> compress(const CompressShape& shape, const PagedRows& paged, uint32_t row,
                             uint32_t entry, const float* state, const float* norm);

// Logit of one entry.
double index_score(IndexKeyType type, uint32_t heads, uint32_t dim, const std::byte* q,
                   const float* weights, const std::byte* key);

}  // namespace redecode::reference
