// engine/litmus/line.h - one line of a litmus file as words that know their column.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/litmus/litmus.h"

namespace redecode {

struct LitmusWord {
  std::string_view text;
  uint32_t column = 1;
};

class LitmusLine {
 public:
  // `text` without its newline; what follows '#' is the comment.
  LitmusLine(std::string_view text, const std::string& file, uint32_t number);

  bool empty() const { return words_.empty(); }
  uint32_t number() const { return number_; }
  std::string_view comment() const { return comment_; }  // with its '#', or empty
  const std::vector<LitmusWord>& words() const { return words_; }

  // The next word; `wanted` says what in the error when the line has ended.
  const LitmusWord& take(const char* wanted);
  bool at_end() const { return next_ == words_.size(); }
  void finish() const;  // Error when words are left

  // Error corrupt at the word taken last, or at its byte `offset`.
  [[noreturn]] void fail(const std::string& what, size_t offset = 0) const;

 private:
  std::vector<LitmusWord> words_;
  std::string_view comment_;
  const std::string& file_;
  uint32_t number_;
  uint32_t end_column_ = 1;
  size_t next_ = 0;
};

// a word of letters, digits and _.-+/~ as names of buffers, regions, events, actors and ops are.
bool is_litmus_name(std::string_view text);

// The op that the rest of `line` holds: ID ACTOR VERB .... Errors: corrupt, limit.
LitmusOp parse_litmus_op(LitmusLine& line);
DecimalId parse_litmus_id(LitmusLine& line, std::string_view text);

}  // namespace redecode
