// recorder/http/load_client.h - LoadClient: one completion request sent to a server, timed, and its
// answer read. Internal to recorder/http/*.cpp: it brings kj along.
#pragma once
#include <kj/compat/http.h>
#include <kj/timer.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "recorder/http/load.h"
#include "recorder/http/load_plan.h"
#include "recorder/http/observe_sse.h"
#include "traces/exchange.h"

namespace redecode {

// What came of one request.
struct LoadResult {
  LoadEnd end = LoadEnd::no_answer;
  std::string why;    // for people, where end is not ok
  Exchange exchange;  // its answer side; times since the clients' start
  std::string text;   // of all choices
};

class LoadClient {
 public:
  LoadClient(const LoadOptions& options, kj::Network& network, kj::WaitScope& scope,
             kj::Timer& timer);

  // Never fails: trouble is in the result. `ordinal` fixes what a hostile client does.
  kj::Promise<std::unique_ptr<LoadResult>> send(const LoadRequest& request, uint64_t ordinal);
  // The first model that GET /v1/models names; empty when there is none.
  kj::Promise<std::string> first_model();
  uint64_t now_us() const;

 private:
  struct Flight;
  kj::HttpHeaders headers() const;
  kj::Promise<void> answered(Flight& flight, kj::HttpClient::Response&& response);
  kj::Promise<void> read_body(Flight& flight);
  void take(Flight& flight, size_t size_bytes);
  void take_event(Flight& flight, std::string_view data);
  void body_ended(Flight& flight);
  static size_t piece_bytes(const Flight& flight);

  const LoadOptions& options_;
  kj::Timer& timer_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  kj::HttpHeaderId authorization_;
  kj::Own<kj::HttpHeaderTable> table_;
  std::string host_, bearer_;
  kj::Own<kj::NetworkAddress> address_;
  kj::Own<kj::HttpClient> client_;
};

}  // namespace redecode
