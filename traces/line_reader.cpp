#include "traces/line_reader.h"

#include "traces/limits.h"

namespace redecode {

LineReader::LineReader(std::string_view text, std::string name)
    : text_(text), name_(std::move(name)) {
  if (text_.size() > limits::kImportFileBytes)
    fail("file is too large: " + std::to_string(text_.size()) + " bytes, at most " +
             std::to_string(limits::kImportFileBytes) + " allowed",
         0, ErrorCode::limit);
}

bool LineReader::next(std::string_view& line) {
  if (next_ >= text_.size()) return false;
  line_begin_ = next_;
  ++line_number_;
  const size_t end = text_.find('\n', next_);
  line = text_.substr(next_, end == std::string_view::npos ? end : end - next_);
  next_ = end == std::string_view::npos ? text_.size() : end + 1;
  if (line.size() > limits::kImportLineBytes)
    fail("line is too long: " + std::to_string(line.size()) + " bytes, at most " +
             std::to_string(limits::kImportLineBytes) + " allowed",
         0, ErrorCode::limit);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

void LineReader::fail(const std::string& message, size_t column_bytes, ErrorCode code) const {
  throw Error(code, message,
              name_ + ": line " + std::to_string(line_number_) + ", byte " +
                  std::to_string(line_begin_ + column_bytes));
}

}  // namespace redecode
