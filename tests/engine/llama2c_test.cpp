// llama2.c checkpoints: a real one tells its story in every mode, and broken ones are refused.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "engine/model/llama.h"
#include "engine/model/tokenizer.h"
#include "tests/engine/rig.h"
#include "tests/traces/temp_folder.h"
#include "traces/error.h"

using namespace redecode;
using namespace redecode::rig;
using redecode::test::TempFolder;

namespace {

constexpr std::string_view kStory =
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park.";

std::filesystem::path model_folder() {
  return std::filesystem::path(REDECODE_SOURCE_DIR) / ".." / "shared" / "data" / "model";
}

std::string tell(const std::string& checkpoint, const Tokenizer& tokenizer, const Mode& mode) {
  RigOptions options;
  options.model = "llama2c:" + checkpoint;
  options.settings = default_settings(options.model);
  options.mode = mode;
  Request request;
  request.prompt = {1};
  request.max_tokens = 256;
  ListTraffic traffic;
  traffic.add(0, request);
  const Recording r = record(options, traffic);
  std::string text;
  int32_t previous = 1;
  for (const StepOutput& output : r.trace.outputs) {
    REQUIRE(output.rows.size() == 1);
    text += tokenizer.decode(previous, output.rows[0].token);
    previous = output.rows[0].token;
  }
  REQUIRE(r.totals.output_tokens == 256);
  return text;
}

// A checkpoint whose float i is i / 1000; a vocabulary below zero says that it has its own head.
struct Checkpoint {
  std::array<int32_t, 7> header = {8, 12, 2, 2, 1, -30, 16};

  static uint64_t float_count(bool own_head) {
    const uint64_t dim = 8, hidden = 12, kv = 4, vocab = 30,
                   layer = dim + dim * dim + 2 * kv * dim + dim * dim + dim + 3 * dim * hidden;
    return vocab * dim + 2 * layer + dim + 16 * 4 + (own_head ? vocab * dim : 0);
  }
  std::string write(const std::filesystem::path& path, uint64_t floats) const {
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(header.data()), sizeof header);
    for (uint64_t i = 0; i < floats; ++i) {
      const float value = static_cast<float>(i) / 1000.0f;
      out.write(reinterpret_cast<const char*>(&value), sizeof value);
    }
    return path.string();
  }
};

ErrorCode refusal(const std::string& path) {
  try {
    read_llama2c_config(path);
  } catch (const Error& e) {
    CHECK(e.context().find(std::filesystem::path(path).filename().string()) != std::string::npos);
    return e.code();
  }
  FAIL("accepted: " << path);
  return ErrorCode::usage;
}

float at(uint64_t index) { return static_cast<float>(index) / 1000.0f; }

}  // namespace

TEST_CASE("stories260K tells its story, greedy, in eager and graph mode", "[llama2c]") {
  const auto checkpoint = model_folder() / "stories260K.bin";
  const auto vocabulary = model_folder() / "tok512.bin";
  if (!std::filesystem::exists(checkpoint) || !std::filesystem::exists(vocabulary))
    SKIP("no stories260K.bin and tok512.bin beside the sources");
  const Tokenizer tokenizer(vocabulary.string(), 512);
  const std::string eager =
      tell(checkpoint.string(), tokenizer, mode_of(CaptureMode::eager, StreamMode::single));
  CHECK(eager.substr(0, kStory.size()) == kStory);
  const std::string graph = tell(checkpoint.string(), tokenizer,
                                 mode_of(CaptureMode::graph, StreamMode::multi, "seed:2"));
  CHECK(graph == eager);
}

TEST_CASE("a llama2.c checkpoint is read into its places", "[llama2c]") {
  const TempFolder folder;
  const std::string path = Checkpoint{}.write(folder / "own.bin", Checkpoint::float_count(true));
  const LlamaConfig c = read_llama2c_config(path);
  CHECK(c.dim == 8);
  CHECK(c.hidden == 12);
  CHECK(c.layers == 2);
  CHECK(c.heads == 2);
  CHECK(c.kv_heads == 1);
  CHECK(c.vocab == 30);
  CHECK(c.max_seq_len == 16);
  const LlamaWeights w = read_llama2c_weights(path, c);
  // In the file each kind of weight stands for all layers together.
  const uint64_t attn_norm = 240, q = attn_norm + 2 * 8, k = q + 2 * 64, v = k + 2 * 32,
                 o = v + 2 * 32, ffn_norm = o + 2 * 64, gate = ffn_norm + 2 * 8,
                 down = gate + 2 * 96, up = down + 2 * 96, final_norm = up + 2 * 96,
                 head = final_norm + 8 + 64;
  REQUIRE(w.layers.size() == 2);
  const auto& second = w.layers[1];
  CHECK(w.embedding.back() == at(239));
  CHECK(second.attn_norm.front() == at(attn_norm + 8));
  CHECK(second.q.front() == at(q + 64));
  REQUIRE(second.kv.size() == 64);
  CHECK(second.kv[0] == at(k + 32));
  CHECK(second.kv[32] == at(v + 32));
  CHECK(second.o.front() == at(o + 64));
  CHECK(second.ffn_norm.front() == at(ffn_norm + 8));
  REQUIRE(second.gate_up.size() == 192);
  CHECK(second.gate_up[0] == at(gate + 96));
  CHECK(second.gate_up[96] == at(up + 96));
  CHECK(second.down.front() == at(down + 96));
  CHECK(w.final_norm.front() == at(final_norm));
  CHECK(w.head.front() == at(head));
  CHECK(w.head.back() == at(head + 239));
}

TEST_CASE("a checkpoint without a head of its own shares the embedding, and runs", "[llama2c]") {
  const TempFolder folder;
  Checkpoint checkpoint;
  checkpoint.header[5] = 30;
  const std::string path = checkpoint.write(folder / "shared.bin", Checkpoint::float_count(false));
  const LlamaWeights w = read_llama2c_weights(path, read_llama2c_config(path));
  CHECK(w.head == w.embedding);
  RigOptions options;
  options.model = "llama2c:" + path;
  options.settings = default_settings(options.model);
  REQUIRE(options.settings.max_seq_len == 16);
  ListTraffic traffic;
  Request request;
  request.prompt = {1, 2, 29};
  request.max_tokens = 5;
  traffic.add(0, request);
  const Trace trace = record(options, traffic).trace;
  const Decoded eager = decode(options, trace);
  options.mode = mode_of(CaptureMode::graph, StreamMode::multi, "seed:1");
  const Decoded graph = decode(options, trace);
  CHECK(graph.graph_steps == 4);
  CHECK(graph.digest == eager.digest);
}

TEST_CASE("broken checkpoints are refused by name", "[llama2c]") {
  const TempFolder folder;
  const uint64_t floats = Checkpoint::float_count(true);
  CHECK(refusal((folder / "absent.bin").string()) == ErrorCode::missing);
  CHECK(refusal(Checkpoint{}.write(folder / "short.bin", floats - 1)) == ErrorCode::truncated);
  CHECK(refusal(Checkpoint{}.write(folder / "long.bin", floats + 1)) == ErrorCode::corrupt);
  const auto with = [&](size_t field, int32_t value) {
    Checkpoint checkpoint;
    checkpoint.header[field] = value;
    return refusal(checkpoint.write(folder / "bad.bin", floats));
  };
  CHECK(with(0, 0) == ErrorCode::corrupt);
  CHECK(with(0, -8) == ErrorCode::corrupt);
  CHECK(with(2, 1 << 20) == ErrorCode::corrupt);
  CHECK(with(3, 3) == ErrorCode::corrupt);
  CHECK(with(4, 5) == ErrorCode::corrupt);
  CHECK(with(5, INT32_MIN) == ErrorCode::corrupt);
  CHECK(with(6, 0) == ErrorCode::corrupt);
  CHECK(with(1, 1 << 20) == ErrorCode::truncated);
  std::ofstream(folder / "tiny.bin") << "abc";
  const ErrorCode tiny = refusal((folder / "tiny.bin").string());
  CHECK((tiny == ErrorCode::truncated || tiny == ErrorCode::corrupt));
}
