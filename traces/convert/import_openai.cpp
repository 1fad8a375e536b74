#include "traces/convert/import_openai.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <string>

#include "traces/convert/json_line.h"
#include "traces/convert/unix_time.h"
#include "traces/error.h"
#include "traces/limits.h"

namespace redecode {
namespace {

constexpr double kExactWhole = 9007199254740992.0;  // 2^53: a JSON number is a double here

[[noreturn]] void bad(std::string_view name, const char* what) {
  throw Error(ErrorCode::corrupt, std::string(name) + " is " + what);
}

double number(JsonNode node, std::string_view name, double least, double most) {
  if (!node.isNumber()) bad(name, "not a number");
  const double value = node.getNumber();
  if (!(value >= least && value <= most)) bad(name, "out of range");
  return value;
}

int64_t whole(JsonNode node, std::string_view name, double least, double most) {
  const double value = number(node, name, least, most);
  if (value != std::floor(value)) bad(name, "not a whole number");
  return static_cast<int64_t>(value);
}

uint32_t tokens(JsonNode node, std::string_view name) {
  return static_cast<uint32_t>(whole(node, name, 0, static_cast<double>(limits::kImportTokens)));
}

std::string name_text(JsonNode node, std::string_view name) {
  if (!node.isString()) bad(name, "not a string");
  const std::string_view text = text_of(node.getString());
  if (text.size() > limits::kNameBytes)
    throw Error(ErrorCode::limit, std::string(name) + " is longer than " +
                                      std::to_string(limits::kNameBytes) + " bytes");
  return std::string(text);
}

// "https://host/v1/completions?x=1" is "/v1/completions".
std::string path_of(std::string text, std::string_view name) {
  if (const size_t scheme = text.find("://"); scheme != std::string::npos) {
    const size_t slash = text.find('/', scheme + 3);
    text = slash == std::string::npos ? "/" : text.substr(slash);
  }
  text.resize(std::min(text.find_first_of("?#"), text.size()));
  if (!text.starts_with('/')) bad(name, "not a path or URL");
  return text;
}

bool is_token_list(JsonNode node) {
  if (!node.isArray() || node.getArray().size() == 0) return false;
  return node.getArray()[0].isNumber();
}

uint32_t count_token_ids(JsonNode list) {
  for (const auto item : list.getArray()) whole(item, "a token id of prompt", 0, INT32_MAX);
  return static_cast<uint32_t>(list.getArray().size());
}

class Reader {
 public:
  ImportedRequest read(JsonNode root) {
    if (!root.isObject()) throw Error(ErrorCode::corrupt, "the line is not a JSON object");
    const JsonNode* body = nullptr;
    JsonNode inner;
    for (const auto field : root.getObject())
      if (text_of(field.getName()) == "body") {
        once("body", outer_);
        inner = field.getValue();
        body = &inner;
      }
    if (body != nullptr) {
      if (!inner.isObject()) bad("body", "not an object");
      for (const auto field : root.getObject())
        read_outer(text_of(field.getName()), field.getValue());
    }
    read_body(body == nullptr ? root : inner);
    finish();
    return std::move(out_);
  }

 private:
  static void once(std::string_view name, std::set<std::string, std::less<>>& seen) {
    if (!seen.emplace(name).second)
      throw Error(ErrorCode::corrupt, std::string(name) + " appears twice");
  }

  void read_outer(std::string_view name, JsonNode node) {
    if (name == "url" || name == "path") {
      if (!out_.exchange.path.empty()) throw Error(ErrorCode::corrupt, "two paths are given");
      out_.exchange.path = path_of(name_text(node, name), name);
    } else if (name == "method") {
      if (name_text(node, name) != "POST") bad(name, "not POST");
    } else {
      read_common(name, node);
    }
  }

  void read_common(std::string_view name, JsonNode node) {
    if (name == "timestamp" || name == "time" || name == "created") {
      if (node.isNull()) return;
      const std::optional<int64_t> at = node.isString()   ? unix_us_of(text_of(node.getString()))
                                        : node.isNumber() ? unix_us_of(node.getNumber())
                                                          : std::nullopt;
      if (!at) bad(name, "not a time");
      if (!out_.time_us) out_.time_us = at;  // the object around it comes first
    } else if (name == "usage") {
      if (node.isNull()) return;
      if (!node.isObject()) bad(name, "not an object");
      for (const auto field : node.getObject()) {
        if (text_of(field.getName()) == "prompt_tokens")
          out_.exchange.prompt_tokens = tokens(field.getValue(), "usage.prompt_tokens");
        if (text_of(field.getName()) == "completion_tokens")
          out_.exchange.output_tokens = tokens(field.getValue(), "usage.completion_tokens");
      }
    }
  }

  void read_body(JsonNode body) {
    for (const auto field : body.getObject()) {
      const std::string_view name = text_of(field.getName());
      const JsonNode node = field.getValue();
      if (name == "prompt" || name == "messages") {
        once(name, body_);
        if (name == "prompt")
          read_prompt(node);
        else
          read_messages(node);
        JsonWriter json;
        write_json(node, json);
        out_.exchange.prompt = json.take();
      } else if (!read_setting(name, node)) {
        read_common(name, node);
      }
    }
  }

  // False: no setting that is kept. null is as good as not said.
  bool read_setting(std::string_view name, JsonNode node) {
    static constexpr std::string_view kNames[] = {"model", "max_tokens",  "max_completion_tokens",
                                                  "n",     "temperature", "top_p",
                                                  "top_k", "min_p",       "seed",
                                                  "stop",  "stream"};
    if (std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames)) return false;
    once(name, body_);
    if (node.isNull()) return true;
    Exchange& e = out_.exchange;
    if (name == "model") e.model = name_text(node, name);
    if (name == "max_tokens" && !newer_max_) e.max_tokens = tokens(node, name);
    if (name == "max_completion_tokens") {
      e.max_tokens = tokens(node, name);
      newer_max_ = true;
    }
    if (name == "n") e.choice_count = static_cast<uint32_t>(whole(node, name, 1, limits::kChoices));
    if (name == "temperature") e.sampling.temperature = real(node, name, 0, 100);
    if (name == "top_p") e.sampling.top_p = real(node, name, 0, 1);
    if (name == "min_p") e.sampling.min_p = real(node, name, 0, 1);
    if (name == "top_k")
      e.sampling.top_k = std::max(0, static_cast<int>(whole(node, name, -1, 1e9)));
    if (name == "seed") {
      e.sampling.seed = static_cast<uint64_t>(whole(node, name, -kExactWhole, kExactWhole));
      e.has_seed = true;
    }
    if (name == "stop") read_stop(node);
    if (name == "stream") {
      if (!node.isBoolean()) bad(name, "not true or false");
      e.streamed = node.getBoolean();
    }
    return true;
  }

  static float real(JsonNode node, std::string_view name, double least, double most) {
    return static_cast<float>(number(node, name, least, most));
  }

  void read_stop(JsonNode node) {
    if (node.isString()) {
      out_.exchange.stop.push_back(name_text(node, "stop"));
      return;
    }
    if (!node.isArray()) bad("stop", "neither a string nor a list of strings");
    limits::check(node.getArray().size(), limits::kListedTexts, "stop strings");
    for (const auto item : node.getArray())
      out_.exchange.stop.push_back(name_text(item, "a string of stop"));
  }

  void read_prompt(JsonNode node) {
    if (node.isString()) return;
    if (!node.isArray() || node.getArray().size() == 0)
      bad("prompt", "neither a string nor a list of strings or token ids");
    if (is_token_list(node)) {
      token_count_ = count_token_ids(node);
      return;
    }
    const bool of_lists = is_token_list(node.getArray()[0]);
    for (const auto item : node.getArray()) {
      if (of_lists ? !is_token_list(item) : !item.isString())
        bad("prompt", "neither a string nor a list of strings or token ids");
      if (of_lists) token_count_ += count_token_ids(item);
    }
  }

  static void read_messages(JsonNode node) {
    if (!node.isArray() || node.getArray().size() == 0) bad("messages", "not a list of messages");
    for (const auto message : node.getArray()) {
      if (!message.isObject()) bad("a message", "not an object");
      bool has_role = false;
      for (const auto field : message.getObject())
        if (text_of(field.getName()) == "role") {
          if (!field.getValue().isString()) bad("role of a message", "not a string");
          has_role = true;
        }
      if (!has_role) bad("role of a message", "missing");
    }
  }

  void finish() {
    Exchange& e = out_.exchange;
    const bool chat = body_.contains("messages");
    if (chat == body_.contains("prompt"))
      throw Error(ErrorCode::corrupt,
                  chat ? "both prompt and messages are given" : "prompt or messages is missing");
    if (e.path.empty()) e.path = chat ? "/v1/chat/completions" : "/v1/completions";
    if (e.path.ends_with("/chat/completions") != chat)
      throw Error(ErrorCode::corrupt, "the path is " + e.path + " and the body has " +
                                          (chat ? "messages" : "a prompt"));
    if (!body_.contains("temperature")) e.sampling.temperature = 1.0f;  // as the API has it
    e.prompt_bytes = e.prompt.size();
    if (e.prompt_tokens == 0) e.prompt_tokens = token_count_;
    e.end = ExchangeEnd::not_sent;
  }

  ImportedRequest out_;
  std::set<std::string, std::less<>> outer_, body_;  // members seen
  uint32_t token_count_ = 0;
  bool newer_max_ = false;
};

}  // namespace

ImportedRequest parse_openai_line(std::string_view line) {
  JsonLine json(line);
  return Reader().read(json.root());
}

}  // namespace redecode
