#include "engine/model/dsv4.h"

#include <cmath>
#include <utility>

#include "engine/kernels/indexer.h"
#include "engine/model/dsv4_model.h"
#include "traces/check.h"

namespace redecode {
namespace {

float spread(uint32_t cols) { return std::sqrt(3.0f / static_cast<float>(cols)); }

Digest config_digest(const Dsv4Config& c) {
  std::vector<uint32_t> f = {c.dim,
                             c.heads,
                             c.head_dim,
                             c.rope_dim,
                             c.q_lora,
                             c.o_groups,
                             c.o_lora,
                             c.window,
                             c.index_heads,
                             c.index_dim,
                             c.index_topk,
                             c.experts,
                             c.experts_per_token,
                             c.inter,
                             c.vocab,
                             c.max_seq_len,
                             static_cast<uint32_t>(c.dense),
                             static_cast<uint32_t>(c.expert)};
  f.insert(f.end(), c.ratios.begin(), c.ratios.end());
  return combine(digest_span(std::span<const uint32_t>(f)), digest_text("dsv4"));
}

}  // namespace

Dsv4Config dsv4_small() {
  Dsv4Config c;
  c.dim = 128;
  c.heads = 4;
  c.head_dim = 64;
  c.rope_dim = 16;
  c.q_lora = 64;
  c.o_groups = 2;
  c.o_lora = 64;
  c.window = 64;
  c.index_heads = 4;
  c.index_dim = 128;
  c.index_topk = 16;
  c.experts = 8;
  c.experts_per_token = 2;
  c.inter = 64;
  c.vocab = 512;
  c.max_seq_len = 1024;
  c.ratios = {0, 4, 128, 4};
  return c;
}

Dsv4Config dsv4_flash() {
  Dsv4Config c;
  c.dim = 4096;
  c.heads = 64;
  c.head_dim = 512;
  c.rope_dim = 64;
  c.q_lora = 1024;
  c.o_groups = 8;
  c.o_lora = 1024;
  c.window = 128;
  c.index_heads = 64;
  c.index_dim = 128;
  c.index_topk = 512;
  c.experts = 256;
  c.experts_per_token = 6;
  c.inter = 2048;
  c.vocab = 129280;
  c.max_seq_len = 1048576;
  for (uint32_t l = 0; l < 43; ++l) c.ratios.push_back(l < 2 ? 0 : l % 2 == 0 ? 4 : 128);
  return c;
}

std::unique_ptr<Model> make_dsv4(const Dsv4Config& config, const EngineSettings& settings,
                                 const KernelIds& kernels, IndexKeyType index_key, uint64_t seed,
                                 std::string spec) {
  return std::make_unique<Dsv4>(config, settings, kernels, index_key, seed, std::move(spec));
}

Dsv4::Dsv4(const Dsv4Config& config, EngineSettings settings, const KernelIds& kernels,
           IndexKeyType index_key, uint64_t seed, std::string spec)
    : Model(std::move(settings), index_key, kernels), config_(config), seed_(seed) {
  const auto& c = config_;
  for (const uint32_t ratio : c.ratios)
    REDECODE_CHECK(ratio == 0 || settings_.page_size % ratio == 0);
  embedding_ = add_weight("embedding", c.dense, c.vocab, c.dim, {0, 1.0f});
  for (uint32_t l = 0; l < c.ratios.size(); ++l) layers_.push_back(add_layer(l));
  final_norm_ = add_weight("final_norm", DType::f32, 1, c.dim, {1.0f, 0.1f});
  head_ = add_weight("lm_head", c.dense, c.vocab, c.dim, {0, 3.0f * spread(c.dim)});
  c4_indices_ = add_persistent("c4_indices", uint64_t{settings_.max_batch_rows} * c.index_topk * 4);
  add_frame_buffers(c.vocab);
  intern_buffer_names();
  intern_op_names();
  freeze();
  identity_ = {"dsv4", std::move(spec), config_digest(c),
               0,      c.vocab,         static_cast<uint32_t>(c.ratios.size())};
}

Weight Dsv4::add_weight(const std::string& name, DType dtype, uint32_t rows, uint32_t cols,
                        WeightSet::Init init, uint32_t count) {
  Weight w{{}, dtype, rows, cols, count};
  w.buffer = add_persistent(name, w.size_bytes());
  weights_.add(w, init);
  return w;
}

Dsv4Layer Dsv4::add_layer(uint32_t layer) {
  const auto& c = config_;
  const std::string p = "L" + std::to_string(layer) + ".";
  const float in = spread(c.dim);
  constexpr WeightSet::Init kNorm{1.0f, 0.1f};
  Dsv4Layer w;
  w.ratio = c.ratios[layer];
  w.attn_norm = add_weight(p + "attn_norm", DType::f32, 1, c.dim, kNorm);
  w.qkv_a = add_weight(p + "wqkv_a", c.dense, c.q_lora + c.head_dim, c.dim, {0, in});
  w.q_norm = add_weight(p + "q_norm", DType::f32, 1, c.q_lora, kNorm);
  w.kv_norm = add_weight(p + "kv_norm", DType::f32, 1, c.head_dim, kNorm);
  w.q_b = add_weight(p + "wq_b", c.dense, c.heads * c.head_dim, c.q_lora, {0, spread(c.q_lora)});
  w.sink = add_weight(p + "attn_sink", DType::f32, 1, c.heads, {0, 0.5f});
  const uint32_t group = c.heads * c.head_dim / c.o_groups;
  w.o_a = add_weight(p + "wo_a", DType::bf16, c.o_groups * c.o_lora, group, {0, spread(group)});
  w.o_b = add_weight(p + "wo_b", c.dense, c.dim, c.o_groups * c.o_lora,
                     {0, 2 * spread(c.o_groups * c.o_lora)});
  if (w.ratio != 0) {
    w.kv_compress = add_weight(p + "kv_compress", c.dense, 2 * c.head_dim, c.dim, {0, 2 * in});
    w.kv_compress_norm = add_weight(p + "kv_compress_norm", DType::f32, 1, c.head_dim, kNorm);
  }
  if (w.ratio == 4) {
    const uint32_t q_rows = c.index_heads * c.index_dim;
    w.index_compress =
        add_weight(p + "index_compress", c.dense, 2 * c.index_dim, c.dim, {0, 2 * in});
    w.index_compress_norm =
        add_weight(p + "index_compress_norm", DType::f32, 1, c.index_dim, kNorm);
    w.index_q = add_weight(p + "index_wq_b", c.dense, q_rows, c.q_lora, {0, spread(c.q_lora)});
    w.index_w = add_weight(p + "index_weights", c.dense, c.index_heads, c.dim, {0, in});
  }
  w.ffn_norm = add_weight(p + "ffn_norm", DType::f32, 1, c.dim, kNorm);
  w.gate = add_weight(p + "gate", c.dense, c.experts, c.dim, {0, in});
  w.gate_bias = add_weight(p + "gate_bias", DType::f32, 1, c.experts, {0, 0.1f});
  const float down = 2 * spread(c.inter);
  w.gate_w = add_weight(p + "experts_gate", c.expert, c.inter, c.dim, {0, in}, c.experts);
  w.up_w = add_weight(p + "experts_up", c.expert, c.inter, c.dim, {0, in}, c.experts);
  w.down_w = add_weight(p + "experts_down", c.expert, c.dim, c.inter, {0, down}, c.experts);
  w.shared_gate_up = add_weight(p + "shared_gate_up", c.dense, 2 * c.inter, c.dim, {0, in});
  w.shared_down = add_weight(p + "shared_down", c.dense, c.dim, c.inter, {0, down});
  add_layer_pages(p, w);
  return w;
}

void Dsv4::add_layer_pages(const std::string& prefix, Dsv4Layer& w) {
  const auto add = [&](const char* name, uint64_t page_bytes) {
    return add_persistent(prefix + name, settings_.page_count * page_bytes, page_bytes);
  };
  w.swa_pages = add("swa_pages", latent_pages({}, 1).page_stride_bytes);
  if (w.ratio == 0) return;
  w.kv_pages = add("kv_pages", latent_pages({}, w.ratio).page_stride_bytes);
  w.kv_state = add("kv_state", state_pages({}, config_.head_dim).page_stride_bytes);
  if (w.ratio != 4) return;
  w.index_pages = add("index_pages", index_pages({}, index_key_).page_stride_bytes);
  w.index_state = add("index_state", state_pages({}, config_.index_dim).page_stride_bytes);
}

PagedBuffer Dsv4::latent_pages(BufferId buffer, uint32_t ratio) const {
  const uint64_t entry = uint64_t{config_.head_dim} * 2;
  return {buffer, ratio, entry, settings_.page_size / ratio * entry};
}

PagedBuffer Dsv4::state_pages(BufferId buffer, uint32_t dim) const {
  const uint64_t entry = uint64_t{dim} * 2 * 4;
  return {buffer, 1, entry, settings_.page_size * entry};
}

PagedBuffer Dsv4::index_pages(BufferId buffer, IndexKeyType page_type) const {
  const uint64_t per_page = settings_.page_size / 4;
  return {buffer, 4, index_key_bytes(index_key_, config_.index_dim),
          per_page * index_key_bytes(page_type, config_.index_dim)};
}

void Dsv4::intern_buffer_names() {
  auto& n = n_;
  n.h = intern("h");
  n.x = intern("x");
  n.qkv_a = intern("qkv_a");
  n.q_lora = intern("q_lora");
  n.kv = intern("kv");
  n.q = intern("q");
  n.o = intern("o");
  n.o_a = intern("o_a");
  n.proj = intern("attn_proj");
  n.compress_in = intern("kv_score");
  n.entries = intern("entries");
  n.made = intern("made");
  n.index_in = intern("index_kv_score");
  n.index_w = intern("index_weights");
  n.index_raw = intern("index_q_raw");
  n.index_query = intern("index_q");
  n.index_logits = intern("index_logits");
  n.gate_logits = intern("gate_logits");
  n.ids = intern("expert_ids");
  n.weights = intern("expert_weights");
  n.scratch = intern("expert_scratch");
  n.routed = intern("routed");
  n.shared_in = intern("shared_gate_up");
  n.shared_inner = intern("shared_inner");
  n.shared = intern("shared");
  n.moe_sum = intern("moe_sum");
  n.output_h = intern("output_h");
}

void Dsv4::intern_op_names() {
  auto& n = n_;
  n.embed = intern("embed");
  n.attn_norm = intern("attn_norm");
  n.qkv_a_proj = intern("qkv_a");
  n.q_a_norm = intern("q_norm");
  n.kv_norm = intern("kv.norm");
  n.kv_rope = intern("kv.rope");
  n.kv_store = intern("kv.store");
  n.q_b_proj = intern("wq_b");
  n.q_b_norm = intern("q_b_norm");
  n.q_rope = intern("q_rope");
  n.attention = intern("attention");
  n.o_rope = intern("o_rope");
  n.o_a_proj = intern("wo_a");
  n.o_b_proj = intern("wo_b");
  n.attn_add = intern("attn_add");
  n.compress_proj = intern("compressor.proj");
  n.compress = intern("compressor.store");
  n.idx_proj = intern("indexer.proj");
  n.idx_compress = intern("indexer.compress");
  n.idx_weights = intern("indexer.weights");
  n.idx_q_proj = intern("indexer.wq_b");
  n.idx_q_rope = intern("indexer.q_rope");
  n.idx_query = intern("indexer.q_quant");
  n.idx_logits = intern("indexer.logits");
  n.idx_topk = intern("indexer.topk");
  n.ffn_norm = intern("ffn_norm");
  n.gate_proj = intern("moe.gate");
  n.route = intern("moe.route");
  n.experts = intern("moe.experts");
  n.shared_gate_up = intern("shared.gate_up");
  n.shared_act = intern("shared.swiglu");
  n.shared_down = intern("shared.down");
  n.moe_zero = intern("moe.zero");
  n.moe_add_routed = intern("moe.add_routed");
  n.moe_add_shared = intern("moe.add_shared");
  n.ffn_add = intern("ffn_add");
  n.final_norm = intern("final_norm");
  n.gather = intern("gather");
  n.lm_head = intern("lm_head");
  n.sample = intern("sample");
  n.fork = intern("fork.main");
  n.fork_indexer = intern("fork.indexer");
  n.qkv_a_ready = intern("qkv_a_ready");
  n.q_lora_ready = intern("q_lora_ready");
  n.index_w_ready = intern("index_w_ready");
  n.join_index_q = intern("join.index_q");
  n.join_kv = intern("join.kv");
  n.join_compressor = intern("join.compressor");
  n.join_indexer = intern("join.indexer");
  n.fork_shared = intern("fork.shared");
  n.join_shared = intern("join.shared");
}

}  // namespace redecode
