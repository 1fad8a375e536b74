#include "recorder/http/load_plan.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "recorder/http/load_body.h"
#include "traces/error.h"
#include "traces/random.h"

namespace redecode {
namespace {

// Separate the random streams of one seed.
enum Purpose : uint64_t { kSystem = 1, kContext, kNewText, kNewCount, kSampling };

constexpr uint64_t kMostPromptBytes = uint64_t{64} << 20;

constexpr std::array<std::string_view, 32> kWords = {
    "open",  "the",   "file", "read",  "line",  "count", "value", "test",  "run",  "build", "path",
    "error", "found", "in",   "table", "index", "page",  "write", "check", "next", "step",  "of",
    "list",  "and",   "key",  "match", "left",  "right", "state", "plan",  "call", "done"};

class AgentLoad final : public LoadPlan {
 public:
  explicit AgentLoad(const AgentLoadOptions& options) : o_(options) {
    const auto require = [](bool holds, const char* what) {
      if (!holds) throw Error(ErrorCode::usage, what, "agent sessions");
    };
    require(o_.sessions > 0 && o_.rounds > 0, "sessions and rounds must be at least 1");
    require(uint64_t{o_.sessions} * o_.rounds <= UINT32_MAX, "sessions * rounds must fit 32 bits");
    require(o_.context_tokens > 0 && o_.token_bytes > 0, "ctx and token bytes must be at least 1");
    require(o_.system_percent <= 100, "the system prompt's share must be at most 100 percent");
    require(o_.new_tokens_min <= o_.new_tokens_max, "the new text's limits must ascend");
    require((o_.context_tokens + uint64_t{o_.rounds} * o_.new_tokens_max) * o_.token_bytes <=
                kMostPromptBytes,
            "the last round's prompt would pass 64 MiB");
  }

  uint32_t chains() const override { return o_.sessions; }
  uint32_t rounds() const override { return o_.rounds; }
  uint64_t due_us(uint32_t) const override { return 0; }
  uint32_t session(uint32_t chain) const override { return chain; }
  uint32_t round(uint32_t, uint32_t index) const override { return index; }

  LoadRequest request(uint32_t chain, uint32_t index, const std::string& text_so_far,
                      const std::string& model) const override {
    const uint64_t id = uint64_t{chain} * o_.rounds + index;
    LoadRequest out;
    out.path = "/v1/completions";
    out.prompt = index == 0 ? opening(chain) : text_so_far + tool_result(id);
    LoadBody body;
    body.model = o_.ask.model.empty() ? model : o_.ask.model;
    body.prompt_json = quoted_json(out.prompt);
    body.max_tokens = o_.ask.max_tokens;
    body.stream = o_.ask.stream;
    body.sampling = o_.ask.sampling;
    body.sampling.seed = short_seed(random_bits(o_.ask.seed, id, kSampling));
    body.has_seed = true;
    out.body = to_json(body);
    return out;
  }

 private:
  std::string opening(uint32_t chain) const {
    const uint64_t size = uint64_t{o_.context_tokens} * o_.token_bytes;
    const uint64_t shared = size * o_.system_percent / 100;
    return load_words(o_.ask.seed, kSystem, 0, shared) +
           load_words(o_.ask.seed, kContext, chain, size - shared);
  }
  std::string tool_result(uint64_t id) const {
    const uint64_t spread = uint64_t{o_.new_tokens_max} - o_.new_tokens_min + 1;
    const uint64_t tokens =
        o_.new_tokens_min + random_below(random_bits(o_.ask.seed, id, kNewCount), spread);
    return load_words(o_.ask.seed, kNewText, id, tokens * o_.token_bytes);
  }

  const AgentLoadOptions o_;
};

}  // namespace

std::string load_words(uint64_t seed, uint64_t purpose, uint64_t of, uint64_t size_bytes) {
  RandomSequence draws(random_bits(seed, of, purpose));
  std::string out;
  out.reserve(size_bytes + 8);
  while (out.size() < size_bytes) {
    out += kWords[draws.below(kWords.size())];
    out += draws.below(16) == 0 ? '\n' : ' ';
  }
  out.resize(size_bytes);
  return out;
}

std::unique_ptr<LoadPlan> make_agent_load(const AgentLoadOptions& options) {
  return std::make_unique<AgentLoad>(options);
}

}  // namespace redecode
