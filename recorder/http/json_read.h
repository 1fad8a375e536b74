// recorder/http/json_read.h - JSON from outside, checked before memory is taken for it.
//
// The parser is Cap'n Proto's JsonCodec; what it does not check is checked here: UTF-8, nesting,
// and the number of values (each costs the parser some 60 bytes). Escaped surrogate pairs come out
// as one character, lone ones as U+FFFD.
#pragma once
#include <capnp/compat/json.h>
#include <capnp/message.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "traces/json_writer.h"

namespace redecode {

using JsonValue = capnp::json::Value::Reader;

struct JsonLimits {
  uint32_t nesting = 32;
  uint64_t values = uint64_t{1} << 18;  // of all arrays and objects together, about
};

// Holds the parsed text; readers live as long as it does.
class JsonText {
 public:
  // Errors: corrupt (not UTF-8, not JSON), limit (nesting, values). Cost: two passes.
  explicit JsonText(std::string_view text, const JsonLimits& limits = {});
  JsonValue root() { return root_.asReader(); }

 private:
  capnp::MallocMessageBuilder message_;
  capnp::json::Value::Builder root_;
};

// Text of a string or a name, a copy.
std::string json_text(capnp::Text::Reader text);

// Appends `value` as it was read; numbers by their value.
void write_json_value(JsonValue value, JsonWriter& out);

}  // namespace redecode
