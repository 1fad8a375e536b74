// engine/model/factory.h - models by name: what --model accepts.
//
//   dsv4-small[:seed=N]     4 layers, 0.9 M parameters a token; the demo's
//   dsv4-flash              DeepSeek-V4-Flash's dimensions; lowered and checked only
//   llama-small[:seed=N]    4 layers, dim 128
//   llama-100m[:seed=N]     100 M parameters in bf16
//   llama2c:PATH            a llama2.c v0 checkpoint
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/model.h"

namespace redecode {

// Buckets 1, 2, 4, 8, 12, 16, then every 8 to 256, every 16 to 512, every 32 beyond; the last is
// `largest`.
std::vector<uint32_t> default_buckets(uint32_t largest);

// What a caller may change before the model is made; zero keeps the default of the model.
struct SettingsRequest {
  uint32_t page_size = 0;
  uint32_t page_count = 0;
  uint32_t max_batch_rows = 0;
  std::vector<uint32_t> buckets;
};

// Errors: usage for an unknown name or settings out of range (bucket 0, pages that the ratios do
// not divide, ...); missing, truncated, corrupt for a checkpoint.
EngineSettings default_settings(std::string_view spec, const SettingsRequest& request = {});
std::unique_ptr<Model> make_model(std::string_view spec, const EngineSettings& settings,
                                  IndexKeyType index_key, const KernelIds& kernels);

// The names above, one a line, for help and errors.
std::string model_help();

// Largest weights that a machine is asked to hold, in bytes; above it a model is for checking only.
inline constexpr uint64_t kMaxComputedWeightBytes = uint64_t{8} << 30;

}  // namespace redecode
