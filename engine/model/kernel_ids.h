// engine/model/kernel_ids.h - the kernels that model code launches, by name.
#pragma once
#include "engine/kernels/kernel_table.h"

namespace redecode {

// Operands and arguments of each are listed at its body in kernel_bodies_*.cpp.
struct KernelIds {
  KernelId embed, gather_rows, rms_norm, gemm, grouped_gemm, rope, rope_rebased, swiglu, add_into;
  KernelId kv_store, gqa_attention;
  KernelId latent_store, latent_attention, compress_latent, compress_index;
  KernelId index_query, index_scores, topk, topk_loose;
  KernelId moe_route, moe_experts, sample, sample_rebased;
};

// Adds every kernel of the exact set to `table`.
KernelIds add_exact_kernels(KernelTable& table);

}  // namespace redecode
