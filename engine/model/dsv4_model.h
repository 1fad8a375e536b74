// engine/model/dsv4_model.h - Dsv4: the model behind make_dsv4; private to engine/model.
//
// Split over dsv4.cpp (buffers and weights), dsv4_attention.cpp, dsv4_indexer.cpp and dsv4_moe.cpp
// (lowering).
#pragma once
#include <string>
#include <vector>

#include "engine/model/dsv4.h"
#include "engine/model/ops.h"
#include "engine/model/touched.h"
#include "engine/model/weights.h"

namespace redecode {

struct Dsv4Layer {
  uint32_t ratio = 0;
  Weight attn_norm, qkv_a, q_norm, kv_norm, q_b, sink, o_a, o_b;
  Weight kv_compress, kv_compress_norm;                          // ratio > 0
  Weight index_compress, index_compress_norm, index_q, index_w;  // ratio 4
  Weight ffn_norm, gate, gate_bias, gate_w, up_w, down_w, shared_gate_up, shared_down;
  BufferId swa_pages, kv_pages, kv_state, index_pages, index_state;
};

struct Dsv4Names {
  // Buffers.
  NameId h, x, qkv_a, q_lora, kv, q, o, o_a, proj, compress_in, entries, made, index_in, index_w,
      index_raw, index_query, index_logits, gate_logits, ids, weights, scratch, routed, shared_in,
      shared_inner, shared, moe_sum, output_h;
  // Ops.
  NameId embed, attn_norm, qkv_a_proj, q_a_norm, kv_norm, kv_rope, kv_store, q_b_proj, q_b_norm,
      q_rope, attention, o_rope, o_a_proj, o_b_proj, attn_add, compress_proj, compress, idx_proj,
      idx_compress, idx_weights, idx_q_proj, idx_q_rope, idx_query, idx_logits, idx_topk, ffn_norm,
      gate_proj, route, experts, shared_gate_up, shared_act, shared_down, moe_zero, moe_add_routed,
      moe_add_shared, ffn_add, final_norm, gather, lm_head, sample;
  // Edges.
  NameId fork, fork_indexer, qkv_a_ready, q_lora_ready, index_w_ready, join_index_q, join_kv,
      join_compressor, join_indexer, fork_shared, join_shared;
};

class Dsv4 final : public Model {
 public:
  Dsv4(const Dsv4Config& config, EngineSettings settings, const KernelIds& kernels,
       IndexKeyType index_key, uint64_t seed, std::string spec);

  Program lower(const Batch& batch, const LowerOptions& options) const override;
  void each_weight(
      const std::function<void(BufferId, std::span<const std::byte>)>& sink) const override {
    weights_.each(seed_, sink);
  }
  uint64_t weight_bytes() const override { return weights_.size_bytes(); }

 private:
  // What a layer's attention holds while its side streams run.
  struct Held {
    View x, qkv_a, q_lora, index_w;
    BufferId index_query;
  };

  Weight add_weight(const std::string& name, DType dtype, uint32_t rows, uint32_t cols,
                    WeightSet::Init init, uint32_t count = 1);
  Dsv4Layer add_layer(uint32_t layer);
  void add_layer_pages(const std::string& prefix, Dsv4Layer& w);
  void intern_buffer_names();
  void intern_op_names();

  void lower_attention(Ops& ops, const LowerOptions& options, const Dsv4Layer& w,
                       const View& h) const;
  void lower_indexer(Ops& ops, const LowerOptions& options, const Dsv4Layer& w, Held& held,
                     const Mark& q_lora_ready) const;
  void launch_index_compress(Ops& ops, const LowerOptions& options, const Dsv4Layer& w,
                             const View& x) const;
  void launch_index_scores(Ops& ops, const LowerOptions& options, const Dsv4Layer& w,
                           const Held& held) const;
  void lower_kv_store(Ops& ops, const LowerOptions& options, const Dsv4Layer& w, const View& qkv_a,
                      const Mark& qkv_a_ready) const;
  void lower_compressor(Ops& ops, const LowerOptions& options, const Dsv4Layer& w,
                        const View& x) const;
  View lower_query(Ops& ops, const Dsv4Layer& w, const View& q_lora) const;
  uint64_t query_row_bytes() const;
  void launch_attention(Ops& ops, const LowerOptions& options, const Dsv4Layer& w, const View& q,
                        const View& out) const;
  void lower_output_projection(Ops& ops, const Dsv4Layer& w, const View& o, const View& h) const;
  void lower_moe(Ops& ops, const Dsv4Layer& w, const View& h) const;
  View lower_routed(Ops& ops, const Dsv4Layer& w, const View& x) const;
  void lower_head(Ops& ops, const View& h) const;

  PagedBuffer latent_pages(BufferId buffer, uint32_t ratio) const;
  PagedBuffer state_pages(BufferId buffer, uint32_t dim) const;
  PagedBuffer index_pages(BufferId buffer, IndexKeyType page_type) const;
  void touch_compress(const Batch& batch, const PagedBuffer& state, const PagedBuffer& entries,
                      std::vector<Region>& out) const;

  Dsv4Config config_;
  uint64_t seed_;
  WeightSet weights_;
  Weight embedding_, final_norm_, head_;
  std::vector<Dsv4Layer> layers_;
  BufferId c4_indices_;  // [max_batch_rows, index_topk] i32, one for all ratio-4 layers
  Dsv4Names n_{};
};

}  // namespace redecode
