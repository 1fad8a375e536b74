#include "recorder/http/json_read.h"

#include <kj/exception.h>

#include <cmath>
#include <utility>

#include "recorder/http/observe_escapes.h"
#include "traces/error.h"
#include "traces/utf8.h"

namespace redecode {
namespace {

constexpr double kExactWhole = 9007199254740992.0;  // 2^53

void check_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const size_t length = utf8_length(text, at);
    if (length == 0)
      throw Error(ErrorCode::corrupt, "the body is not UTF-8", "byte " + std::to_string(at));
    at += length;
  }
}

// Counts brackets and commas outside strings. Text that is not JSON may pass: the parser refuses
// it.
void check_shape(std::string_view text, const JsonLimits& limits) {
  uint64_t values = 1;
  uint32_t depth = 0;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\')
        ++at;
      else if (c == '"')
        in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == ',' || c == '[' || c == '{') ++values;
    if ((c == '[' || c == '{') && ++depth > limits.nesting)
      throw Error(ErrorCode::limit,
                  "the JSON is nested deeper than " + std::to_string(limits.nesting) + " levels",
                  "byte " + std::to_string(at));
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (values > limits.values)
      throw Error(ErrorCode::limit,
                  "the JSON holds more than " + std::to_string(limits.values) + " values",
                  "byte " + std::to_string(at));
  }
}

std::string_view checked(std::string_view text, const JsonLimits& limits) {
  check_utf8(text);
  check_shape(text, limits);
  return text;
}

}  // namespace

JsonText::JsonText(std::string_view text, const JsonLimits& limits)
    : root_((checked(text, limits), message_.initRoot<capnp::json::Value>())) {
  try {
    capnp::JsonCodec codec;
    codec.setMaxNestingDepth(limits.nesting + 1);
    const std::string plain = without_unicode_escapes(text);
    codec.decodeRaw(kj::arrayPtr(plain.data(), plain.size()), root_);
  } catch (const kj::Exception& e) {
    const std::string_view said(e.getDescription().begin(), e.getDescription().size());
    const size_t sentence = said.rfind("; ");  // in front of it: the parser's own condition
    const std::string why(sentence == std::string_view::npos ? said : said.substr(sentence + 2));
    throw Error(ErrorCode::corrupt, "the body is not JSON: " + why);
  }
}

std::string json_text(capnp::Text::Reader text) { return {text.begin(), text.size()}; }

void write_json_value(JsonValue value, JsonWriter& out) {
  using Value = capnp::json::Value;
  switch (value.which()) {
    case Value::BOOLEAN:
      out.value(value.getBoolean());
      return;
    case Value::NUMBER: {
      const double number = value.getNumber();
      if (std::abs(number) <= kExactWhole && number == std::floor(number))
        out.value(static_cast<int64_t>(number));
      else
        out.value(number);
      return;
    }
    case Value::STRING:
      out.value(json_text(value.getString()));
      return;
    case Value::ARRAY:
      out.begin_array();
      for (const auto item : value.getArray()) write_json_value(item, out);
      out.end_array();
      return;
    case Value::OBJECT:
      out.begin_object();
      for (const auto field : value.getObject()) {
        out.key(json_text(field.getName()));
        write_json_value(field.getValue(), out);
      }
      out.end_object();
      return;
    default:
      out.null();
  }
}

}  // namespace redecode
