#include "recorder/http/observe_escapes.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

namespace redecode {
namespace {

constexpr size_t kEscapeBytes = 6;  // \uXXXX
constexpr uint32_t kReplacement = 0xFFFD;

bool is_high(uint32_t code) { return code >= 0xD800 && code < 0xDC00; }
bool is_low(uint32_t code) { return code >= 0xDC00 && code < 0xE000; }

// The code unit of the escape at the start of `text`.
std::optional<uint32_t> code_unit(std::string_view text) {
  if (text.size() < kEscapeBytes || text[0] != '\\' || text[1] != 'u') return std::nullopt;
  uint32_t code = 0;
  const char* end = text.data() + kEscapeBytes;
  const auto [at, failure] = std::from_chars(text.data() + 2, end, code, 16);
  if (failure != std::errc{} || at != end) return std::nullopt;
  return code;
}

void append_utf8(uint32_t code, std::string& out) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code == 0) {
    out += "\\u0000";  // the codec takes no raw zero byte
  } else if (code < 0x80) {
    if (code == '"' || code == '\\') out += '\\';
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace

std::string without_unicode_escapes(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const size_t plain = std::min(json.find('\\'), json.size());
    out += json.substr(0, plain);
    json.remove_prefix(plain);
    const std::optional<uint32_t> first = code_unit(json);
    if (!first) {  // another escape, of two bytes
      out += json.substr(0, 2);
      json.remove_prefix(std::min<size_t>(2, json.size()));
      continue;
    }
    json.remove_prefix(kEscapeBytes);
    uint32_t code = *first;
    const std::optional<uint32_t> second = is_high(code) ? code_unit(json) : std::nullopt;
    if (second && is_low(*second)) {
      json.remove_prefix(kEscapeBytes);
      code = 0x10000 + ((code - 0xD800) << 10) + (*second - 0xDC00);
    }
    append_utf8(is_high(code) || is_low(code) ? kReplacement : code, out);
  }
  return out;
}

}  // namespace redecode
