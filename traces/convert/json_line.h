// traces/convert/json_line.h - JSON from outside, one text of bounded size, as values. Internal to
// traces/convert/*.cpp.
//
// The parser is Cap'n Proto's JsonCodec. What it does not do is done here first: UTF-8, nesting,
// the number of values (each costs memory), and \u escapes, which 0.9 reads wrongly.
#pragma once
#include <capnp/compat/json.h>
#include <capnp/message.h>

#include <string>
#include <string_view>

#include "traces/json_writer.h"

namespace redecode {

using JsonNode = capnp::json::Value::Reader;

// Holds the parsed text; nodes live as long as it does.
class JsonLine {
 public:
  static constexpr uint32_t kNesting = 64;
  static constexpr uint64_t kValues = uint64_t{1} << 18;

  // Errors: corrupt (not UTF-8, not JSON), limit (nesting, values).
  explicit JsonLine(std::string_view text);
  JsonNode root() { return root_.asReader(); }

 private:
  capnp::MallocMessageBuilder message_;
  capnp::json::Value::Builder root_;
};

std::string_view text_of(capnp::Text::Reader text);

// Appends `node` as it was read, compact; numbers by their value.
void write_json(JsonNode node, JsonWriter& out);

// The same text with every "\uXXXX" as the UTF-8 that it stands for; quotes and backslashes stay
// escaped. Halves of surrogate pairs become U+FFFD; malformed escapes stay, for the parser to
// refuse.
std::string decode_unicode_escapes(std::string_view json);

}  // namespace redecode
