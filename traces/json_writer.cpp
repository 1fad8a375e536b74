#include "traces/json_writer.h"

#include <charconv>
#include <cmath>

#include "traces/check.h"
#include "traces/utf8.h"

namespace redecode {
namespace {

template <class T>
void append_number(std::string& out, T number) {
  char text[64];
  const auto result = std::to_chars(text, text + sizeof text, number);
  REDECODE_CHECK(result.ec == std::errc());
  out.append(text, result.ptr);
}

template <class T>
std::string_view name_of_non_finite(T number) {
  if (std::isnan(number)) return "nan";
  return number > 0 ? "inf" : "-inf";
}

}  // namespace

void JsonWriter::before_value() {
  if (open_.empty()) {
    REDECODE_CHECK(out_.empty());
    return;
  }
  if (open_.back() == Open::object) {
    REDECODE_CHECK(has_key_);
    has_key_ = false;
    return;
  }
  if (!first_) out_ += ',';
  first_ = false;
}

JsonWriter& JsonWriter::begin_object() {
  before_value();
  out_ += '{';
  open_.push_back(Open::object);
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::end_object() {
  REDECODE_CHECK(!open_.empty() && open_.back() == Open::object && !has_key_);
  out_ += '}';
  open_.pop_back();
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::begin_array() {
  before_value();
  out_ += '[';
  open_.push_back(Open::array);
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::end_array() {
  REDECODE_CHECK(!open_.empty() && open_.back() == Open::array);
  out_ += ']';
  open_.pop_back();
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  REDECODE_CHECK(!open_.empty() && open_.back() == Open::object && !has_key_);
  if (!first_) out_ += ',';
  first_ = false;
  append_string(name);
  out_ += ':';
  has_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  before_value();
  append_string(text);
  return *this;
}

JsonWriter& JsonWriter::value(bool flag) {
  before_value();
  out_ += flag ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return value(name_of_non_finite(number));
  before_value();
  append_number(out_, number);
  return *this;
}

JsonWriter& JsonWriter::value(float number) {
  if (!std::isfinite(number)) return value(name_of_non_finite(number));
  before_value();
  append_number(out_, number);
  return *this;
}

JsonWriter& JsonWriter::write_signed(int64_t number) {
  before_value();
  append_number(out_, number);
  return *this;
}

JsonWriter& JsonWriter::write_unsigned(uint64_t number) {
  before_value();
  append_number(out_, number);
  return *this;
}

JsonWriter& JsonWriter::null() {
  before_value();
  out_ += "null";
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  REDECODE_CHECK(!json.empty());
  before_value();
  out_ += json;
  return *this;
}

std::string JsonWriter::take() {
  REDECODE_CHECK(open_.empty() && !out_.empty());
  std::string out = std::move(out_);
  *this = JsonWriter();
  return out;
}

void JsonWriter::append_string(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out_ += '"';
  for (size_t at = 0; at < text.size();) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += text[at++];
    } else if (c < 0x20 || c == 0x7F) {
      const char* shorts = c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '\r' ? "\\r" : nullptr;
      if (shorts != nullptr)
        out_ += shorts;
      else
        out_.append("\\u00").append(1, kHex[c >> 4]).append(1, kHex[c & 15]);
      ++at;
    } else if (const size_t length = utf8_length(text, at); length != 0) {
      out_.append(text, at, length);
      at += length;
    } else {
      out_ += "\xEF\xBF\xBD";
      ++at;
    }
  }
  out_ += '"';
}

}  // namespace redecode
