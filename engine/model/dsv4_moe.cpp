#include "engine/kernels/moe.h"

#include "engine/model/dsv4_model.h"

namespace redecode {

// The shared expert runs on the kv lane beside the routed experts, as in production; the sum is
// collected in a zeroed buffer.
void Dsv4::lower_moe(Ops& ops, const Dsv4Layer& w, const View& h) const {
  const auto& c = config_;
  Emitter& e = ops.emitter();
  const View x = ops.allocate(Lane::main, n_.x, c.dim);
  ops.rms_norm({Lane::main, n_.ffn_norm}, h, w.ffn_norm, c.norm_eps, x);

  const View shared = ops.allocate(Lane::main, n_.shared, c.dim);
  e.wait_lane(Lane::kv, Lane::main, n_.fork_shared);
  const View gate_up = ops.allocate(Lane::kv, n_.shared_in, 2 * c.inter);
  ops.gemm({Lane::kv, n_.shared_gate_up}, w.shared_gate_up, x, gate_up);
  const View inner = ops.allocate(Lane::kv, n_.shared_inner, c.inter);
  ops.swiglu({Lane::kv, n_.shared_act}, gate_up, inner);
  ops.gemm({Lane::kv, n_.shared_down}, w.shared_down, inner, shared);
  ops.free(gate_up);
  ops.free(inner);

  const View routed = lower_routed(ops, w, x);
  const View sum = ops.allocate(Lane::main, n_.moe_sum, c.dim);
  e.fill(Lane::main, n_.moe_zero, ops.write(sum), 0);
  ops.add_into({Lane::main, n_.moe_add_routed}, sum, routed);
  ops.free(routed);
  e.wait_lane(Lane::main, Lane::kv, n_.join_shared);
  ops.add_into({Lane::main, n_.moe_add_shared}, sum, shared);
  ops.free(shared);
  ops.free(x);
  ops.add_into({Lane::main, n_.ffn_add}, h, sum);
  ops.free(sum);
}

View Dsv4::lower_routed(Ops& ops, const Dsv4Layer& w, const View& x) const {
  const auto& c = config_;
  Emitter& e = ops.emitter();
  const uint32_t k = c.experts_per_token;
  const View logits = ops.allocate(Lane::main, n_.gate_logits, c.experts);
  ops.gemm({Lane::main, n_.gate_proj}, w.gate, x, logits);
  const View ids = ops.allocate(Lane::main, n_.ids, k);
  const View weights = ops.allocate(Lane::main, n_.weights, k);
  e.launch(Lane::main, kernels_.moe_route, n_.route,
           {ops.read(logits), Ops::whole(w.gate_bias), ops.write(ids), ops.write(weights)},
           {shape_arg(c.experts), shape_arg(k), real_arg(c.routed_scaling), shape_arg(ops.rows())});
  ops.free(logits);
  const uint64_t scratch_bytes = moe_scratch_floats(ops.rows(), k, c.dim, c.inter) * 4;
  const BufferId scratch = e.allocate(Lane::main, n_.scratch, scratch_bytes);
  const View routed = ops.allocate(Lane::main, n_.routed, c.dim);
  e.launch(Lane::main, kernels_.moe_experts, n_.experts,
           {Ops::whole(w.gate_w),
            Ops::whole(w.up_w),
            Ops::whole(w.down_w),
            ops.read(x),
            ops.read(ids),
            ops.read(weights),
            {scratch, Access::scratch, 0, scratch_bytes},
            ops.write(routed)},
           {shape_arg(static_cast<int64_t>(c.expert)), shape_arg(c.dim), shape_arg(c.inter),
            shape_arg(c.experts), shape_arg(k), shape_arg(ops.rows())});
  e.free(scratch);
  ops.free(ids);
  ops.free(weights);
  return routed;
}

}  // namespace redecode
