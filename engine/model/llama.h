// engine/model/llama.h - the llama family: RMSNorm, RoPE, grouped-query attention, SwiGLU.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/kernels/matrix.h"
#include "engine/model/model.h"

namespace redecode {

struct LlamaConfig {
  uint32_t dim = 0, hidden = 0, layers = 0, heads = 0, kv_heads = 0, vocab = 0, max_seq_len = 0;
  DType dtype = DType::f32;
  float rope_theta = 10000.0f, norm_eps = 1e-5f;
  uint32_t head_dim() const { return dim / heads; }
  uint32_t kv_dim() const { return kv_heads * head_dim(); }
};

// Weights of a checkpoint, f32, row-major [rows, cols]; k and v stand in one matrix, gate and up in
// one.
struct LlamaWeights {
  struct Layer {
    std::vector<float> attn_norm, q, kv, o, ffn_norm, gate_up, down;
  };
  std::vector<float> embedding, final_norm, head;  // [vocab, dim], [dim], [vocab, dim]
  std::vector<Layer> layers;
};

// Weights from a seed. `spec` goes into the identity.
std::unique_ptr<Model> make_llama(const LlamaConfig& config, const EngineSettings& settings,
                                  const KernelIds& kernels, uint64_t seed, std::string spec);
// Weights from a checkpoint.
std::unique_ptr<Model> make_llama(const LlamaConfig& config, const EngineSettings& settings,
                                  const KernelIds& kernels, LlamaWeights weights, std::string spec);

// Reads a llama2.c v0 checkpoint (7 i32, then f32 weights). Errors: missing, truncated, corrupt,
// limit; all with path and byte offset.
LlamaConfig read_llama2c_config(const std::string& path);
LlamaWeights read_llama2c_weights(const std::string& path, const LlamaConfig& config);

}  // namespace redecode
