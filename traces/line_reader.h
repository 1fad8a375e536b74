// traces/line_reader.h - LineReader: the lines of a text, capped, and where each one stands.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "traces/error.h"

namespace redecode {

class LineReader {
 public:
  // Errors: limit (text longer than limits::kImportFileBytes). The text must outlive the reader.
  LineReader(std::string_view text, std::string name);
  // The next line without its LF or CRLF; false at the end. Errors: limit (line too long).
  bool next(std::string_view& line);
  // Fails at `column_bytes` of the current line.
  [[noreturn]] void fail(const std::string& message, size_t column_bytes = 0,
                         ErrorCode code = ErrorCode::corrupt) const;

 private:
  std::string_view text_;
  std::string name_;
  size_t line_begin_ = 0;
  size_t next_ = 0;
  uint64_t line_number_ = 0;
};

}  // namespace redecode
