// recorder/http/observe_sse.h - SseReader: the events of a server-sent event stream, as their bytes
// come.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace redecode {

class SseReader {
 public:
  explicit SseReader(uint64_t event_bytes) : event_bytes_(event_bytes) {}
  // Calls `on_data` with the joined "data:" lines of each event that `bytes` completes. Lines may
  // end in LF, CR LF or CR; comments and other fields are skipped. False, and no more calls, once
  // an event is longer than the limit or `on_data` returns false.
  bool feed(std::string_view bytes, const std::function<bool(std::string_view data)>& on_data);
  uint64_t held_bytes() const { return line_.size() + data_.size(); }

 private:
  bool end_line(const std::function<bool(std::string_view)>& on_data);

  uint64_t event_bytes_;
  std::string line_, data_;
  bool has_data_ = false;
  bool after_cr_ = false;
  bool failed_ = false;
};

}  // namespace redecode
