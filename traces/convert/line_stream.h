// traces/convert/line_stream.h - LineStream: the lines of a text file of any size, one at a time.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "traces/byte_source.h"

namespace redecode {

// Where a line stands: enough to read it again.
struct LinePlace {
  uint64_t offset_bytes = 0;
  uint32_t size_bytes = 0;  // without LF or CRLF
};

// Holds at most one line and one block; a line longer than limits::kImportLineBytes is passed over
// and told by is_too_long.
class LineStream {
 public:
  explicit LineStream(ByteSource& source) : source_(source) {}
  // The next line, without LF or CRLF and, on the first line, without a byte order mark. A last
  // line without an end counts. False at the end. Errors: environment.
  bool next(std::string& line);
  bool is_too_long() const { return too_long_; }  // the last line; its text is empty then
  uint64_t number() const { return number_; }     // of the last line, from 1
  const LinePlace& place() const { return place_; }

 private:
  bool fill();

  ByteSource& source_;
  std::string block_;
  size_t at_ = 0;            // in block_
  uint64_t read_bytes_ = 0;  // of the source, block_ included
  uint64_t number_ = 0;
  LinePlace place_;
  bool too_long_ = false;
};

// The line again. Errors: environment; corrupt (the file has become shorter).
std::string read_line_at(ByteSource& source, const LinePlace& place);

}  // namespace redecode
