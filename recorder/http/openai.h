// recorder/http/openai.h - requests of the OpenAI completion endpoints as values.
//
// Unknown fields are ignored, as servers of this API do; fields that are known and cannot be served
// are refused by name.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/step.h"

namespace redecode {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant", "tool"
  std::string content;
  bool operator==(const ChatMessage&) const = default;
};

struct CompletionRequest {
  bool chat = false;
  std::string model;                                // empty: not said
  std::vector<std::string> prompts;                 // completions: one or more texts
  std::vector<std::vector<int32_t>> token_prompts;  // or one or more lists of token ids
  std::vector<ChatMessage> messages;                // chat
  std::string prompt_json;                          // `prompt` or `messages` as JSON text, compact
  uint32_t max_tokens = 0;  // 0: not said (max_completion_tokens counts too)
  uint32_t n = 1;
  Sampling sampling;  // temperature 1 and top_p 1 where not said, as the API has it
  bool has_seed = false;
  std::vector<std::string> stop;  // at most 16 here; the API allows 4
  bool stream = false;
  bool include_usage = false;  // stream_options.include_usage
  int32_t logprobs = -1;       // alternatives a token; -1: none asked for
  bool echo = false;
  bool ignore_eos = false;
};

// Caps on a body, checked before anything is made of it.
struct RequestLimits {
  uint64_t body_bytes = uint64_t{4} << 20;
  uint32_t prompts = 128;
  uint32_t n = 128;
  uint32_t messages = 4096;
  uint32_t nesting = 32;
};

// `chat` says which endpoint the body came to. Errors: usage (its context is the field's name),
// limit, both with text fit for the client; corrupt (not JSON).
CompletionRequest parse_completion_request(std::string_view body, bool chat,
                                           const RequestLimits& limits = {});

}  // namespace redecode
