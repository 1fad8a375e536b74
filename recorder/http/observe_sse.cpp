#include "recorder/http/observe_sse.h"

namespace redecode {

bool SseReader::end_line(const std::function<bool(std::string_view)>& on_data) {
  if (line_.empty()) {
    const bool more = !has_data_ || on_data(data_);
    data_.clear();
    has_data_ = false;
    return more;
  }
  std::string_view line = line_;
  if (line.starts_with("data:")) {
    line.remove_prefix(5);
    if (line.starts_with(' ')) line.remove_prefix(1);
    if (has_data_) data_ += '\n';
    data_ += line;
    has_data_ = true;
  }
  line_.clear();
  return true;
}

bool SseReader::feed(std::string_view bytes,
                     const std::function<bool(std::string_view data)>& on_data) {
  while (!failed_ && !bytes.empty()) {
    if (after_cr_ && bytes.front() == '\n') bytes.remove_prefix(1);
    after_cr_ = false;
    const size_t end = bytes.find_first_of("\r\n");
    line_ += bytes.substr(0, end);
    failed_ = held_bytes() > event_bytes_;
    if (failed_ || end == std::string_view::npos) break;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    failed_ = !end_line(on_data);
  }
  return !failed_;
}

}  // namespace redecode
