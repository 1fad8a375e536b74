// engine/model/dsv4.h - the dsv4 family: the shape of a DeepSeek-V4-class decode layer.
//
// Compressed KV at ratios 4 and 128, a sliding window, a sparse indexer with top-k over compressed
// index keys, shared and routed experts, five side streams. Left out of the production layer: mHC
// (residuals are plain additions), hash routing, the packed fp8 KV entry (entries are bf16
// [head_dim]), tensor parallelism.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/kernels/matrix.h"
#include "engine/model/model.h"

namespace redecode {

struct Dsv4Config {
  uint32_t dim = 0, heads = 0, head_dim = 0, rope_dim = 0;
  uint32_t q_lora = 0, o_groups = 0, o_lora = 0;
  uint32_t window = 0;
  uint32_t index_heads = 0, index_dim = 0, index_topk = 0;
  uint32_t experts = 0, experts_per_token = 0, inter = 0;
  float routed_scaling = 1.5f;
  uint32_t vocab = 0, max_seq_len = 0;
  float rope_theta = 10000.0f, compress_theta = 160000.0f, norm_eps = 1e-6f;
  std::vector<uint32_t> ratios;  // one a layer: 0 window only, 4 with indexer, 128 without
  DType dense = DType::bf16;
  DType expert = DType::nvfp4;
};

// 4 layers, computed on a CPU in tests and in the demo.
Dsv4Config dsv4_small();
// The dimensions of DeepSeek-V4-Flash: lowered and checked here, never computed.
Dsv4Config dsv4_flash();

// settings.page_size must be a multiple of every ratio.
std::unique_ptr<Model> make_dsv4(const Dsv4Config& config, const EngineSettings& settings,
                                 const KernelIds& kernels, IndexKeyType index_key, uint64_t seed,
                                 std::string spec);

}  // namespace redecode
