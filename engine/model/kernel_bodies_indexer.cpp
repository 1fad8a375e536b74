#include <algorithm>
#include <bit>
#include <limits>

#include "engine/kernels/elementwise.h"
#include "engine/kernels/indexer.h"
#include "engine/kernels/topk.h"
#include "engine/model/kernel_bodies.h"

namespace redecode {
namespace {

uint32_t u32(const Launch& l, size_t arg) { return static_cast<uint32_t>(l.arg(arg)); }
IndexKeyType key_type(const Launch& l, size_t arg) { return static_cast<IndexKeyType>(l.arg(arg)); }

// The part that both compressors share: operands [kv_score, page_table, positions, slots, state,
// norm, entries, made, ...], arguments (dim, ratio, rope_dim, eps, theta, table_stride, page_size,
// rows, ...).
PagedRows run_compress(const Launch& l) {
  const CompressShape shape{u32(l, 0), u32(l, 1), u32(l, 2), l.real(3), l.real(4)};
  const PagedRows paged = paged_at(l, 1, 2, 5);
  compress(l.exec, shape, paged, l.at<const int32_t>(3), l.at<const float>(0), l.at<float>(4),
           l.at<const float>(5), l.at<float>(6), l.at<int32_t>(7));
  return paged;
}

// [..., cache] (...)
void compress_latent_body(const Launch& l) {
  const PagedRows paged = run_compress(l);
  store_latent_entries(l.exec, paged, u32(l, 1), l.at<const float>(6), l.at<const int32_t>(7),
                       u32(l, 0), l.at<uint16_t>(8));
}

// [..., cache] (..., type, page_stride_bytes): keys are rotated by the Hadamard transform, then
// quantised
void compress_index_body(const Launch& l) {
  const PagedRows paged = run_compress(l);
  const uint32_t dim = u32(l, 0);
  for (uint32_t r = 0; r < paged.rows; ++r)
    if (l.at<const int32_t>(7)[r] >= 0) hadamard(l.exec, l.at<float>(6) + size_t{r} * dim, 1, dim);
  store_index_entries(l.exec, key_type(l, 8), paged, u32(l, 1), l.at<const float>(6),
                      l.at<const int32_t>(7), dim, static_cast<uint64_t>(l.arg(9)), l.operands[8]);
}

// [q_raw, weights, q] (type, heads, dim, weight_scale, rows): q_raw is rotated in place
void index_query_body(const Launch& l) {
  const uint32_t heads = u32(l, 1), dim = u32(l, 2), rows = u32(l, 4);
  hadamard(l.exec, l.at<float>(0), rows * heads, dim);
  index_query_encode(l.exec, key_type(l, 0), l.at<const float>(0), rows, heads, dim, l.real(3),
                     l.at<float>(1), l.operands[2]);
}

// [q, weights, page_table, positions, cache, logits] (type, ratio, heads, dim, page_stride_bytes,
// width, table_stride, page_size, rows): columns beyond a row's entries become -inf
void index_scores_body(const Launch& l) {
  const PagedRows paged = paged_at(l, 2, 3, 6);
  const uint32_t ratio = u32(l, 1), width = u32(l, 5);
  auto* logits = l.at<float>(5);
  index_scores(l.exec, key_type(l, 0), paged, ratio, u32(l, 2), u32(l, 3), l.operands[0],
               l.at<const float>(1), static_cast<uint64_t>(l.arg(4)), l.operands[4], logits, width);
  for (uint32_t r = 0; r < paged.rows; ++r) {
    const uint32_t entries = static_cast<uint32_t>(paged.positions[r] + 1) / ratio;
    std::fill(logits + size_t{r} * width + entries, logits + size_t{r + 1} * width,
              -std::numeric_limits<float>::infinity());
  }
}

// [logits, positions, out] (version, width, k, ratio, rows)
void topk_body(const Launch& l) {
  const uint32_t rows = u32(l, 4);
  thread_local std::vector<int32_t> counts;
  counts.resize(rows);
  for (uint32_t r = 0; r < rows; ++r)
    counts[r] = (l.at<const int32_t>(1)[r] + 1) / static_cast<int32_t>(l.arg(3));
  topk_indices(l.exec, static_cast<TopkVersion>(l.arg(0)), l.at<const float>(0), u32(l, 1),
               counts.data(), rows, u32(l, 2), l.at<int32_t>(2));
}

// As topk, (..., loose): 1 compares scores by their upper 16 bits, so that near ones tie and the
// lower index wins.
void topk_loose_body(const Launch& l) {
  if (l.arg(5) == 0) return topk_body(l);
  const size_t count = size_t{u32(l, 4)} * u32(l, 1);
  thread_local std::vector<float> rounded;
  const auto* scores = l.at<const float>(0);
  rounded.resize(count);
  for (size_t i = 0; i < count; ++i)
    rounded[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(scores[i]) & 0xffff0000u);
  thread_local std::vector<int32_t> counts;
  counts.resize(u32(l, 4));
  for (uint32_t r = 0; r < u32(l, 4); ++r)
    counts[r] = (l.at<const int32_t>(1)[r] + 1) / static_cast<int32_t>(l.arg(3));
  topk_indices(l.exec, static_cast<TopkVersion>(l.arg(0)), rounded.data(), u32(l, 1), counts.data(),
               u32(l, 4), u32(l, 2), l.at<int32_t>(2));
}

}  // namespace

void add_indexer_kernels(KernelTable& table, KernelIds& ids) {
  ids.compress_latent = table.add({"compress_latent", 9, 8, compress_latent_body});
  ids.compress_index = table.add({"compress_index", 9, 10, compress_index_body});
  ids.index_query = table.add({"index_query", 3, 5, index_query_body});
  ids.index_scores = table.add({"index_scores", 6, 9, index_scores_body});
  ids.topk = table.add({"topk", 3, 5, topk_body});
  ids.topk_loose = table.add({"topk_loose", 3, 6, topk_loose_body});
}

}  // namespace redecode
