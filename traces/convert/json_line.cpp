#include "traces/convert/json_line.h"

#include <kj/exception.h>

#include <cmath>
#include <optional>

#include "traces/error.h"
#include "traces/utf8.h"

namespace redecode {
namespace {

constexpr double kExactWhole = 9007199254740992.0;  // 2^53
constexpr uint32_t kReplacement = 0xFFFD;

void check_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    if (length == 0)
      throw Error(ErrorCode::corrupt, "not UTF-8 at byte " + std::to_string(at) + " of the line");
    at += length;
  }
}

// Counts brackets and commas outside of strings. Text that is not JSON may pass: the parser refuses
// it.
void check_shape(std::string_view text) {
  uint64_t values = 1;
  uint32_t depth = 0;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (static_cast<unsigned char>(c) < 0x20)
        throw Error(ErrorCode::corrupt, "not JSON: a control character in a string");
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == ',' || c == '[' || c == '{') ++values;
    if ((c == '[' || c == '{') && ++depth > JsonLine::kNesting)
      throw Error(ErrorCode::limit, "nested deeper than " + std::to_string(JsonLine::kNesting));
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (values > JsonLine::kValues)
      throw Error(ErrorCode::limit,
                  "more than " + std::to_string(JsonLine::kValues) + " values in a line");
  }
}

// Four hex digits behind "\u" at `at`.
std::optional<uint32_t> code_unit(std::string_view json, size_t at) {
  if (json.size() - at < 6 || json[at] != '\\' || json[at + 1] != 'u') return std::nullopt;
  uint32_t unit = 0;
  for (size_t i = at + 2; i < at + 6; ++i) {
    const char c = json[i];
    const char lower = static_cast<char>(c | 0x20);
    if (c >= '0' && c <= '9')
      unit = unit * 16 + static_cast<uint32_t>(c - '0');
    else if (lower >= 'a' && lower <= 'f')
      unit = unit * 16 + static_cast<uint32_t>(lower - 'a' + 10);
    else
      return std::nullopt;
  }
  return unit;
}

void append_utf8(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

// Control characters may stand raw here: the parser takes them.
void append_character(uint32_t code, std::string& out) {
  if (code == '"' || code == '\\') out += '\\';
  append_utf8(code, out);
}

}  // namespace

std::string decode_unicode_escapes(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (size_t at = 0; at < json.size();) {
    if (json[at] != '\\') {
      out += json[at++];
      continue;
    }
    const std::optional<uint32_t> unit = code_unit(json, at);
    if (!unit) {  // another escape, or a malformed one
      out += json.substr(at, 2);
      at += 2;
      continue;
    }
    uint32_t code = *unit;
    at += 6;
    if (code >= 0xD800 && code < 0xDC00) {
      const std::optional<uint32_t> low = code_unit(json, at);
      if (low && *low >= 0xDC00 && *low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (*low - 0xDC00);
        at += 6;
      } else {
        code = kReplacement;
      }
    } else if (code >= 0xDC00 && code < 0xE000) {
      code = kReplacement;
    }
    append_character(code, out);
  }
  return out;
}

JsonLine::JsonLine(std::string_view text)
    : root_((check_utf8(text), check_shape(text), message_.initRoot<capnp::json::Value>())) {
  try {
    capnp::JsonCodec codec;
    codec.setMaxNestingDepth(kNesting + 1);
    const std::string plain = decode_unicode_escapes(text);
    codec.decodeRaw(kj::arrayPtr(plain.data(), plain.size()), root_);
  } catch (const kj::Exception& e) {
    const std::string_view said(e.getDescription().begin(), e.getDescription().size());
    const size_t sentence = said.rfind("; ");  // in front of it: the parser's own condition
    throw Error(ErrorCode::corrupt, "not JSON: " + std::string(sentence == std::string_view::npos
                                                                   ? said
                                                                   : said.substr(sentence + 2)));
  }
}

std::string_view text_of(capnp::Text::Reader text) { return {text.begin(), text.size()}; }

void write_json(JsonNode node, JsonWriter& out) {
  using Value = capnp::json::Value;
  switch (node.which()) {
    case Value::BOOLEAN:
      out.value(static_cast<bool>(node.getBoolean()));
      return;
    case Value::NUMBER: {
      const double number = node.getNumber();
      if (std::abs(number) <= kExactWhole && number == std::floor(number))
        out.value(static_cast<int64_t>(number));
      else
        out.value(number);
      return;
    }
    case Value::STRING:
      out.value(text_of(node.getString()));
      return;
    case Value::ARRAY:
      out.begin_array();
      for (const auto item : node.getArray()) write_json(item, out);
      out.end_array();
      return;
    case Value::OBJECT:
      out.begin_object();
      for (const auto field : node.getObject()) {
        out.key(text_of(field.getName()));
        write_json(field.getValue(), out);
      }
      out.end_object();
      return;
    default:
      out.null();
  }
}

}  // namespace redecode
