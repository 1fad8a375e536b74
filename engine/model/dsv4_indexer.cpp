#include "engine/kernels/indexer.h"

#include <cmath>

#include "engine/model/dsv4_model.h"

namespace redecode {

uint64_t Dsv4::query_row_bytes() const {
  return uint64_t{config_.index_heads} * index_query_bytes(index_key_, config_.index_dim);
}

// Three lanes: index keys, scores and top-k on `indexer`; the query projection on `index_q`; the
// weights on `index_w`.
void Dsv4::lower_indexer(Ops& ops, const LowerOptions& options, const Dsv4Layer& w, Held& held,
                         const Mark& q_lora_ready) const {
  const auto& c = config_;
  Emitter& e = ops.emitter();
  e.wait_lane(Lane::index_q, Lane::indexer, n_.fork_indexer);
  e.wait_lane(Lane::index_w, Lane::indexer, n_.fork_indexer);
  launch_index_compress(ops, options, w, held.x);

  ops.gemm({Lane::index_w, n_.idx_weights}, w.index_w, held.x, held.index_w);
  const Mark weights_ready = e.record(Lane::index_w, n_.index_w_ready);

  e.wait(Lane::index_q, q_lora_ready, n_.q_lora_ready);
  e.wait(Lane::index_q, weights_ready, n_.index_w_ready);
  const View raw = ops.allocate(Lane::index_q, n_.index_raw, c.index_heads * c.index_dim);
  ops.gemm({Lane::index_q, n_.idx_q_proj}, w.index_q, held.q_lora, raw);
  ops.rope({Lane::index_q, n_.idx_q_rope}, raw,
           {c.index_heads, c.index_dim, c.index_dim - c.rope_dim, c.rope_dim, c.compress_theta});
  const float weight_scale =
      1.0f / std::sqrt(static_cast<float>(c.index_heads) * static_cast<float>(c.index_dim));
  e.launch(Lane::index_q, kernels_.index_query, n_.idx_query,
           {ops.update(raw),
            ops.update(held.index_w),
            {held.index_query, Access::write, 0, ops.rows() * query_row_bytes(),
             static_cast<uint32_t>(query_row_bytes())}},
           {shape_arg(static_cast<int64_t>(index_key_)), shape_arg(c.index_heads),
            shape_arg(c.index_dim), real_arg(weight_scale), shape_arg(ops.rows())});
  ops.free(raw);

  e.wait_lane(Lane::indexer, Lane::index_q, n_.join_index_q);
  launch_index_scores(ops, options, w, held);
}

void Dsv4::launch_index_compress(Ops& ops, const LowerOptions& options, const Dsv4Layer& w,
                                 const View& x) const {
  const auto& c = config_;
  Emitter& e = ops.emitter();
  const View in = ops.allocate(Lane::indexer, n_.index_in, 2 * c.index_dim);
  ops.gemm({Lane::indexer, n_.idx_proj}, w.index_compress, x, in);
  const View entries = ops.allocate(Lane::indexer, n_.entries, c.index_dim);
  const View made = ops.allocate(Lane::indexer, n_.made, 1);
  const PagedBuffer pages = index_pages(w.index_pages, options.page_type);
  std::vector<Region> touched;
  if (options.list_touched)
    touch_compress(ops.batch(), state_pages(w.index_state, c.index_dim), pages, touched);
  e.launch(
      Lane::indexer, kernels_.compress_index, n_.idx_compress,
      {ops.read(in),
       ops.page_table(),
       ops.positions(),
       ops.column(inputs_.slots, ops.rows()),
       {w.index_state},
       Ops::whole(w.index_compress_norm),
       ops.scratch(entries),
       ops.scratch(made),
       {w.index_pages}},
      {shape_arg(c.index_dim), shape_arg(4), shape_arg(c.rope_dim), real_arg(c.norm_eps),
       real_arg(c.compress_theta), shape_arg(inputs_.table_stride), shape_arg(settings_.page_size),
       shape_arg(ops.rows()), shape_arg(static_cast<int64_t>(index_key_)),
       Arg{static_cast<int64_t>(pages.page_stride_bytes), ArgKind::page_stride}},
      touched);
  ops.free(made);
  ops.free(entries);
  ops.free(in);
}

void Dsv4::launch_index_scores(Ops& ops, const LowerOptions& options, const Dsv4Layer& w,
                               const Held& held) const {
  const auto& c = config_;
  Emitter& e = ops.emitter();
  const uint32_t width = settings_.max_seq_len / 4;
  const View logits = ops.allocate(Lane::indexer, n_.index_logits, width);
  const PagedBuffer pages = index_pages(w.index_pages, options.page_type);
  std::vector<Region> touched;
  if (options.list_touched) touch_history(ops.batch(), pages, 0, touched);
  e.launch(
      Lane::indexer, kernels_.index_scores, n_.idx_logits,
      {{held.index_query, Access::read, 0, ops.rows() * query_row_bytes(),
        static_cast<uint32_t>(query_row_bytes())},
       ops.read(held.index_w),
       ops.page_table(),
       ops.positions(),
       {w.index_pages},
       ops.write(logits)},
      {shape_arg(static_cast<int64_t>(index_key_)), shape_arg(4), shape_arg(c.index_heads),
       shape_arg(c.index_dim),
       Arg{static_cast<int64_t>(pages.page_stride_bytes), ArgKind::page_stride}, shape_arg(width),
       shape_arg(inputs_.table_stride), shape_arg(settings_.page_size), shape_arg(ops.rows())},
      touched);
  const uint64_t out_row_bytes = uint64_t{c.index_topk} * 4;
  e.launch(Lane::indexer, kernels_.topk, n_.idx_topk,
           {ops.read(logits),
            ops.positions(),
            {c4_indices_, Access::write, 0, ops.rows() * out_row_bytes,
             static_cast<uint32_t>(out_row_bytes)}},
           {shape_arg(static_cast<int64_t>(options.topk)), shape_arg(width),
            shape_arg(c.index_topk), shape_arg(4), shape_arg(ops.rows())});
  ops.free(logits);
}

}  // namespace redecode
