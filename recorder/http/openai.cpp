#include "recorder/http/openai.h"

#include <cmath>
#include <initializer_list>
#include <limits>

#include "recorder/http/json_read.h"
#include "traces/error.h"

namespace redecode {
namespace {

constexpr double kExactWhole = 9007199254740992.0;  // 2^53
constexpr size_t kStopStrings = 16, kStopBytes = 1024;
constexpr int32_t kMostLogprobs = 20;

[[noreturn]] void refuse(const std::string& field, const std::string& why) {
  throw Error(ErrorCode::usage, why, field);
}

[[noreturn]] void beyond(const std::string& field, const std::string& why) {
  throw Error(ErrorCode::limit, why, field);
}

[[noreturn]] void cannot_serve(const std::string& field) {
  refuse(field, "'" + field + "' cannot be served here; leave it out");
}

double number(JsonValue value, const std::string& field, double least, double most) {
  if (!value.isNumber()) refuse(field, "'" + field + "' must be a number");
  const double x = value.getNumber();
  if (!(x >= least && x <= most)) {
    JsonWriter least_text, most_text;
    least_text.value(least);
    most_text.value(most);
    refuse(field, "'" + field + "' must lie from " + least_text.take() + " to " + most_text.take());
  }
  return x;
}

int64_t whole(JsonValue value, const std::string& field, int64_t least, int64_t most) {
  if (!value.isNumber()) refuse(field, "'" + field + "' must be a whole number");
  const double x = value.getNumber();
  if (x != std::floor(x) || !(std::abs(x) <= kExactWhole))
    refuse(field, "'" + field + "' must be a whole number");
  const auto n = static_cast<int64_t>(x);
  if (n < least || n > most)
    refuse(field, "'" + field + "' must lie from " + std::to_string(least) + " to " +
                      std::to_string(most));
  return n;
}

bool flag(JsonValue value, const std::string& field) {
  if (!value.isBoolean()) refuse(field, "'" + field + "' must be true or false");
  return value.getBoolean();
}

std::string text(JsonValue value, const std::string& field) {
  if (!value.isString()) refuse(field, "'" + field + "' must be a string");
  return json_text(value.getString());
}

class RequestReader {
 public:
  RequestReader(bool chat, const RequestLimits& limits) : limits_(limits) {
    out_.chat = chat;
    out_.sampling.temperature = 1.0f;
    out_.sampling.top_p = 1.0f;
  }

  CompletionRequest read(JsonValue root) {
    if (!root.isObject()) refuse("", "the body must be a JSON object");
    for (const auto member : root.getObject()) {
      const std::string name = json_text(member.getName());
      if (!member.getValue().isNull() && !common(name, member.getValue()) &&
          !(out_.chat ? of_chat(name, member.getValue()) : of_completion(name, member.getValue())))
        unserved(name, member.getValue());
    }
    check_whole();
    return std::move(out_);
  }

 private:
  bool common(const std::string& name, JsonValue value) {
    if (name == "model") {
      out_.model = text(value, name);
    } else if (name == "n") {
      n_said_ = static_cast<uint32_t>(whole(value, name, 1, std::numeric_limits<int32_t>::max()));
      if (n_said_ > limits_.n) beyond(name, "'n' is at most " + std::to_string(limits_.n));
      out_.n = n_said_;
    } else if (name == "stream") {
      out_.stream = flag(value, name);
    } else if (name == "stream_options") {
      stream_options(value);
    } else if (name == "stop") {
      stop(value);
    } else if (name == "max_tokens") {
      max_tokens(value, name);
    } else if (name == "ignore_eos") {
      out_.ignore_eos = flag(value, name);
    } else {
      return sampling(name, value);
    }
    return true;
  }

  bool sampling(const std::string& name, JsonValue value) {
    Sampling& s = out_.sampling;
    if (name == "temperature") {
      s.temperature = static_cast<float>(number(value, name, 0, 2));
    } else if (name == "top_p") {
      s.top_p = static_cast<float>(number(value, name, 0, 1));
      if (s.top_p <= 0) refuse(name, "'top_p' must be above 0, and 1 at most");
    } else if (name == "min_p") {
      s.min_p = static_cast<float>(number(value, name, 0, 1));
      if (s.min_p >= 1) refuse(name, "'min_p' must be below 1");
    } else if (name == "top_k") {
      const int64_t k = whole(value, name, -1, std::numeric_limits<int32_t>::max());
      s.top_k = k < 0 ? 0 : static_cast<int32_t>(k);
    } else if (name == "seed") {
      const auto most = static_cast<int64_t>(kExactWhole);
      s.seed = static_cast<uint64_t>(whole(value, name, -most, most));
      out_.has_seed = true;
    } else {
      return false;
    }
    return true;
  }

  bool of_completion(const std::string& name, JsonValue value) {
    if (name == "prompt") {
      prompt(value);
    } else if (name == "logprobs") {
      if (value.isBoolean() && !value.getBoolean()) return true;
      out_.logprobs = static_cast<int32_t>(whole(value, name, 0, kMostLogprobs));
    } else if (name == "echo") {
      out_.echo = flag(value, name);
    } else if (name == "best_of") {
      best_of_ = static_cast<uint32_t>(whole(value, name, 1, std::numeric_limits<int32_t>::max()));
    } else {
      return false;
    }
    return true;
  }

  bool of_chat(const std::string& name, JsonValue value) {
    if (name == "messages") {
      messages(value);
    } else if (name == "max_completion_tokens") {
      max_tokens(value, name);
    } else if (name == "logprobs") {
      wants_logprobs_ = flag(value, name);
    } else if (name == "top_logprobs") {
      top_logprobs_ = static_cast<int32_t>(whole(value, name, 0, kMostLogprobs));
    } else {
      return false;
    }
    return true;
  }

  // Known fields that would change the answer in ways that the engine does not have, unless they
  // ask for what happens anyway. All other fields are ignored.
  void unserved(const std::string& name, JsonValue value) {
    const auto is = [&](std::initializer_list<std::string_view> names) {
      for (const std::string_view one : names)
        if (one == name) return true;
      return false;
    };
    if (is({"presence_penalty", "frequency_penalty"})) {
      if (number(value, name, -2, 2) != 0) cannot_serve(name);
    } else if (is({"repetition_penalty", "length_penalty"})) {
      if (number(value, name, 0, 10) != 1) cannot_serve(name);
    } else if (name == "min_tokens") {
      if (whole(value, name, 0, std::numeric_limits<int32_t>::max()) != 0) cannot_serve(name);
    } else if (is({"use_beam_search", "continue_final_message"})) {
      if (flag(value, name)) cannot_serve(name);
    } else if (is({"tools", "functions", "stop_token_ids", "bad_words"})) {
      if (!value.isArray() || value.getArray().size() != 0) cannot_serve(name);
    } else if (is({"logit_bias", "guided_json", "guided_regex", "guided_choice", "guided_grammar",
                   "audio", "prediction", "web_search_options", "prompt_logprobs"})) {
      if (!value.isObject() || value.getObject().size() != 0) cannot_serve(name);
    } else if (is({"suffix", "chat_template"})) {
      if (!text(value, name).empty()) cannot_serve(name);
    } else if (is({"tool_choice", "function_call"})) {
      if (!value.isString() || (text(value, name) != "none" && text(value, name) != "auto"))
        cannot_serve(name);
    } else if (name == "response_format") {
      response_format(value);
    }
  }

  void response_format(JsonValue value) {
    if (!value.isObject()) refuse("response_format", "'response_format' must be an object");
    for (const auto member : value.getObject())
      if (json_text(member.getName()) == "type" &&
          (!member.getValue().isString() || json_text(member.getValue().getString()) != "text"))
        cannot_serve("response_format");
  }

  void max_tokens(JsonValue value, const std::string& name) {
    const auto most =
        static_cast<uint32_t>(whole(value, name, 1, std::numeric_limits<int32_t>::max()));
    // The newer name wins, whichever comes first.
    if (name == "max_completion_tokens" || !newer_max_tokens_) out_.max_tokens = most;
    newer_max_tokens_ = newer_max_tokens_ || name == "max_completion_tokens";
  }

  void stream_options(JsonValue value) {
    if (!value.isObject()) refuse("stream_options", "'stream_options' must be an object");
    stream_options_said_ = true;
    for (const auto member : value.getObject())
      if (json_text(member.getName()) == "include_usage" && !member.getValue().isNull())
        out_.include_usage = flag(member.getValue(), "stream_options.include_usage");
  }

  void stop(JsonValue value) {
    out_.stop.clear();
    if (value.isString()) {
      add_stop(value);
      return;
    }
    if (!value.isArray()) refuse("stop", "'stop' must be a string or an array of strings");
    if (value.getArray().size() > kStopStrings)
      beyond("stop", "'stop' holds at most " + std::to_string(kStopStrings) + " strings");
    for (const auto item : value.getArray()) add_stop(item);
  }

  void add_stop(JsonValue value) {
    std::string word = text(value, "stop");
    if (word.empty()) refuse("stop", "'stop' holds an empty string; leave it out");
    if (word.size() > kStopBytes)
      beyond("stop", "a stop string has at most " + std::to_string(kStopBytes) + " bytes");
    out_.stop.push_back(std::move(word));
  }

  void prompt(JsonValue value) {
    JsonWriter json;
    write_json_value(value, json);
    out_.prompt_json = json.take();
    out_.prompts.clear();
    out_.token_prompts.clear();
    if (value.isString()) {
      out_.prompts.push_back(json_text(value.getString()));
      return;
    }
    if (!value.isArray() || value.getArray().size() == 0)
      refuse("prompt", "'prompt' must be a string, or an array of strings or of token ids");
    const auto items = value.getArray();
    if (items[0].isNumber()) {
      out_.token_prompts.push_back(tokens(value));
      return;
    }
    if (items.size() > limits_.prompts)
      beyond("prompt", "'prompt' holds at most " + std::to_string(limits_.prompts) + " prompts");
    for (const auto item : items) {
      if (item.isArray() != items[0].isArray())
        refuse("prompt", "'prompt' mixes texts and token ids");
      if (item.isArray())
        out_.token_prompts.push_back(tokens(item));
      else
        out_.prompts.push_back(text(item, "prompt"));
    }
  }

  static std::vector<int32_t> tokens(JsonValue value) {
    std::vector<int32_t> out;
    out.reserve(value.getArray().size());
    for (const auto item : value.getArray())
      out.push_back(
          static_cast<int32_t>(whole(item, "prompt", 0, std::numeric_limits<int32_t>::max())));
    if (out.empty()) refuse("prompt", "'prompt' holds an empty list of tokens");
    return out;
  }

  void messages(JsonValue value) {
    if (!value.isArray() || value.getArray().size() == 0)
      refuse("messages", "'messages' must be an array of at least one message");
    if (value.getArray().size() > limits_.messages)
      beyond("messages",
             "'messages' holds at most " + std::to_string(limits_.messages) + " messages");
    JsonWriter json;
    write_json_value(value, json);
    out_.prompt_json = json.take();
    out_.messages.clear();
    for (const auto item : value.getArray()) out_.messages.push_back(message(item));
  }

  static ChatMessage message(JsonValue value) {
    const std::string where = "messages";
    if (!value.isObject()) refuse(where, "a message must be an object");
    ChatMessage out;
    bool has_content = false;
    for (const auto member : value.getObject()) {
      const std::string name = json_text(member.getName());
      const JsonValue field = member.getValue();
      if (name == "role") {
        out.role = text(field, "messages.role");
      } else if (name == "content") {
        has_content = true;
        if (!field.isNull()) out.content = content(field);
      } else if ((name == "tool_calls" || name == "function_call") && !field.isNull() &&
                 !(field.isArray() && field.getArray().size() == 0)) {
        cannot_serve("messages." + name);
      }
    }
    if (out.role == "developer") out.role = "system";
    if (out.role != "system" && out.role != "user" && out.role != "assistant" && out.role != "tool")
      refuse("messages.role", "a message's role must be system, user, assistant or tool");
    if (!has_content) refuse("messages.content", "a message has no content");
    return out;
  }

  // A string, or parts of which all are texts.
  static std::string content(JsonValue value) {
    if (value.isString()) return json_text(value.getString());
    if (!value.isArray())
      refuse("messages.content", "a message's content must be a string or an array of text parts");
    std::string out;
    for (const auto part : value.getArray()) {
      if (!part.isObject()) refuse("messages.content", "a part of a content must be an object");
      std::string type, words;
      for (const auto member : part.getObject()) {
        const std::string name = json_text(member.getName());
        if (name == "type") type = text(member.getValue(), "messages.content.type");
        if (name == "text") words = text(member.getValue(), "messages.content.text");
      }
      if (type != "text") cannot_serve("messages.content.type");
      out += words;
    }
    return out;
  }

  void check_whole() {
    if (out_.chat) {
      if (out_.messages.empty()) refuse("messages", "'messages' is missing");
      if (top_logprobs_ >= 0 && !wants_logprobs_)
        refuse("top_logprobs", "'top_logprobs' needs 'logprobs': true");
      if (wants_logprobs_) out_.logprobs = top_logprobs_ < 0 ? 0 : top_logprobs_;
    } else {
      if (out_.prompts.empty() && out_.token_prompts.empty())
        refuse("prompt", "'prompt' is missing");
      if (best_of_ != 0 && best_of_ != out_.n) cannot_serve("best_of");
      if (out_.echo && out_.logprobs >= 0)
        refuse("echo",
               "'echo' with 'logprobs' cannot be served: prompts have no log probabilities");
    }
    if (stream_options_said_ && !out_.stream)
      refuse("stream_options", "'stream_options' needs 'stream': true");
  }

  const RequestLimits& limits_;
  CompletionRequest out_;
  uint32_t n_said_ = 1, best_of_ = 0;
  bool newer_max_tokens_ = false, stream_options_said_ = false, wants_logprobs_ = false;
  int32_t top_logprobs_ = -1;
};

}  // namespace

CompletionRequest parse_completion_request(std::string_view body, bool chat,
                                           const RequestLimits& limits) {
  if (body.size() > limits.body_bytes)
    beyond("", "the body has " + std::to_string(body.size()) + " bytes, at most " +
                   std::to_string(limits.body_bytes) + " are taken");
  JsonLimits json_limits;
  json_limits.nesting = limits.nesting;
  JsonText json(body, json_limits);
  return RequestReader(chat, limits).read(json.root());
}

}  // namespace redecode
