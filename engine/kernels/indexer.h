// engine/kernels/indexer.h - compression of KV, index keys and index scores of the sparse indexer.
#pragma once
#include <cstdint>

#include "engine/kernels/attention.h"
#include "engine/kernels/exec.h"
#include "traces/mode.h"

namespace redecode {

// Bytes of one stored index key: bf16 2*dim; fp8 dim + 4 (f32 scale); fp4 dim/2 + 4 (f32 scale).
// Page sizes follow from this and nothing else.
uint32_t index_key_bytes(IndexKeyType type, uint32_t dim);
// Bytes of one quantised index query head: the same without the scale, which is folded into the
// weights.
uint32_t index_query_bytes(IndexKeyType type, uint32_t dim);

// Quantises one vector. fp8: scale = max|x| / 448 (1 where all are 0), values x / scale rounded to
// e4m3; fp4: scale = max|x| / 6, e2m1, even element in the low nibble (dim even). Layout: values,
// then the scale. bf16 has no scale. NaN is passed over in the maximum; a scale that underflows to
// 0 is 1.
void index_key_encode(IndexKeyType type, const float* x, uint32_t dim, std::byte* out);
// Values without scale into out [dim]; returns the scale (1 for bf16).
float index_key_decode(IndexKeyType type, const std::byte* key, uint32_t dim, float* out);

// Index query: q [rows, heads, dim] f32 -> out [rows, heads, index_query_bytes]; weights [rows,
// heads] f32 are multiplied in place by (weight_scale * the head's quantisation scale), rounded
// first.
void index_query_encode(Exec& exec, IndexKeyType type, const float* q, uint32_t rows,
                        uint32_t heads, uint32_t dim, float weight_scale, float* weights,
                        std::byte* out);

// Compression. kv_score [rows, 2*dim] f32 (value, score) is stored to state [slots, 2*dim] f32 at
// slots[row] for all rows first; then each row with (position + 1) % ratio == 0 makes entry j =
// position / ratio:
//   e[d] = sum_i softmax_i(score[i, d]) * value[i, d] over the ratio tokens of the entry, i
//   ascending:
//     m = max_i score, p_i = exp(score_i - m), l = sum p_i from +0, acc = fma(p_i, value_i, acc)
//     from +0, e = acc / l;
//   e = rms_norm(e) * norm; rope (last rope_dim elements) at position j * ratio.
// into out [rows, dim]; made[row] = j, or -1 and a row of zeros for rows that complete no entry.
// Rows are stored in order and negative slots are passed over, as in kv_store. rope_dim is even and
// at most dim; norm may be null (ones).
struct CompressShape {
  uint32_t dim = 0, ratio = 0, rope_dim = 0;
  float eps = 1e-6f, theta = 10000.0f;
};
void compress(Exec& exec, const CompressShape& shape, const PagedRows& paged, const int32_t* slots,
              const float* kv_score, float* state, const float* norm, float* out, int32_t* made);

// Stores made entries to pages: entry j of a row at page page_table[row, j / per_page], slot j %
// per_page, per_page = page_size / ratio. page_stride_bytes is the distance of two pages (normally
// per_page * entry bytes).
void store_latent_entries(Exec& exec, const PagedRows& paged, uint32_t ratio, const float* entries,
                          const int32_t* made, uint32_t dim, uint16_t* cache);
void store_index_entries(Exec& exec, IndexKeyType type, const PagedRows& paged, uint32_t ratio,
                         const float* entries, const int32_t* made, uint32_t dim,
                         uint64_t page_stride_bytes, std::byte* cache);

// Negative `made` stores nothing. page_size is a multiple of ratio (CHECK), here and below.

// logits[row, j] = sum over heads h ascending: fma(weights[row, h], relu(dot(q[row, h], k[j])) *
// scale_k[j], acc), for j < (position + 1) / ratio; entries beyond are not written. dot in the
// contract's order on unscaled values. relu keeps NaN. q as index_query_encode made it; logits
// [rows, logits_stride] f32, entries from logits_stride on are left out. Cost: heads * dim
// multiply-adds an entry.
void index_scores(Exec& exec, IndexKeyType type, const PagedRows& paged, uint32_t ratio,
                  uint32_t heads, uint32_t dim, const std::byte* q, const float* weights,
                  uint64_t page_stride_bytes, const std::byte* cache, float* logits,
                  uint32_t logits_stride);

}  // namespace redecode
