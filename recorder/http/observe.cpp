#include "recorder/http/observe.h"

#include "traces/thousands.h"

namespace redecode {

std::string_view to_text(NotRecorded reason) {
  switch (reason) {
    case NotRecorded::backlog:
      return "the observer fell behind";
    case NotRecorded::memory:
      return "the observer's memory was used up";
    case NotRecorded::not_http:
      return "not HTTP/1.1";
    case NotRecorded::not_json:
      return "a body is not the JSON of its endpoint";
    case NotRecorded::encoded:
      return "a body is compressed";
    case NotRecorded::too_large:
      return "a body is too large";
    case NotRecorded::write_failed:
      return "the trace could not be written";
  }
  return "unknown";
}

uint64_t ObserverCounts::not_recorded_total() const {
  uint64_t total = 0;
  for (const uint64_t count : not_recorded) total += count;
  return total;
}

std::string not_recorded_text(const ObserverCounts& counts) {
  const uint64_t missing = counts.not_recorded_total();
  std::string out = with_thousands(missing) + " of " + with_thousands(counts.recorded + missing) +
                    " exchanges not recorded";
  const char* separator = ": ";
  for (size_t i = 0; i < kNotRecordedReasons; ++i) {
    if (counts.not_recorded[i] == 0) continue;
    out += separator + with_thousands(counts.not_recorded[i]) + " " +
           std::string(to_text(static_cast<NotRecorded>(i)));
    separator = ", ";
  }
  return out;
}

}  // namespace redecode
