#include "recorder/http/observe_json.h"

#include <capnp/compat/json.h>
#include <capnp/message.h>
#include <kj/exception.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "recorder/http/observe_escapes.h"
#include "traces/json_writer.h"

namespace redecode {
namespace {

using Value = capnp::json::Value;
using Object = capnp::List<Value::Field>::Reader;

constexpr size_t kNesting = 32;

std::string text_of(capnp::Text::Reader text) { return {text.begin(), text.size()}; }

void write_json(Value::Reader value, JsonWriter& out) {
  switch (value.which()) {
    case Value::BOOLEAN:
      out.value(value.getBoolean());
      return;
    case Value::NUMBER: {
      const double number = value.getNumber();
      constexpr double kWhole = 9007199254740992.0;
      if (std::abs(number) <= kWhole && number == std::floor(number))
        out.value(static_cast<int64_t>(number));
      else
        out.value(number);
      return;
    }
    case Value::STRING:
      out.value(text_of(value.getString()));
      return;
    case Value::ARRAY:
      out.begin_array();
      for (const auto item : value.getArray()) write_json(item, out);
      out.end_array();
      return;
    case Value::OBJECT:
      out.begin_object();
      for (const auto field : value.getObject()) {
        out.key(text_of(field.getName()));
        write_json(field.getValue(), out);
      }
      out.end_object();
      return;
    default:
      out.null();
  }
}

// 0 for what is not a number of that range.
uint64_t whole(Value::Reader value, uint64_t most) {
  if (!value.isNumber()) return 0;
  const double number = value.getNumber();
  if (!(number >= 0) || number > static_cast<double>(most)) return 0;
  return static_cast<uint64_t>(number);
}

uint32_t whole32(Value::Reader value) { return static_cast<uint32_t>(whole(value, UINT32_MAX)); }

float real(Value::Reader value, float otherwise) {
  return value.isNumber() && std::isfinite(value.getNumber())
             ? static_cast<float>(value.getNumber())
             : otherwise;
}

void read_stop(Value::Reader value, std::vector<std::string>& out) {
  constexpr size_t kMostStops = 16;
  if (value.isString()) out.push_back(text_of(value.getString()));
  if (!value.isArray()) return;
  for (const auto item : value.getArray())
    if (item.isString() && out.size() < kMostStops) out.push_back(text_of(item.getString()));
}

void read_prompt(Value::Reader value, Exchange& out) {
  JsonWriter json;
  write_json(value, json);
  out.prompt = json.take();
  out.prompt_bytes = out.prompt.size();
}

void read_request_field(std::string_view name, Value::Reader value, bool chat, Exchange& out) {
  if (name == (chat ? "messages" : "prompt")) {
    read_prompt(value, out);
  } else if (name == "model" && value.isString()) {
    out.model = text_of(value.getString());
  } else if (name == "max_tokens" || name == "max_completion_tokens") {
    out.max_tokens = std::max(out.max_tokens, whole32(value));
  } else if (name == "n") {
    out.choice_count = std::max<uint32_t>(1, whole32(value));
  } else if (name == "stream") {
    out.streamed = value.isBoolean() && value.getBoolean();
  } else if (name == "temperature") {
    out.sampling.temperature = real(value, 1.0f);
  } else if (name == "top_p") {
    out.sampling.top_p = real(value, 1.0f);
  } else if (name == "min_p") {
    out.sampling.min_p = real(value, 0.0f);
  } else if (name == "top_k") {
    out.sampling.top_k = static_cast<int32_t>(whole(value, INT32_MAX));
  } else if (name == "seed" && value.isNumber()) {
    out.has_seed = true;
    out.sampling.seed = static_cast<uint64_t>(static_cast<int64_t>(
        std::clamp(value.getNumber(), -9007199254740992.0, 9007199254740992.0)));
  } else if (name == "stop") {
    read_stop(value, out.stop);
  }
}

std::string_view name_of(Value::Field::Reader field) {
  const auto name = field.getName();
  return {name.begin(), name.size()};
}

// use(object), when `json` is one.
template <class Use>
bool with_object(std::string_view json, Use&& use) {
  try {
    const std::string text = without_unicode_escapes(json);
    capnp::MallocMessageBuilder message;
    capnp::JsonCodec codec;
    codec.setMaxNestingDepth(kNesting);
    auto root = message.initRoot<Value>();
    codec.decodeRaw(kj::arrayPtr(text.data(), text.size()), root);
    if (!root.isObject()) return false;
    return use(root.asReader().getObject());
  } catch (const kj::Exception&) {
    return false;
  }
}

void read_usage(Value::Reader usage, Exchange& out) {
  if (!usage.isObject()) return;
  for (const auto field : usage.getObject()) {
    if (name_of(field) == "prompt_tokens") out.prompt_tokens = whole32(field.getValue());
    if (name_of(field) == "completion_tokens") out.output_tokens = whole32(field.getValue());
  }
}

// "text" of completions; "message" or "delta" with "content" of chat.
void append_text(std::string_view name, Value::Reader value, std::string& out) {
  if (name == "text" && value.isString()) out += text_of(value.getString());
  if ((name != "message" && name != "delta") || !value.isObject()) return;
  for (const auto field : value.getObject())
    if (name_of(field) == "content" && field.getValue().isString())
      out += text_of(field.getValue().getString());
}

bool read_choice(Value::Reader choice, const ObserverLimits& limits, Exchange& out) {
  if (!choice.isObject()) return true;
  uint64_t index = 0;
  for (const auto field : choice.getObject())
    if (name_of(field) == "index") index = whole(field.getValue(), UINT32_MAX);
  if (index >= limits.choices) return false;
  if (out.choices.size() <= index) out.choices.resize(index + 1);
  ExchangeChoice& to = out.choices[index];
  for (const auto field : choice.getObject()) {
    append_text(name_of(field), field.getValue(), to.text);
    if (name_of(field) == "finish_reason" && field.getValue().isString())
      to.finish_reason = text_of(field.getValue().getString());
  }
  to.text_bytes = to.text.size();
  return true;
}

}  // namespace

bool read_request(std::string_view body, bool chat, Exchange& out) {
  return with_object(body, [&](Object object) {
    out.sampling.temperature = out.sampling.top_p = 1.0f;  // as the API has it
    for (const auto field : object) read_request_field(name_of(field), field.getValue(), chat, out);
    return true;
  });
}

bool read_answer(std::string_view json, const ObserverLimits& limits, Exchange& out) {
  return with_object(json, [&](Object object) {
    for (const auto field : object) {
      if (name_of(field) == "usage") read_usage(field.getValue(), out);
      if (name_of(field) != "choices" || !field.getValue().isArray()) continue;
      for (const auto choice : field.getValue().getArray())
        if (!read_choice(choice, limits, out)) return false;
    }
    uint64_t text_bytes = 0;
    for (const ExchangeChoice& choice : out.choices) text_bytes += choice.text.size();
    return text_bytes <= limits.answer_bytes;
  });
}

std::string read_model_id(std::string_view json) {
  std::string id;
  with_object(json, [&](Object object) {
    for (const auto field : object) {
      if (name_of(field) != "data" || !field.getValue().isArray()) continue;
      for (const auto model : field.getValue().getArray()) {
        if (!model.isObject() || !id.empty()) continue;
        for (const auto member : model.getObject())
          if (name_of(member) == "id" && member.getValue().isString())
            id = text_of(member.getValue().getString());
      }
    }
    return true;
  });
  return id;
}

}  // namespace redecode
