// recorder/http/answer.h - answers of the OpenAI endpoints as JSON and as server-sent events.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redecode {

// What all parts of one answer share.
struct AnswerHead {
  bool chat = false;
  std::string id;  // "cmpl-..." or "chatcmpl-..."
  int64_t created_unix_s = 0;
  std::string model;
  std::string fingerprint;
};

struct TokenText {
  std::string bytes;  // may be no whole character
  float logprob = 0.0f;
  uint64_t offset_chars = 0;   // of its first character in the choice's text
  std::vector<TokenText> top;  // likeliest tokens at this place; their `top` is empty
};

struct ChoiceAnswer {
  uint32_t index = 0;
  std::string text;
  std::string finish_reason;  // empty: not ended
  std::vector<TokenText> tokens;
};

struct Usage {
  uint64_t prompt_tokens = 0, output_tokens = 0;
};

// An error as the API has it.
struct ApiError {
  unsigned status = 500;
  std::string message;
  std::string type = "invalid_request_error";
  std::string param;  // empty: null
  std::string code;   // empty: null
};

std::string render_answer(const AnswerHead& head, std::span<const ChoiceAnswer> choices,
                          const Usage& usage, bool logprobs);

// Events, each "data: JSON\n\n". `first`: a chat choice begins, its role is said.
std::string render_event(const AnswerHead& head, const ChoiceAnswer& choice, bool logprobs,
                         bool first);
std::string render_usage_event(const AnswerHead& head, const Usage& usage);
std::string render_error_event(const ApiError& error);
inline constexpr std::string_view kLastEvent = "data: [DONE]\n\n";

std::string render_error(const ApiError& error);
std::string render_model(std::string_view id, int64_t created_unix_s, uint32_t context_tokens);
std::string render_model_list(std::string_view id, int64_t created_unix_s, uint32_t context_tokens);

// Text of a token for JSON: itself when it is UTF-8, else "bytes:\xe2\x80".
std::string token_text(std::string_view bytes);

// "Bad Request" for 400, and so on; static text.
const char* status_text(unsigned status);

}  // namespace redecode
