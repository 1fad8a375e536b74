// traces/json_writer.h - JsonWriter: builds one JSON text, compact, members in the order they are
// given.
//
// Strings are escaped; bytes that are not UTF-8 come out as U+FFFD, so the result always parses.
// Floats use the shortest digits that read back as the same bits; NaN and infinities become the
// strings "nan", "inf" and "-inf", which JSON has no numbers for. Integers are written in full: a
// reader that holds numbers as doubles should be given digests as digest_hex text. A call that
// would make the text ill-formed (a value without a key, an end without a begin, take() inside an
// object) is a bug of ours and fails a CHECK.
#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redecode {

class JsonWriter {
 public:
  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  // Names the next value of the open object.
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(bool flag);
  JsonWriter& value(double number);
  JsonWriter& value(float number);
  template <std::integral I>
  JsonWriter& value(I number) {
    if constexpr (std::signed_integral<I>)
      return write_signed(number);
    else
      return write_unsigned(number);
  }
  JsonWriter& null();
  // Inserts text that is JSON already (the result of another writer's take()).
  JsonWriter& raw(std::string_view json);

  // key(name) and value(v) in one call.
  template <class T>
  JsonWriter& member(std::string_view name, const T& v) {
    return key(name).value(v);
  }

  // Returns the finished text and leaves the writer empty, ready for the next one.
  std::string take();

 private:
  enum class Open : uint8_t { object, array };
  JsonWriter& write_signed(int64_t number);
  JsonWriter& write_unsigned(uint64_t number);
  void before_value();
  void append_string(std::string_view text);

  std::string out_;
  std::vector<Open> open_;
  bool first_ = true;     // in the innermost open container
  bool has_key_ = false;  // key() was called and its value is due
};

}  // namespace redecode
