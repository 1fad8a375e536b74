#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "engine/model/llama.h"
#include "traces/error.h"

namespace redecode {
namespace {

constexpr uint64_t kMaxCheckpointBytes = uint64_t{16} << 30;
constexpr size_t kHeaderBytes = 7 * sizeof(int32_t);

uint64_t file_bytes(const std::string& path) {
  std::error_code failure;
  const auto size_bytes = std::filesystem::file_size(path, failure);
  if (failure)
    throw Error(ErrorCode::missing, "cannot read the checkpoint: " + failure.message(), path);
  return size_bytes;
}

// Floats of a v0 checkpoint with these dimensions, RoPE tables included.
uint64_t expected_floats(const LlamaConfig& c, bool shared_head) {
  const uint64_t dim = c.dim, layers = c.layers, hidden = c.hidden, kv = c.kv_dim();
  const uint64_t per_layer = 2 * dim + 2 * dim * dim + 2 * dim * kv + 3 * dim * hidden;
  const uint64_t rope = uint64_t{c.max_seq_len} * c.head_dim();
  return c.vocab * dim + layers * per_layer + dim + rope + (shared_head ? 0 : c.vocab * dim);
}

struct Header {
  LlamaConfig config;
  bool shared_head = true;
};

Header read_header(const std::string& path) {
  const uint64_t size_bytes = file_bytes(path);
  if (size_bytes < kHeaderBytes)
    throw Error(ErrorCode::truncated, "a llama2.c checkpoint starts with 28 bytes of dimensions",
                path + ": " + std::to_string(size_bytes) + " bytes");
  std::ifstream in(path, std::ios::binary);
  std::array<int32_t, 7> v{};
  in.read(reinterpret_cast<char*>(v.data()), kHeaderBytes);
  if (!in) throw Error(ErrorCode::missing, "cannot read the checkpoint", path);
  Header h;
  h.shared_head = v[5] > 0;
  v[5] = v[5] < 0 && v[5] != INT32_MIN ? -v[5] : v[5];
  constexpr std::array<int32_t, 7> kMost = {65536, 1 << 20, 1024, 1024, 1024, 1 << 20, 1 << 20};
  for (size_t i = 0; i < v.size(); ++i)
    if (v[i] <= 0 || v[i] > kMost[i])
      throw Error(ErrorCode::corrupt,
                  "dimension " + std::to_string(v[i]) + " is not in [1, " +
                      std::to_string(kMost[i]) + "]: not a llama2.c checkpoint",
                  path + ": offset " + std::to_string(4 * i));
  auto& c = h.config;
  c.dim = static_cast<uint32_t>(v[0]);
  c.hidden = static_cast<uint32_t>(v[1]);
  c.layers = static_cast<uint32_t>(v[2]);
  c.heads = static_cast<uint32_t>(v[3]);
  c.kv_heads = static_cast<uint32_t>(v[4]);
  c.vocab = static_cast<uint32_t>(v[5]);
  c.max_seq_len = static_cast<uint32_t>(v[6]);
  if (c.dim % c.heads != 0 || c.heads % c.kv_heads != 0 || c.head_dim() % 2 != 0)
    throw Error(ErrorCode::corrupt, "heads do not divide the dimensions", path + ": offset 0");
  const uint64_t expected = kHeaderBytes + 4 * expected_floats(c, h.shared_head);
  if (expected > kMaxCheckpointBytes)
    throw Error(ErrorCode::limit, "checkpoint above 16 GiB", path + ": offset 0");
  if (size_bytes != expected)
    throw Error(size_bytes < expected ? ErrorCode::truncated : ErrorCode::corrupt,
                "these dimensions need " + std::to_string(expected) + " bytes, the file has " +
                    std::to_string(size_bytes),
                path);
  return h;
}

class FloatReader {
 public:
  FloatReader(const std::string& path, uint64_t offset_bytes)
      : path_(path), in_(path, std::ios::binary) {
    in_.seekg(static_cast<std::streamoff>(offset_bytes));
  }
  std::vector<float> take(uint64_t count) {
    std::vector<float> out(count);
    in_.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(count * 4));
    if (!in_) throw Error(ErrorCode::truncated, "weights end early", path_);
    return out;
  }

 private:
  std::string path_;
  std::ifstream in_;
};

void append(std::vector<float>& to, const std::vector<float>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

LlamaConfig read_llama2c_config(const std::string& path) { return read_header(path).config; }

LlamaWeights read_llama2c_weights(const std::string& path, const LlamaConfig& c) {
  const bool shared_head = read_header(path).shared_head;
  FloatReader in(path, kHeaderBytes);
  LlamaWeights w;
  w.layers.resize(c.layers);
  const uint64_t dim = c.dim, kv = uint64_t{c.kv_dim()} * dim, ffn = uint64_t{c.hidden} * dim;
  w.embedding = in.take(c.vocab * dim);
  for (auto& l : w.layers) l.attn_norm = in.take(dim);
  for (auto& l : w.layers) l.q = in.take(dim * dim);
  for (auto& l : w.layers) l.kv = in.take(kv);
  for (auto& l : w.layers) append(l.kv, in.take(kv));
  for (auto& l : w.layers) l.o = in.take(dim * dim);
  for (auto& l : w.layers) l.ffn_norm = in.take(dim);
  for (auto& l : w.layers) l.gate_up = in.take(ffn);
  for (auto& l : w.layers) l.down = in.take(ffn);
  for (auto& l : w.layers) append(l.gate_up, in.take(ffn));
  w.final_norm = in.take(dim);
  in.take(uint64_t{c.max_seq_len} * c.head_dim());
  w.head = shared_head ? w.embedding : in.take(c.vocab * dim);
  return w;
}

}  // namespace redecode
