// recorder/http/load_plan.h - LoadPlan: which requests to send to a server, in which chains, and
// when.
//
// A chain is a session: its requests follow each other, each may continue the text of the one
// before. Chains are independent. Equal options and equal answers give equal requests.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "traces/exchange.h"
#include "traces/step.h"

namespace redecode {

// What is asked for in every request that does not say it itself.
struct LoadAsk {
  std::string model;  // empty: not said
  uint32_t max_tokens = 48;
  bool stream = true;
  Sampling sampling;  // temperature 0 by default; its seed is made from `seed`
  uint64_t seed = 1;
};

struct LoadRequest {
  std::string path;    // "/v1/completions"
  std::string body;    // JSON
  std::string prompt;  // what the chain's next request continues, with the answer after it
};

class LoadPlan {
 public:
  virtual ~LoadPlan() = default;
  virtual uint32_t chains() const = 0;
  virtual uint32_t rounds() const = 0;                 // requests of a chain
  virtual uint64_t due_us(uint32_t chain) const = 0;   // since the start; ascending
  virtual uint32_t session(uint32_t chain) const = 0;  // its number, for people and files
  virtual uint32_t round(uint32_t chain, uint32_t index) const = 0;
  // `text_so_far`: prompt and answer of the request before; empty in round 0. `model` is used
  // where the plan knows none.
  virtual LoadRequest request(uint32_t chain, uint32_t index, const std::string& text_so_far,
                              const std::string& model) const = 0;
};

// `size_bytes` bytes of words, ASCII, fixed by (seed, purpose, of).
std::string load_words(uint64_t seed, uint64_t purpose, uint64_t of, uint64_t size_bytes);

// As recorder/workload_agent.h: a system prompt that all sessions share, then text of their own;
// between rounds the answer and the result of a tool.
struct AgentLoadOptions {
  uint32_t sessions = 60;
  uint32_t rounds = 4;
  uint32_t context_tokens = 300;
  uint32_t system_percent = 25;
  uint32_t new_tokens_min = 24, new_tokens_max = 56;
  uint32_t token_bytes = 1;  // of text that make a token: 1 for byte tokenizers, about 4 for others
  LoadAsk ask;
};
// Errors: usage, naming the option that has no meaning.
std::unique_ptr<LoadPlan> make_agent_load(const AgentLoadOptions& options);

struct ArrivalLoadOptions {
  uint32_t requests = 0;  // only the first so many; 0: all
  uint32_t scale = 1;     // lengths are divided by this
  uint32_t token_bytes = 1;
  bool max_tokens_given = false;  // ask.max_tokens caps what the file says; else the file decides
  LoadAsk ask;
};
// Requests of a Mooncake trace (.jsonl), an Azure trace (.csv) or of the exchanges of a .rdt; told
// apart by the name's end. Exchanges are sent as they were asked, where their prompts were kept;
// otherwise text of the same length stands for them, with equal text for equal blocks.
// Errors: as the importers and TraceReader; usage (another ending, no request in the file).
std::unique_ptr<LoadPlan> load_arrivals(const std::filesystem::path& path,
                                        const ArrivalLoadOptions& options);
// The same from exchanges in memory; `start_us` gives their times.
std::unique_ptr<LoadPlan> make_arrival_load(std::vector<Exchange> exchanges,
                                            const ArrivalLoadOptions& options);

}  // namespace redecode
