// recorder/http/text_stream.h - from the bytes of tokens to text that may be sent: whole UTF-8
// characters only, and nothing of a stop string.
//
// What comes out does not depend on where the borders of the tokens lie.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redecode {

// Bytes in, well-formed UTF-8 out. A character waits until it is whole; each byte that no
// character can hold becomes U+FFFD.
class Utf8Stream {
 public:
  std::string feed(std::string_view bytes);
  std::string finish();  // what waits, as U+FFFD

 private:
  std::string held_;  // the start of a character: three bytes at most
};

// Text in, text that is surely before any stop string out. The stop string that is complete first
// ends the text; of two that end together, the one that starts first.
class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {}
  // After a match nothing more comes out.
  std::string feed(std::string_view text);
  std::string finish();  // what waited in case a stop string began there
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;  // shorter than the longest stop string
  bool stopped_ = false;
};

// Both, one after the other, and how much went in and out.
class TextStream {
 public:
  explicit TextStream(std::vector<std::string> stops) : stop_(std::move(stops)) {}
  // Text that may be sent now.
  std::string feed(std::string_view bytes);
  std::string finish();
  bool stopped() const { return stop_.stopped(); }
  uint64_t decoded_bytes() const { return decoded_bytes_; }    // text so far, sent or not
  uint64_t decoded_chars() const { return decoded_chars_; }    // its characters
  uint64_t released_bytes() const { return released_bytes_; }  // text that came out

 private:
  std::string through(const std::string& text);

  Utf8Stream utf8_;
  StopMatcher stop_;
  uint64_t decoded_bytes_ = 0, decoded_chars_ = 0, released_bytes_ = 0;
};

// Characters of well-formed UTF-8.
uint64_t count_chars(std::string_view text);

}  // namespace redecode
