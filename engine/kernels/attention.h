// engine/kernels/attention.h - decode attention over paged KV; one kernel for prefill, decode and
// prefix hits.
//
// The keys of a row are cut into splits of a fixed size, from key 0: never by a count, never by the
// batch. In a split: scores (contract dot, then * scale), their maximum m (NaN passed over), p =
// exp(s - m), their sum l in key order from +0, and acc[d] = fma(p, v[d], acc[d]) in key order from
// +0. Splits combine in order, by running maximum: the first is taken as it is; then, with n =
// max(M, m), a = exp(M - n), b = exp(m - n):
//   L = fma(l, b, L * a);  A[d] = fma(acc[d], b, A[d] * a);  M = n.
// A sink logit joins as a last term without a value: L = fma(1, b, L * a), A[d] = A[d] * a. out[d]
// = A[d] / L.
//
// Rows without a key (position < 0) give zeros. What a wrong step may hold never leaves the
// buffers: positions end at the page table, page-table entries outside the cache read page 0,
// negative slots are not stored to. Cost: O(keys * head_dim) a head; memory one split a thread.
#pragma once
#include <cstdint>

#include "engine/kernels/exec.h"

namespace redecode {

// Pages of a row: entry i of page_table[row] is a physical page; slot = page * page_size + offset.
struct PagedRows {
  const int32_t* page_table = nullptr;  // [rows, table_stride]
  uint32_t table_stride = 0;
  uint32_t page_size = 0;              // tokens a page
  const int32_t* positions = nullptr;  // [rows]; the row sees keys 0..position
  uint32_t rows = 0;
  uint32_t page_count = 0;  // pages in the cache; 0: entries are checked for sign only
};

// Grouped-query attention. k_cache, v_cache [slots, kv_heads, head_dim] f32; q, out [rows, heads,
// head_dim] f32.
struct GqaShape {
  uint32_t heads = 0, kv_heads = 0, head_dim = 0;
  float scale = 0.0f;
  uint32_t split_keys = 64;  // reduction shape
};
void gqa_attention(Exec& exec, const GqaShape& shape, const PagedRows& paged, const float* q,
                   const float* k_cache, const float* v_cache, float* out);

// k[rows, kv_dim], v[rows, kv_dim] -> cache [slots, kv_dim] at slots[row]; of rows that share a
// slot (padding) the last stays.
void kv_store(Exec& exec, const float* k, uint64_t k_stride, const float* v, uint64_t v_stride,
              const int32_t* slots, uint32_t rows, uint32_t kv_dim, float* k_cache, float* v_cache);

// Latent attention with one KV head whose entries serve as key and value (bf16 [head_dim]).
// Keys of a row, in this order: the sliding window, positions max(0, p - window + 1)..p of
// swa_cache [slots, head_dim] bf16; then compressed entries: where `selected` is set, selected[row,
// 0..selected_count) up to the first -1 (entries beyond the page table are passed over); else, with
// ratio > 0, all entries 0..(p+1)/ratio-1. Entry j lies in extra_cache at page page_table[row, j /
// per_page], slot j % per_page, per_page = page_size / ratio: [pages*per_page, head_dim] bf16.
// Splits are cut from this list. q, out [rows, heads, head_dim] f32; sink [heads] f32 or null.
// page_size is a multiple of ratio (CHECK).
struct LatentShape {
  uint32_t heads = 0, head_dim = 0, window = 0;
  uint32_t ratio = 0;  // 0: window only
  float scale = 0.0f;
  uint32_t split_keys = 64;
};
void latent_attention(Exec& exec, const LatentShape& shape, const PagedRows& paged, const float* q,
                      const uint16_t* swa_cache, const uint16_t* extra_cache,
                      const int32_t* selected, uint32_t selected_count, const float* sink,
                      float* out);

// x[rows, dim] f32 rounded to bf16 into cache [slots, dim] at slots[row]; the last row of a slot
// stays.
void latent_store(Exec& exec, const float* x, uint64_t x_stride, const int32_t* slots,
                  uint32_t rows, uint32_t dim, uint16_t* cache);

}  // namespace redecode
