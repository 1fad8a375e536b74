#include <algorithm>
#include <utility>

#include "recorder/http/load_body.h"
#include "recorder/http/load_plan.h"
#include "traces/error.h"
#include "traces/import_azure.h"
#include "traces/import_mooncake.h"
#include "traces/limits.h"
#include "traces/random.h"
#include "traces/trace_file.h"

namespace redecode {
namespace {

enum Purpose : uint64_t { kBlock = 16, kText, kSampling };

constexpr uint32_t kMooncakeBlockTokens = 512;

class ArrivalLoad final : public LoadPlan {
 public:
  ArrivalLoad(std::vector<Exchange> exchanges, const ArrivalLoadOptions& options)
      : o_(options), exchanges_(std::move(exchanges)) {
    if (o_.scale == 0 || o_.token_bytes == 0)
      throw Error(ErrorCode::usage, "scale and token bytes must be at least 1", "arrivals");
    std::stable_sort(exchanges_.begin(), exchanges_.end(),
                     [](const Exchange& a, const Exchange& b) { return a.start_us < b.start_us; });
    if (o_.requests != 0 && exchanges_.size() > o_.requests) exchanges_.resize(o_.requests);
    if (exchanges_.empty())
      throw Error(ErrorCode::usage, "there is no request to send", "arrivals");
    first_us_ = exchanges_.front().start_us;
  }

  uint32_t chains() const override { return static_cast<uint32_t>(exchanges_.size()); }
  uint32_t rounds() const override { return 1; }
  uint64_t due_us(uint32_t chain) const override { return exchanges_[chain].start_us - first_us_; }
  uint32_t session(uint32_t chain) const override { return exchanges_[chain].session; }
  uint32_t round(uint32_t chain, uint32_t) const override { return exchanges_[chain].round; }

  LoadRequest request(uint32_t chain, uint32_t, const std::string&,
                      const std::string& model) const override {
    const Exchange& exchange = exchanges_[chain];
    LoadRequest out;
    LoadBody body;
    body.chat = exchange.path.ends_with("/chat/completions") && !exchange.prompt.empty();
    out.path = body.chat ? "/v1/chat/completions" : "/v1/completions";
    body.prompt_json =
        exchange.prompt.empty() ? quoted_json(stand_in(chain, exchange)) : exchange.prompt;
    body.model = !o_.ask.model.empty()     ? o_.ask.model
                 : !exchange.model.empty() ? exchange.model
                                           : model;
    body.max_tokens = exchange.max_tokens;
    if (o_.max_tokens_given || body.max_tokens == 0)
      body.max_tokens =
          body.max_tokens == 0 ? o_.ask.max_tokens : std::min(body.max_tokens, o_.ask.max_tokens);
    body.n = std::max<uint32_t>(1, exchange.choice_count);
    body.stream = o_.ask.stream;
    const bool asked = exchange.end != ExchangeEnd::not_sent;
    body.sampling = asked ? exchange.sampling : o_.ask.sampling;
    body.has_seed = !asked || exchange.has_seed;
    if (!asked) body.sampling.seed = short_seed(random_bits(o_.ask.seed, chain, kSampling));
    body.stop = exchange.stop;
    out.body = to_json(body);
    return out;
  }

 private:
  // Text in place of a prompt that was not kept.
  std::string stand_in(uint32_t chain, const Exchange& exchange) const {
    uint64_t size = uint64_t{exchange.prompt_tokens} * o_.token_bytes;
    if (size == 0) size = exchange.prompt_bytes;
    size = std::max<uint64_t>(1, size / o_.scale);
    std::string out;
    const size_t blocks = exchange.block_hashes.size();
    if (blocks != 0) {
      const uint64_t whole = uint64_t{kMooncakeBlockTokens} * o_.token_bytes / o_.scale;
      const uint64_t block_bytes = std::max<uint64_t>(1, whole);
      for (size_t i = 0; i < blocks && out.size() < size; ++i)
        out += load_words(o_.ask.seed, kBlock, exchange.block_hashes[i], block_bytes);
    }
    if (out.size() < size) out += load_words(o_.ask.seed, kText, chain, size - out.size());
    out.resize(size);
    return out;
  }

  const ArrivalLoadOptions o_;
  std::vector<Exchange> exchanges_;
  uint64_t first_us_ = 0;
};

Exchange imported(uint32_t number, uint64_t start_us, uint64_t input, uint64_t output,
                  uint32_t scale) {
  limits::check(input, limits::kImportTokens, "tokens of a prompt");
  Exchange out;
  out.number = out.session = number;
  out.start_us = start_us;
  out.path = "/v1/completions";
  out.end = ExchangeEnd::not_sent;
  out.prompt_tokens = static_cast<uint32_t>(input);
  out.max_tokens = static_cast<uint32_t>(std::max<uint64_t>(1, output / std::max(1u, scale)));
  return out;
}

std::vector<Exchange> from_mooncake(const std::filesystem::path& path, uint32_t scale) {
  std::vector<Exchange> out;
  for (const MooncakeRow& row : import_mooncake(path)) {
    out.push_back(imported(static_cast<uint32_t>(out.size()), row.arrival_ms * 1000,
                           row.input_length, row.output_length, scale));
    out.back().block_hashes.assign(row.hash_ids.begin(), row.hash_ids.end());
  }
  return out;
}

std::vector<Exchange> from_azure(const std::filesystem::path& path, uint32_t scale) {
  std::vector<Exchange> out;
  for (const AzureRow& row : import_azure(path))
    out.push_back(imported(static_cast<uint32_t>(out.size()), row.arrival_100ns / 10,
                           row.context_tokens, row.generated_tokens, scale));
  return out;
}

std::vector<Exchange> from_trace(const std::filesystem::path& path) {
  std::vector<Exchange> out;
  TraceReader reader(path);
  for (TraceRecord record; reader.next(record);)
    if (record.exchange) out.push_back(std::move(*record.exchange));
  return out;
}

}  // namespace

std::unique_ptr<LoadPlan> make_arrival_load(std::vector<Exchange> exchanges,
                                            const ArrivalLoadOptions& options) {
  return std::make_unique<ArrivalLoad>(std::move(exchanges), options);
}

std::unique_ptr<LoadPlan> load_arrivals(const std::filesystem::path& path,
                                        const ArrivalLoadOptions& options) {
  const std::string ending = path.extension().string();
  if (ending == ".jsonl") return make_arrival_load(from_mooncake(path, options.scale), options);
  if (ending == ".csv") return make_arrival_load(from_azure(path, options.scale), options);
  if (ending == ".rdt" || std::filesystem::is_directory(path))
    return make_arrival_load(from_trace(path), options);
  throw Error(ErrorCode::usage,
              "neither a Mooncake trace (.jsonl), an Azure trace (.csv) nor a .rdt", path.string());
}

}  // namespace redecode
