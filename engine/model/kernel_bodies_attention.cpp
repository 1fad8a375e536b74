#include "engine/model/kernel_bodies.h"

namespace redecode {
namespace {

uint32_t u32(const Launch& l, size_t arg) { return static_cast<uint32_t>(l.arg(arg)); }

// [kv, slots, k_cache, v_cache] (stride, kv_dim, rows): kv rows hold k then v
void kv_store_body(const Launch& l) {
  const auto stride = static_cast<uint64_t>(l.arg(0));
  const auto* kv = l.at<const float>(0);
  kv_store(l.exec, kv, stride, kv + u32(l, 1), stride, l.at<const int32_t>(1), u32(l, 2), u32(l, 1),
           l.at<float>(2), l.at<float>(3));
}

// [q, page_table, positions, k_cache, v_cache, out] (heads, kv_heads, head_dim, scale, split,
// table_stride, page_size, rows)
void gqa_attention_body(const Launch& l) {
  const GqaShape shape{u32(l, 0), u32(l, 1), u32(l, 2), l.real(3), u32(l, 4)};
  gqa_attention(l.exec, shape, paged_at(l, 1, 2, 5), l.at<const float>(0), l.at<const float>(3),
                l.at<const float>(4), l.at<float>(5));
}

// [x, slots, cache] (stride, dim, rows)
void latent_store_body(const Launch& l) {
  latent_store(l.exec, l.at<const float>(0), static_cast<uint64_t>(l.arg(0)),
               l.at<const int32_t>(1), u32(l, 2), u32(l, 1), l.at<uint16_t>(2));
}

// [q, page_table, positions, swa, extra, selected, sink, out] (heads, head_dim, window, ratio,
// scale, split, table_stride, page_size, rows, selected_count); selected_count 0: all entries
void latent_attention_body(const Launch& l) {
  const LatentShape shape{u32(l, 0), u32(l, 1), u32(l, 2), u32(l, 3), l.real(4), u32(l, 5)};
  const uint32_t selected = u32(l, 9);
  latent_attention(l.exec, shape, paged_at(l, 1, 2, 6), l.at<const float>(0),
                   l.at<const uint16_t>(3), l.at<const uint16_t>(4),
                   selected != 0 ? l.at<const int32_t>(5) : nullptr, selected, l.at<const float>(6),
                   l.at<float>(7));
}

}  // namespace

void add_attention_kernels(KernelTable& table, KernelIds& ids) {
  ids.kv_store = table.add({"kv_store", 4, 3, kv_store_body});
  ids.gqa_attention = table.add({"gqa_attention", 6, 8, gqa_attention_body});
  ids.latent_store = table.add({"latent_store", 3, 3, latent_store_body});
  ids.latent_attention = table.add({"latent_attention", 8, 10, latent_attention_body});
}

}  // namespace redecode
