// First byte, modulo 8: what the rest is.
//   0, 1  body of a completion or chat request, as the endpoint reads it
//   2, 3  the same, as the proxy reads it
//   4     a whole answer, then an event of one
//   5     a stream of events, in pieces
//   6     saved answers of `redecode traffic`
//   7     both directions of a connection: from the second byte on, records of a head byte (bit 7:
//         the server speaks; bits 0 to 6: so many bytes, 127: four times as many) and their bytes
#include <algorithm>
#include <string_view>

#include "recorder/http/load_answers.h"
#include "recorder/http/observe_connection.h"
#include "recorder/http/observe_json.h"
#include "recorder/http/observe_sse.h"
#include "recorder/http/openai.h"
#include "traces/check.h"
#include "traces/error.h"
#include "traces/value_text.h"

namespace redecode {
namespace {

ObserverLimits small_limits() {
  ObserverLimits limits;
  limits.request_bytes = limits.answer_bytes = limits.event_bytes = 4096;
  limits.events = 64;
  limits.choices = 8;
  limits.pipelined = 4;
  limits.held_bytes = 32768;
  return limits;
}

class Checking final : public ExchangeSink {
 public:
  void write(const Exchange& exchange) override { to_text(exchange); }
};

void observe_events(std::string_view bytes) {
  const size_t piece = bytes.empty() ? 1 : 1 + static_cast<uint8_t>(bytes[0]) % 61;
  SseReader reader(512);
  Exchange exchange;
  const ObserverLimits limits = small_limits();
  for (size_t at = 0; at < bytes.size(); at += piece) {
    const bool goes_on = reader.feed(bytes.substr(at, piece), [&](std::string_view data) {
      REDECODE_CHECK(data.size() <= 512);
      return read_answer(data, limits, exchange);
    });
    if (!goes_on) break;
    REDECODE_CHECK(reader.held_bytes() <= 2 * 512 + 1);
  }
}

void observe_connection(std::string_view bytes) {
  kj::EventLoop loop;
  kj::WaitScope scope(loop);
  Checking sink;
  ObserverShared shared(sink, small_limits());
  uint64_t now_us = 1;
  {
    ConnectionObserver connection(shared);
    scope.poll();
    while (!bytes.empty() && !connection.given_up()) {
      const auto head = static_cast<uint8_t>(bytes[0]);
      bytes.remove_prefix(1);
      const size_t count = std::min<size_t>((head & 127) == 127 ? 508 : head & 127, bytes.size());
      const std::string_view said = bytes.substr(0, count);
      bytes.remove_prefix(count);
      ++now_us;
      const bool server = (head & 128) != 0;
      if (server && count == 0)
        connection.upstream_ended(now_us);
      else if (count == 0)
        connection.client_ended(now_us);
      else if (server)
        connection.upstream_bytes(said, now_us);
      else
        connection.client_bytes(said, now_us);
      scope.poll();
    }
    connection.closed(now_us % 2 == 0, now_us + 1);
    scope.poll();
  }
  REDECODE_CHECK(shared.held_bytes == 0);
}

void read(uint8_t what, std::string_view bytes) {
  RequestLimits limits;
  limits.prompts = 16;
  limits.messages = 64;
  Exchange exchange;
  switch (what % 8) {
    case 0:
    case 1:
      parse_completion_request(bytes, what % 8 == 1, limits);
      break;
    case 2:
    case 3:
      read_request(bytes, what % 8 == 3, exchange);
      to_text(exchange);
      break;
    case 4:
      read_answer(bytes, small_limits(), exchange);
      read_answer(bytes, small_limits(), exchange);
      read_model_id(bytes);
      break;
    case 5:
      observe_events(bytes);
      break;
    case 6:
      parse_answers(bytes, "fuzz");
      break;
    default:
      observe_connection(bytes);
  }
}

}  // namespace
}  // namespace redecode

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace redecode;
  if (size < 1) return 0;
  try {
    read(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  } catch (const Error&) {
  }
  return 0;
}
