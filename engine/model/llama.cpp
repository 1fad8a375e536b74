#include "engine/model/llama.h"

#include <cmath>
#include <utility>

#include "engine/model/ops.h"
#include "engine/model/touched.h"
#include "engine/model/weights.h"
#include "traces/check.h"

namespace redecode {
namespace {

struct LayerWeights {
  Weight attn_norm, q, kv, o, ffn_norm, gate_up, down;
  BufferId k_cache, v_cache;
};

struct Names {
  NameId h, x, q, kv, attn_out, proj, gate_up, inner, outputs;
  NameId embed, attn_norm, q_proj, kv_proj, q_rope, k_rope, kv_store, attention, o_proj, attn_add;
  NameId ffn_norm, gate_up_proj, swiglu, down_proj, ffn_add, gather, final_norm, lm_head, sample;
  NameId fork_kv, join_kv;
};

class Llama final : public Model {
 public:
  Llama(const LlamaConfig& config, EngineSettings settings, const KernelIds& kernels, uint64_t seed,
        std::string spec, LlamaWeights* given);

  Program lower(const Batch& batch, const LowerOptions& options) const override;
  void each_weight(
      const std::function<void(BufferId, std::span<const std::byte>)>& sink) const override {
    weights_.each(seed_, sink);
  }
  uint64_t weight_bytes() const override { return weights_.size_bytes(); }

 private:
  Weight add_weight(const std::string& name, DType dtype, uint32_t rows, uint32_t cols,
                    WeightSet::Init init, std::vector<float>* given);
  void add_layer(uint32_t layer, LlamaWeights* given);
  void intern_names();
  void lower_attention(Ops& ops, const LowerOptions& options, uint32_t layer, const View& h) const;
  void launch_attention(Ops& ops, const LowerOptions& options, uint32_t layer, const View& q,
                        const View& out) const;
  void lower_ffn(Ops& ops, uint32_t layer, const View& h) const;
  void lower_head(Ops& ops, const View& h) const;
  PagedBuffer paged(BufferId cache) const;

  LlamaConfig config_;
  uint64_t seed_;
  WeightSet weights_;
  Weight embedding_, final_norm_, head_;
  std::vector<LayerWeights> layers_;
  Names n_{};
};

float spread(uint32_t cols) { return std::sqrt(3.0f / static_cast<float>(cols)); }

Digest config_digest(const LlamaConfig& c) {
  const uint32_t fields[] = {c.dim,      c.hidden, c.layers,      c.heads,
                             c.kv_heads, c.vocab,  c.max_seq_len, static_cast<uint32_t>(c.dtype)};
  return combine(digest_span(std::span<const uint32_t>(fields)), digest_text("llama"));
}

Llama::Llama(const LlamaConfig& config, EngineSettings settings, const KernelIds& kernels,
             uint64_t seed, std::string spec, LlamaWeights* given)
    : Model(std::move(settings), IndexKeyType::bf16, kernels), config_(config), seed_(seed) {
  const auto& c = config_;
  embedding_ = add_weight("embedding", c.dtype, c.vocab, c.dim, {0, 1.0f},
                          given ? &given->embedding : nullptr);
  for (uint32_t l = 0; l < c.layers; ++l) add_layer(l, given);
  final_norm_ = add_weight("final_norm", DType::f32, 1, c.dim, {1.0f, 0.1f},
                           given ? &given->final_norm : nullptr);
  head_ = add_weight("lm_head", c.dtype, c.vocab, c.dim, {0, 3.0f * spread(c.dim)},
                     given ? &given->head : nullptr);
  add_frame_buffers(c.vocab);
  intern_names();
  freeze();
  identity_ = {"llama", std::move(spec), config_digest(c), 0, c.vocab, c.layers};
}

Weight Llama::add_weight(const std::string& name, DType dtype, uint32_t rows, uint32_t cols,
                         WeightSet::Init init, std::vector<float>* given) {
  Weight w{{}, dtype, rows, cols, 1};
  w.buffer = add_persistent(name, w.size_bytes());
  if (given)
    weights_.add(w, std::move(*given));
  else
    weights_.add(w, init);
  return w;
}

void Llama::add_layer(uint32_t layer, LlamaWeights* given) {
  const auto& c = config_;
  auto* g = given ? &given->layers.at(layer) : nullptr;
  const std::string p = "L" + std::to_string(layer) + ".";
  const float in = spread(c.dim);
  LayerWeights w;
  w.attn_norm =
      add_weight(p + "attn_norm", DType::f32, 1, c.dim, {1.0f, 0.1f}, g ? &g->attn_norm : nullptr);
  w.q = add_weight(p + "wq", c.dtype, c.dim, c.dim, {0, 2 * in}, g ? &g->q : nullptr);
  w.kv = add_weight(p + "wkv", c.dtype, 2 * c.kv_dim(), c.dim, {0, 2 * in}, g ? &g->kv : nullptr);
  w.o = add_weight(p + "wo", c.dtype, c.dim, c.dim, {0, in}, g ? &g->o : nullptr);
  w.ffn_norm =
      add_weight(p + "ffn_norm", DType::f32, 1, c.dim, {1.0f, 0.1f}, g ? &g->ffn_norm : nullptr);
  w.gate_up =
      add_weight(p + "w_gate_up", c.dtype, 2 * c.hidden, c.dim, {0, in}, g ? &g->gate_up : nullptr);
  w.down = add_weight(p + "w_down", c.dtype, c.dim, c.hidden, {0, spread(c.hidden)},
                      g ? &g->down : nullptr);
  const uint64_t page_bytes = uint64_t{settings_.page_size} * c.kv_dim() * 4;
  w.k_cache = add_persistent(p + "k_pages", settings_.page_count * page_bytes, page_bytes);
  w.v_cache = add_persistent(p + "v_pages", settings_.page_count * page_bytes, page_bytes);
  layers_.push_back(w);
}

void Llama::intern_names() {
  n_ = {intern("h"),        intern("attn_x"),     intern("q"),
        intern("kv"),       intern("attn_out"),   intern("proj"),
        intern("gate_up"),  intern("ffn_inner"),  intern("output_h"),
        intern("embed"),    intern("attn_norm"),  intern("q_proj"),
        intern("kv_proj"),  intern("q_rope"),     intern("k_rope"),
        intern("kv_store"), intern("attention"),  intern("o_proj"),
        intern("attn_add"), intern("ffn_norm"),   intern("gate_up_proj"),
        intern("swiglu"),   intern("down_proj"),  intern("ffn_add"),
        intern("gather"),   intern("final_norm"), intern("lm_head"),
        intern("sample"),   intern("fork.kv"),    intern("join.kv")};
}

PagedBuffer Llama::paged(BufferId cache) const {
  const uint64_t entry = uint64_t{config_.kv_dim()} * 4;
  return {cache, 1, entry, settings_.page_size * entry};
}

Program Llama::lower(const Batch& batch, const LowerOptions& options) const {
  Emitter e(names_, persistents_, options.plan);
  Ops ops(e, kernels_, inputs_, inputs_id_, batch);
  const View h = ops.allocate(Lane::main, n_.h, config_.dim);
  ops.embed({Lane::main, n_.embed}, embedding_, h);
  for (uint32_t l = 0; l < config_.layers; ++l) {
    e.set_layer(l);
    lower_attention(ops, options, l, h);
    lower_ffn(ops, l, h);
  }
  lower_head(ops, h);
  return e.take();
}

void Llama::lower_attention(Ops& ops, const LowerOptions& options, uint32_t layer,
                            const View& h) const {
  const auto& c = config_;
  const LayerWeights& w = layers_[layer];
  Emitter& e = ops.emitter();
  const View x = ops.allocate(Lane::main, n_.x, c.dim);
  ops.rms_norm({Lane::main, n_.attn_norm}, h, w.attn_norm, c.norm_eps, x);

  e.wait_lane(Lane::kv, Lane::main, n_.fork_kv);
  const View kv = ops.allocate(Lane::kv, n_.kv, 2 * c.kv_dim());
  ops.gemm({Lane::kv, n_.kv_proj}, w.kv, x, kv);
  ops.rope({Lane::kv, n_.k_rope}, kv.columns(0, c.kv_dim()),
           {c.kv_heads, c.head_dim(), 0, c.head_dim(), c.rope_theta});
  std::vector<Region> touched;
  if (options.list_touched) {
    touch_slots(ops.batch(), paged(w.k_cache), Access::write, touched);
    touch_slots(ops.batch(), paged(w.v_cache), Access::write, touched);
  }
  e.launch(Lane::kv, kernels_.kv_store, n_.kv_store,
           {ops.read(kv), ops.column(inputs_.slots, ops.rows()), {w.k_cache}, {w.v_cache}},
           {shape_arg(kv.stride), shape_arg(c.kv_dim()), shape_arg(ops.rows())}, touched);

  const View q = ops.allocate(Lane::main, n_.q, c.dim);
  ops.gemm({Lane::main, n_.q_proj}, w.q, x, q);
  ops.rope({Lane::main, n_.q_rope}, q, {c.heads, c.head_dim(), 0, c.head_dim(), c.rope_theta});
  e.wait_lane(Lane::main, Lane::kv, n_.join_kv);
  ops.free(kv);
  ops.free(x);

  const View out = ops.allocate(Lane::main, n_.attn_out, c.dim);
  launch_attention(ops, options, layer, q, out);
  ops.free(q);
  const View proj = ops.allocate(Lane::main, n_.proj, c.dim);
  ops.gemm({Lane::main, n_.o_proj}, w.o, out, proj);
  ops.free(out);
  ops.add_into({Lane::main, n_.attn_add}, h, proj);
  ops.free(proj);
}

void Llama::launch_attention(Ops& ops, const LowerOptions& options, uint32_t layer, const View& q,
                             const View& out) const {
  const auto& c = config_;
  const LayerWeights& w = layers_[layer];
  std::vector<Region> touched;
  if (options.list_touched) {
    touch_history(ops.batch(), paged(w.k_cache), 0, touched);
    touch_history(ops.batch(), paged(w.v_cache), 0, touched);
  }
  const float scale = 1.0f / std::sqrt(static_cast<float>(c.head_dim()));
  ops.emitter().launch(
      Lane::main, kernels_.gqa_attention, n_.attention,
      {ops.read(q), ops.page_table(), ops.positions(), {w.k_cache}, {w.v_cache}, ops.write(out)},
      {shape_arg(c.heads), shape_arg(c.kv_heads), shape_arg(c.head_dim()), real_arg(scale),
       Arg{options.split.keys(ops.rows()), ArgKind::reduction}, shape_arg(inputs_.table_stride),
       shape_arg(settings_.page_size), shape_arg(ops.rows())},
      touched);
}

void Llama::lower_ffn(Ops& ops, uint32_t layer, const View& h) const {
  const auto& c = config_;
  const LayerWeights& w = layers_[layer];
  const View x = ops.allocate(Lane::main, n_.x, c.dim);
  ops.rms_norm({Lane::main, n_.ffn_norm}, h, w.ffn_norm, c.norm_eps, x);
  const View gate_up = ops.allocate(Lane::main, n_.gate_up, 2 * c.hidden);
  ops.gemm({Lane::main, n_.gate_up_proj}, w.gate_up, x, gate_up);
  ops.free(x);
  const View inner = ops.allocate(Lane::main, n_.inner, c.hidden);
  ops.swiglu({Lane::main, n_.swiglu}, gate_up, inner);
  ops.free(gate_up);
  const View proj = ops.allocate(Lane::main, n_.proj, c.dim);
  ops.gemm({Lane::main, n_.down_proj}, w.down, inner, proj);
  ops.free(inner);
  ops.add_into({Lane::main, n_.ffn_add}, h, proj);
  ops.free(proj);
}

void Llama::lower_head(Ops& ops, const View& h) const {
  const uint32_t count = ops.batch().output_count();
  if (count == 0) {
    ops.free(h);
    return;
  }
  const View x = ops.allocate(Lane::main, n_.x, config_.dim);
  ops.rms_norm({Lane::main, n_.final_norm}, h, final_norm_, config_.norm_eps, x);
  ops.free(h);
  const View gathered = ops.allocate(Lane::main, n_.outputs, config_.dim);
  ops.gather_outputs({Lane::main, n_.gather}, x, gathered);
  ops.free(x);
  const View logits{logits_id_, config_.vocab, config_.vocab, 0};
  ops.gemm({Lane::main, n_.lm_head}, head_, gathered, logits, count);
  ops.free(gathered);
  ops.sample({Lane::main, n_.sample}, logits_id_, config_.vocab, tokens_id_);
}

}  // namespace

std::unique_ptr<Model> make_llama(const LlamaConfig& config, const EngineSettings& settings,
                                  const KernelIds& kernels, uint64_t seed, std::string spec) {
  return std::make_unique<Llama>(config, settings, kernels, seed, std::move(spec), nullptr);
}

std::unique_ptr<Model> make_llama(const LlamaConfig& config, const EngineSettings& settings,
                                  const KernelIds& kernels, LlamaWeights weights,
                                  std::string spec) {
  return std::make_unique<Llama>(config, settings, kernels, 0, std::move(spec), &weights);
}

}  // namespace redecode
