#include "engine/litmus/line.h"

#include <algorithm>

#include "traces/error.h"

namespace redecode {

LitmusLine::LitmusLine(std::string_view text, const std::string& file, uint32_t number)
    : file_(file), number_(number) {
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  const size_t hash = text.find('#');
  if (hash != std::string_view::npos) comment_ = text.substr(hash);
  const std::string_view code = text.substr(0, hash);
  for (size_t at = 0; at < code.size();) {
    if (code[at] == ' ' || code[at] == '\t') {
      ++at;
      continue;
    }
    const size_t end = std::min(code.find_first_of(" \t", at), code.size());
    words_.push_back({code.substr(at, end - at), static_cast<uint32_t>(at + 1)});
    at = end;
  }
  end_column_ =
      words_.empty() ? 1 : words_.back().column + static_cast<uint32_t>(words_.back().text.size());
}

const LitmusWord& LitmusLine::take(const char* wanted) {
  if (next_ == words_.size())
    throw Error(ErrorCode::corrupt, std::string("the line ends where ") + wanted + " is wanted",
                file_ + ":" + std::to_string(number_) + ":" + std::to_string(end_column_));
  return words_[next_++];
}

void LitmusLine::finish() const {
  if (at_end()) return;
  const LitmusWord& word = words_[next_];
  throw Error(ErrorCode::corrupt, "'" + std::string(word.text) + "' is one word too many",
              file_ + ":" + std::to_string(number_) + ":" + std::to_string(word.column));
}

void LitmusLine::fail(const std::string& what, size_t offset) const {
  const uint32_t column = next_ == 0 ? 1 : words_[next_ - 1].column;
  throw Error(ErrorCode::corrupt, what,
              file_ + ":" + std::to_string(number_) + ":" + std::to_string(column + offset));
}

bool is_litmus_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-' || c == '+' || c == '/' || c == '~' || c == '\'' || c == '%';
  });
}

}  // namespace redecode
