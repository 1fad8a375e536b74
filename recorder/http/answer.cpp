#include "recorder/http/answer.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "traces/json_writer.h"
#include "traces/utf8.h"

namespace redecode {
namespace {

constexpr float kNoLogprob = -9999.0f;  // stands for minus infinity, which JSON lacks

float finite(float logprob) {
  return std::isfinite(logprob) ? std::max(logprob, kNoLogprob) : kNoLogprob;
}

bool is_utf8(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = utf8_length(bytes, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

void write_completion_logprobs(const std::vector<TokenText>& tokens, JsonWriter& json) {
  json.begin_object();
  json.key("tokens").begin_array();
  for (const TokenText& token : tokens) json.value(token_text(token.bytes));
  json.end_array().key("token_logprobs").begin_array();
  for (const TokenText& token : tokens) json.value(finite(token.logprob));
  json.end_array().key("top_logprobs").begin_array();
  for (const TokenText& token : tokens) {
    std::set<std::string> seen;
    json.begin_object();
    for (const TokenText& other : token.top)
      if (std::string name = token_text(other.bytes); seen.insert(name).second)
        json.member(name, finite(other.logprob));
    json.end_object();
  }
  json.end_array().key("text_offset").begin_array();
  for (const TokenText& token : tokens) json.value(token.offset_chars);
  json.end_array().end_object();
}

void write_chat_token(const TokenText& token, JsonWriter& json) {
  json.member("token", token_text(token.bytes)).member("logprob", finite(token.logprob));
  json.key("bytes").begin_array();
  for (const char byte : token.bytes) json.value(static_cast<unsigned>(static_cast<uint8_t>(byte)));
  json.end_array();
}

void write_chat_logprobs(const std::vector<TokenText>& tokens, JsonWriter& json) {
  json.begin_object().key("content").begin_array();
  for (const TokenText& token : tokens) {
    json.begin_object();
    write_chat_token(token, json);
    json.key("top_logprobs").begin_array();
    for (const TokenText& other : token.top) {
      json.begin_object();
      write_chat_token(other, json);
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_array().end_object();
}

void write_logprobs(bool chat, bool wanted, const std::vector<TokenText>& tokens,
                    JsonWriter& json) {
  json.key("logprobs");
  if (!wanted)
    json.null();
  else if (chat)
    write_chat_logprobs(tokens, json);
  else
    write_completion_logprobs(tokens, json);
}

void write_finish(const ChoiceAnswer& choice, JsonWriter& json) {
  json.key("finish_reason");
  if (choice.finish_reason.empty())
    json.null();
  else
    json.value(choice.finish_reason);
}

void write_head(const AnswerHead& head, std::string_view object, JsonWriter& json) {
  json.member("id", head.id).member("object", object).member("created", head.created_unix_s);
  json.member("model", head.model).member("system_fingerprint", head.fingerprint);
}

void write_usage(const Usage& usage, JsonWriter& json) {
  json.key("usage").begin_object();
  json.member("prompt_tokens", usage.prompt_tokens);
  json.member("completion_tokens", usage.output_tokens);
  json.member("total_tokens", usage.prompt_tokens + usage.output_tokens);
  json.end_object();
}

std::string event(std::string json) { return "data: " + json + "\n\n"; }

void write_model(std::string_view id, int64_t created_unix_s, uint32_t context_tokens,
                 JsonWriter& json) {
  json.begin_object().member("id", id).member("object", "model").member("created", created_unix_s);
  json.member("owned_by", "redecode").member("max_model_len", context_tokens).end_object();
}

}  // namespace

std::string render_answer(const AnswerHead& head, std::span<const ChoiceAnswer> choices,
                          const Usage& usage, bool logprobs) {
  JsonWriter json;
  json.begin_object();
  write_head(head, head.chat ? "chat.completion" : "text_completion", json);
  json.key("choices").begin_array();
  for (const ChoiceAnswer& choice : choices) {
    json.begin_object().member("index", choice.index);
    if (head.chat) {
      json.key("message").begin_object();
      json.member("role", "assistant").member("content", choice.text).end_object();
    } else {
      json.member("text", choice.text);
    }
    write_logprobs(head.chat, logprobs, choice.tokens, json);
    write_finish(choice, json);
    json.end_object();
  }
  json.end_array();
  write_usage(usage, json);
  json.end_object();
  return json.take();
}

std::string render_event(const AnswerHead& head, const ChoiceAnswer& choice, bool logprobs,
                         bool first) {
  JsonWriter json;
  json.begin_object();
  write_head(head, head.chat ? "chat.completion.chunk" : "text_completion", json);
  json.key("choices").begin_array().begin_object().member("index", choice.index);
  if (head.chat) {
    json.key("delta").begin_object();
    if (first) json.member("role", "assistant");
    if (first || !choice.text.empty()) json.member("content", choice.text);
    json.end_object();
  } else {
    json.member("text", choice.text);
  }
  write_logprobs(head.chat, logprobs && !choice.tokens.empty(), choice.tokens, json);
  write_finish(choice, json);
  json.end_object().end_array().end_object();
  return event(json.take());
}

std::string render_usage_event(const AnswerHead& head, const Usage& usage) {
  JsonWriter json;
  json.begin_object();
  write_head(head, head.chat ? "chat.completion.chunk" : "text_completion", json);
  json.key("choices").begin_array().end_array();
  write_usage(usage, json);
  json.end_object();
  return event(json.take());
}

std::string render_error_event(const ApiError& error) { return event(render_error(error)); }

std::string render_error(const ApiError& error) {
  JsonWriter json;
  const auto text_or_null = [&](const char* name, const std::string& text) {
    json.key(name);
    if (text.empty())
      json.null();
    else
      json.value(text);
  };
  json.begin_object().key("error").begin_object();
  json.member("message", error.message).member("type", error.type);
  text_or_null("param", error.param);
  text_or_null("code", error.code);
  json.end_object().end_object();
  return json.take();
}

std::string render_model(std::string_view id, int64_t created_unix_s, uint32_t context_tokens) {
  JsonWriter json;
  write_model(id, created_unix_s, context_tokens, json);
  return json.take();
}

std::string render_model_list(std::string_view id, int64_t created_unix_s,
                              uint32_t context_tokens) {
  JsonWriter json;
  json.begin_object().member("object", "list").key("data").begin_array();
  write_model(id, created_unix_s, context_tokens, json);
  json.end_array().end_object();
  return json.take();
}

std::string token_text(std::string_view bytes) {
  if (is_utf8(bytes)) return std::string(bytes);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "bytes:";
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    out += "\\x";
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

const char* status_text(unsigned status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 429:
      return "Too Many Requests";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Internal Server Error";
  }
}

}  // namespace redecode
