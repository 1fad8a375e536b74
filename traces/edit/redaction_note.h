// traces/edit/redaction_note.h - what the notes of a redacted trace are made of, and read back by.
// Internal to traces/edit/*.cpp.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/event.h"
#include "traces/step.h"

namespace redecode {

inline constexpr std::string_view kDigits = "0123456789";

inline Event note(StepIndex before_step, RequestId request, std::string text) {
  Event event;
  event.kind = EventKind::note;
  event.before_step = before_step;
  event.request = request;
  event.text = std::move(text);
  return event;
}

inline std::vector<uint8_t> bytes_of(std::span<const int32_t> tokens) {
  std::vector<uint8_t> out(tokens.size_bytes());
  if (!out.empty()) std::memcpy(out.data(), tokens.data(), out.size());
  return out;
}

// One word off the front, up to a space or the end.
inline std::string_view take_word(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(word.size() + 1, text.size()));
  return word;
}

inline bool is_of(std::string_view word, std::string_view characters) {
  return !word.empty() && word.find_first_not_of(characters) == std::string_view::npos;
}

}  // namespace redecode
