#include <cmath>

#include "engine/model/dsv4_model.h"

namespace redecode {

Program Dsv4::lower(const Batch& batch, const LowerOptions& options) const {
  Emitter e(names_, persistents_, options.plan);
  Ops ops(e, kernels_, inputs_, inputs_id_, batch);
  const View h = ops.allocate(Lane::main, n_.h, config_.dim);
  ops.embed({Lane::main, n_.embed}, embedding_, h);
  for (uint32_t l = 0; l < layers_.size(); ++l) {
    e.set_layer(l);
    lower_attention(ops, options, layers_[l], h);
    lower_moe(ops, layers_[l], h);
  }
  lower_head(ops, h);
  return e.take();
}

// The host issues the indexer first, then the KV store and the compressor, then the query on the
// main stream: the order of the production engine, whose longest branch starts earliest.
void Dsv4::lower_attention(Ops& ops, const LowerOptions& options, const Dsv4Layer& w,
                           const View& h) const {
  const auto& c = config_;
  Emitter& e = ops.emitter();
  Held held;
  held.x = ops.allocate(Lane::main, n_.x, c.dim);
  ops.rms_norm({Lane::main, n_.attn_norm}, h, w.attn_norm, c.norm_eps, held.x);
  // Buffers that outlive a fork belong to the main stream, which hands them out: before the event
  // that their writers wait for, and frees them after the join.
  if (w.ratio == 4) held.index_w = ops.allocate(Lane::main, n_.index_w, c.index_heads);
  const Mark start = e.record(Lane::main, n_.fork);
  e.wait(Lane::kv, start, n_.fork);
  if (w.ratio != 0) e.wait(Lane::compressor, start, n_.fork);
  if (w.ratio == 4) e.wait(Lane::indexer, start, n_.fork);

  held.qkv_a = ops.allocate(Lane::main, n_.qkv_a, c.q_lora + c.head_dim);
  ops.gemm({Lane::main, n_.qkv_a_proj}, w.qkv_a, held.x, held.qkv_a);
  const Mark qkv_a_ready = e.record(Lane::main, n_.qkv_a_ready);
  held.q_lora = ops.allocate(Lane::main, n_.q_lora, c.q_lora);
  ops.rms_norm({Lane::main, n_.q_a_norm}, held.qkv_a.columns(0, c.q_lora), w.q_norm, c.norm_eps,
               held.q_lora);
  const Mark q_lora_ready = e.record(Lane::main, n_.q_lora_ready);

  if (w.ratio == 4)
    held.index_query = e.allocate(Lane::main, n_.index_query, ops.rows() * query_row_bytes());
  const View o = ops.allocate(Lane::main, n_.o, c.heads * c.head_dim);

  if (w.ratio == 4) lower_indexer(ops, options, w, held, q_lora_ready);
  lower_kv_store(ops, options, w, held.qkv_a, qkv_a_ready);
  if (w.ratio != 0) lower_compressor(ops, options, w, held.x);

  const View q = lower_query(ops, w, held.q_lora);
  e.wait_lane(Lane::main, Lane::kv, n_.join_kv);
  if (w.ratio != 0) e.wait_lane(Lane::main, Lane::compressor, n_.join_compressor);
  if (w.ratio == 4) {
    e.wait_lane(Lane::main, Lane::indexer, n_.join_indexer);
    e.free(held.index_query);
    ops.free(held.index_w);
  }
  ops.free(held.q_lora);
  ops.free(held.qkv_a);
  ops.free(held.x);

  launch_attention(ops, options, w, q, o);
  ops.free(q);
  lower_output_projection(ops, w, o, h);
}

View Dsv4::lower_query(Ops& ops, const Dsv4Layer& w, const View& q_lora) const {
  const auto& c = config_;
  const View q = ops.allocate(Lane::main, n_.q, c.heads * c.head_dim);
  ops.gemm({Lane::main, n_.q_b_proj}, w.q_b, q_lora, q);
  ops.head_norm({Lane::main, n_.q_b_norm}, q, c.heads, c.norm_eps);
  ops.rope({Lane::main, n_.q_rope}, q,
           {c.heads, c.head_dim, c.head_dim - c.rope_dim, c.rope_dim, c.rope_theta});
  return q;
}

void Dsv4::lower_kv_store(Ops& ops, const LowerOptions& options, const Dsv4Layer& w,
                          const View& qkv_a, const Mark& qkv_a_ready) const {
  const auto& c = config_;
  Emitter& e = ops.emitter();
  e.wait(Lane::kv, qkv_a_ready, n_.qkv_a_ready);
  const View kv = ops.allocate(Lane::kv, n_.kv, c.head_dim);
  ops.rms_norm({Lane::kv, n_.kv_norm}, qkv_a.columns(c.q_lora, c.head_dim), w.kv_norm, c.norm_eps,
               kv);
  ops.rope({Lane::kv, n_.kv_rope}, kv,
           {1, c.head_dim, c.head_dim - c.rope_dim, c.rope_dim, c.rope_theta});
  std::vector<Region> touched;
  if (options.list_touched)
    touch_slots(ops.batch(), latent_pages(w.swa_pages, 1), Access::write, touched);
  e.launch(Lane::kv, kernels_.latent_store, n_.kv_store,
           {ops.read(kv), ops.column(inputs_.slots, ops.rows()), {w.swa_pages}},
           {shape_arg(kv.stride), shape_arg(c.head_dim), shape_arg(ops.rows())}, touched);
  ops.free(kv);
}

void Dsv4::touch_compress(const Batch& batch, const PagedBuffer& state, const PagedBuffer& entries,
                          std::vector<Region>& out) const {
  touch_slots(batch, state, Access::write, out);
  for (uint32_t r = 0; r < batch.row_count(); ++r) {
    const uint32_t position = batch.rows[r].position;
    if ((position + 1) % entries.ratio == 0)
      touch_entries(batch, state, r, position + 1 - entries.ratio, position + 1, out);
  }
  touch_made_entries(batch, entries, out);
}

void Dsv4::lower_compressor(Ops& ops, const LowerOptions& options, const Dsv4Layer& w,
                            const View& x) const {
  const auto& c = config_;
  Emitter& e = ops.emitter();
  const View in = ops.allocate(Lane::compressor, n_.compress_in, 2 * c.head_dim);
  ops.gemm({Lane::compressor, n_.compress_proj}, w.kv_compress, x, in);
  const View entries = ops.allocate(Lane::compressor, n_.entries, c.head_dim);
  const View made = ops.allocate(Lane::compressor, n_.made, 1);
  std::vector<Region> touched;
  if (options.list_touched)
    touch_compress(ops.batch(), state_pages(w.kv_state, c.head_dim),
                   latent_pages(w.kv_pages, w.ratio), touched);
  e.launch(Lane::compressor, kernels_.compress_latent, n_.compress,
           {ops.read(in),
            ops.page_table(),
            ops.positions(),
            ops.column(inputs_.slots, ops.rows()),
            {w.kv_state},
            Ops::whole(w.kv_compress_norm),
            ops.scratch(entries),
            ops.scratch(made),
            {w.kv_pages}},
           {shape_arg(c.head_dim), shape_arg(w.ratio), shape_arg(c.rope_dim), real_arg(c.norm_eps),
            real_arg(c.compress_theta), shape_arg(inputs_.table_stride),
            shape_arg(settings_.page_size), shape_arg(ops.rows())},
           touched);
  ops.free(made);
  ops.free(entries);
  ops.free(in);
}

void Dsv4::launch_attention(Ops& ops, const LowerOptions& options, const Dsv4Layer& w,
                            const View& q, const View& out) const {
  const auto& c = config_;
  std::vector<Region> touched;
  if (options.list_touched) {
    touch_history(ops.batch(), latent_pages(w.swa_pages, 1), c.window, touched);
    if (w.ratio != 0) touch_history(ops.batch(), latent_pages(w.kv_pages, w.ratio), 0, touched);
  }
  const bool sparse = w.ratio == 4;
  const uint64_t row_bytes = uint64_t{c.index_topk} * 4;
  const Region selected{c4_indices_, sparse ? Access::read : Access::none, 0,
                        ops.rows() * row_bytes, static_cast<uint32_t>(row_bytes)};
  const float scale = 1.0f / std::sqrt(static_cast<float>(c.head_dim));
  ops.emitter().launch(
      Lane::main, kernels_.latent_attention, n_.attention,
      {ops.read(q),
       ops.page_table(),
       ops.positions(),
       {w.swa_pages},
       {w.ratio != 0 ? w.kv_pages : w.swa_pages},
       selected,
       Ops::whole(w.sink),
       ops.write(out)},
      {shape_arg(c.heads), shape_arg(c.head_dim), shape_arg(c.window), shape_arg(w.ratio),
       real_arg(scale), Arg{options.split.keys(ops.rows()), ArgKind::reduction},
       shape_arg(inputs_.table_stride), shape_arg(settings_.page_size), shape_arg(ops.rows()),
       shape_arg(sparse ? c.index_topk : 0)},
      touched);
}

void Dsv4::lower_output_projection(Ops& ops, const Dsv4Layer& w, const View& o,
                                   const View& h) const {
  const auto& c = config_;
  ops.rope({Lane::main, n_.o_rope}, o,
           {c.heads, c.head_dim, c.head_dim - c.rope_dim, c.rope_dim, c.rope_theta, true});
  const View o_a = ops.allocate(Lane::main, n_.o_a, c.o_groups * c.o_lora);
  ops.grouped_gemm({Lane::main, n_.o_a_proj}, w.o_a, c.o_groups, o, o_a);
  ops.free(o);
  const View proj = ops.allocate(Lane::main, n_.proj, c.dim);
  ops.gemm({Lane::main, n_.o_b_proj}, w.o_b, o_a, proj);
  ops.free(o_a);
  ops.add_into({Lane::main, n_.attn_add}, h, proj);
  ops.free(proj);
}

void Dsv4::lower_head(Ops& ops, const View& h) const {
  const uint32_t count = ops.batch().output_count();
  if (count == 0) {
    ops.free(h);
    return;
  }
  const View x = ops.allocate(Lane::main, n_.x, config_.dim);
  ops.rms_norm({Lane::main, n_.final_norm}, h, final_norm_, config_.norm_eps, x);
  ops.free(h);
  const View gathered = ops.allocate(Lane::main, n_.output_h, config_.dim);
  ops.gather_outputs({Lane::main, n_.gather}, x, gathered);
  ops.free(x);
  const View logits{logits_id_, config_.vocab, config_.vocab, 0};
  ops.gemm({Lane::main, n_.lm_head}, head_, gathered, logits, count);
  ops.free(gathered);
  ops.sample({Lane::main, n_.sample}, logits_id_, config_.vocab, tokens_id_);
}

}  // namespace redecode
