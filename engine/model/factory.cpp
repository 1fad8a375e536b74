#include "engine/model/factory.h"

#include <algorithm>
#include <charconv>

#include "engine/model/dsv4.h"
#include "engine/model/llama.h"
#include "traces/error.h"

namespace redecode {
namespace {

constexpr uint32_t kMaxRows = 65536;
constexpr uint32_t kMaxPages = 1u << 22;

struct Spec {
  std::string name;
  std::string path;
  uint64_t seed = 1;
};

[[noreturn]] void bad_spec(std::string_view spec, const std::string& why) {
  throw Error(ErrorCode::usage, why + ". Models:\n" + model_help(),
              "model '" + std::string(spec) + "'");
}

Spec parse(std::string_view spec) {
  Spec out;
  const size_t colon = spec.find(':');
  out.name = std::string(spec.substr(0, colon));
  const auto names = {"dsv4-small", "dsv4-flash", "llama-small", "llama-100m", "llama2c"};
  if (std::find(names.begin(), names.end(), out.name) == names.end())
    bad_spec(spec, "no such model");
  const std::string_view rest = colon == std::string_view::npos ? "" : spec.substr(colon + 1);
  if (out.name == "llama2c") {
    if (rest.empty()) bad_spec(spec, "llama2c needs a path: llama2c:stories260K.bin");
    out.path = std::string(rest);
    return out;
  }
  if (rest.empty()) {
    if (colon != std::string_view::npos) bad_spec(spec, "nothing follows the colon");
    return out;
  }
  constexpr std::string_view kSeed = "seed=";
  if (!rest.starts_with(kSeed)) bad_spec(spec, "expected seed=N after the colon");
  const auto digits = rest.substr(kSeed.size());
  const auto [end, failure] =
      std::from_chars(digits.data(), digits.data() + digits.size(), out.seed);
  if (failure != std::errc{} || end != digits.data() + digits.size())
    bad_spec(spec, "the seed is not a number");
  return out;
}

LlamaConfig llama_config(const Spec& spec) {
  LlamaConfig c;
  c.dtype = DType::bf16;
  if (spec.name == "llama-small") {
    c.dim = 128;
    c.hidden = 256;
    c.layers = 4;
    c.heads = 4;
    c.kv_heads = 2;
    c.vocab = 512;
    c.max_seq_len = 1024;
  } else if (spec.name == "llama-100m") {
    c.dim = 768;
    c.hidden = 2048;
    c.layers = 12;
    c.heads = 12;
    c.kv_heads = 4;
    c.vocab = 16000;
    c.max_seq_len = 1024;
  } else {
    c = read_llama2c_config(spec.path);
  }
  return c;
}

Dsv4Config dsv4_config(const Spec& spec) {
  return spec.name == "dsv4-flash" ? dsv4_flash() : dsv4_small();
}

bool is_dsv4(const Spec& spec) { return spec.name.starts_with("dsv4"); }

void check_settings(std::string_view spec, const EngineSettings& s) {
  const auto bad = [&](const std::string& why) {
    throw Error(ErrorCode::usage, why, "settings for model '" + std::string(spec) + "'");
  };
  if (s.page_size == 0 || s.page_size > 4096) bad("page size must be 1 to 4096 tokens");
  if (s.page_count < 2 || s.page_count > kMaxPages)
    bad("page count must be 2 to " + std::to_string(kMaxPages) + " (page 0 is the dummy page)");
  if (s.max_batch_rows == 0 || s.max_batch_rows > kMaxRows)
    bad("batch rows must be 1 to " + std::to_string(kMaxRows));
  uint32_t last = 0;
  for (const uint32_t bucket : s.buckets) {
    if (bucket == 0) bad("bucket 0 holds no row: buckets start at 1");
    if (bucket <= last)
      bad("buckets must ascend: " + std::to_string(bucket) + " follows " + std::to_string(last));
    if (bucket > s.max_batch_rows)
      bad("bucket " + std::to_string(bucket) + " is above the largest batch, " +
          std::to_string(s.max_batch_rows) + " rows");
    last = bucket;
  }
}

}  // namespace

std::vector<uint32_t> default_buckets(uint32_t largest) {
  std::vector<uint32_t> out;
  const auto add = [&](uint32_t b) {
    if (b <= largest) out.push_back(b);
  };
  for (const uint32_t b : {1u, 2u, 4u, 8u, 12u}) add(b);
  for (uint32_t b = 16; b <= 256; b += 8) add(b);
  for (uint32_t b = 272; b <= 512; b += 16) add(b);
  for (uint32_t b = 544; b <= largest; b += 32) add(b);
  if (out.empty() || out.back() != largest) out.push_back(largest);
  return out;
}

EngineSettings default_settings(std::string_view text, const SettingsRequest& request) {
  const Spec spec = parse(text);
  EngineSettings s;
  s.page_size = spec.name == "dsv4-flash" ? 256 : is_dsv4(spec) ? 128 : 16;
  s.max_batch_rows = 64;
  s.max_seq_len = is_dsv4(spec) ? dsv4_config(spec).max_seq_len : llama_config(spec).max_seq_len;
  if (request.page_size != 0) s.page_size = request.page_size;
  if (request.max_batch_rows != 0) s.max_batch_rows = request.max_batch_rows;
  constexpr uint64_t tokens = 32768;
  s.page_count = static_cast<uint32_t>(std::min<uint64_t>(tokens / s.page_size + 1, kMaxPages));
  if (request.page_count != 0) s.page_count = request.page_count;
  s.buckets =
      request.buckets.empty() ? default_buckets(std::min(s.max_batch_rows, 64u)) : request.buckets;
  check_settings(text, s);
  return s;
}

std::unique_ptr<Model> make_model(std::string_view text, const EngineSettings& settings,
                                  IndexKeyType index_key, const KernelIds& kernels) {
  const Spec spec = parse(text);
  check_settings(text, settings);
  if (is_dsv4(spec)) {
    const Dsv4Config config = dsv4_config(spec);
    for (const uint32_t ratio : config.ratios)
      if (ratio != 0 && settings.page_size % ratio != 0)
        throw Error(ErrorCode::usage,
                    "page size " + std::to_string(settings.page_size) +
                        " is not a multiple of the compression ratio " + std::to_string(ratio),
                    "settings for model '" + std::string(text) + "'");
    return make_dsv4(config, settings, kernels, index_key, spec.seed, std::string(text));
  }
  const LlamaConfig config = llama_config(spec);
  if (spec.name != "llama2c")
    return make_llama(config, settings, kernels, spec.seed, std::string(text));
  return make_llama(config, settings, kernels, read_llama2c_weights(spec.path, config),
                    std::string(text));
}

std::string model_help() {
  return "  dsv4-small[:seed=N]   4 layers, computed anywhere\n"
         "  dsv4-flash            DeepSeek-V4-Flash's dimensions, for checking only\n"
         "  llama-small[:seed=N]  4 layers, dim 128\n"
         "  llama-100m[:seed=N]   100 M parameters, bf16\n"
         "  llama2c:PATH          a llama2.c checkpoint\n";
}

}  // namespace redecode
