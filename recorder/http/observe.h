// recorder/http/observe.h - what is kept of HTTP traffic that passes by: the sink, the limits, the
// counts.
//
// An observer gets copies of bytes and can fail without harm: it then gives up a connection, and
// says how many exchanges were not recorded and why.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "traces/exchange.h"

namespace redecode {

// Takes exchanges as they end: `number` is the order of arrival, not of the calls. May throw Error;
// the exchange then counts as not recorded.
class ExchangeSink {
 public:
  virtual ~ExchangeSink() = default;
  virtual void write(const Exchange& exchange) = 0;
};

struct ObserverLimits {
  uint64_t request_bytes = uint64_t{4} << 20;   // of one body
  uint64_t answer_bytes = uint64_t{8} << 20;    // of one answer: JSON body, or text of all choices
  uint64_t events = uint64_t{1} << 18;          // of one streamed answer
  uint64_t event_bytes = uint64_t{1} << 20;     // of one of them
  uint32_t choices = 128;                       // of one answer
  uint32_t pipelined = 256;                     // requests of a connection without their answers
  uint64_t held_bytes = uint64_t{256} << 20;    // of all exchanges that have not ended
  uint64_t backlog_bytes = uint64_t{64} << 20;  // copied, not looked at yet
};

enum class NotRecorded : uint8_t {
  backlog,       // the observer fell behind by ObserverLimits::backlog_bytes
  memory,        // ObserverLimits::held_bytes was used up
  not_http,      // the bytes do not parse as HTTP/1.1, or left it (an upgrade)
  not_json,      // a body is not the JSON that the endpoint takes or gives
  encoded,       // a body is compressed
  too_large,     // a body passes its limit
  write_failed,  // the sink threw
};
inline constexpr size_t kNotRecordedReasons = 7;
std::string_view to_text(NotRecorded reason);

struct ObserverCounts {
  uint64_t recorded = 0;
  std::array<uint64_t, kNotRecordedReasons> not_recorded{};
  uint64_t other_requests = 0;        // of other paths: passed through, never meant to be recorded
  uint64_t given_up_connections = 0;  // what came on them later is in no count
  std::string first_write_error;

  uint64_t not_recorded_total() const;
};

// "3 of 1,204 exchanges not recorded: 2 a body is not JSON, 1 the trace could not be written".
std::string not_recorded_text(const ObserverCounts& counts);

}  // namespace redecode
