// recorder/http/endpoint_state.h - what the connections of one endpoint share.
#pragma once
#include <kj/compat/http.h>

#include <chrono>
#include <map>
#include <memory>

#include "recorder/http/answering.h"
#include "recorder/http/dispatcher.h"
#include "recorder/http/endpoint.h"
#include "recorder/http/metrics.h"

namespace redecode {

struct EndpointHeaders {
  explicit EndpointHeaders(kj::HttpHeaderTable::Builder& builder)
      : authorization(builder.add("Authorization")),
        retry_after(builder.add("Retry-After")),
        www_authenticate(builder.add("WWW-Authenticate")),
        allow(builder.add("Allow")),
        cache_control(builder.add("Cache-Control")) {}
  kj::HttpHeaderId authorization, retry_after, www_authenticate, allow, cache_control;
};

class ActiveRequest;

struct EndpointState {
  const EndpointOptions& options;
  TextBackend& backend;
  kj::Timer& timer;
  JobDispatcher& dispatcher;
  EndpointMetrics& metrics;
  const kj::HttpHeaderTable& table;
  const EndpointHeaders& headers;
  int64_t started_unix_s = 0;
  uint64_t id_key = 0;  // of answer ids
  bool draining = false;
  uint64_t next_number = 0;
  uint64_t unseeded = 0;                        // requests that gave no seed
  uint64_t body_bytes = 0;                      // of bodies being read
  std::map<uint64_t, ActiveRequest*> active{};  // completions, by order of arrival
};

// A completion from its first body byte to its last answer byte; registered while it lives.
class ActiveRequest {
 public:
  using Clock = std::chrono::steady_clock;

  ActiveRequest(EndpointState& state, int fd) : state_(state), fd_(fd) {
    number_ = state_.next_number++;
    state_.active.emplace(number_, this);
  }
  ~ActiveRequest() {
    state_.active.erase(number_);
    state_.body_bytes -= body_bytes;
    if (answering && !answering->done()) ++state_.metrics.disconnects;
    if (begun) state_.metrics.request_seconds.add(since(begun_at));
  }
  ActiveRequest(const ActiveRequest&) = delete;
  ActiveRequest& operator=(const ActiveRequest&) = delete;

  static double since(Clock::time_point at) {
    return std::chrono::duration<double>(Clock::now() - at).count();
  }
  uint64_t number() const { return number_; }
  // The client has closed its connection, or its sending half.
  bool client_gone() const;
  // Ends the request without an answer, or without the rest of one.
  void cut(const char* why);

  kj::Own<kj::PromiseFulfiller<void>> cutter;
  std::unique_ptr<Answering> answering;  // once the body has been read and found good
  uint64_t body_bytes = 0;
  bool begun = false;
  Clock::time_point begun_at;

 private:
  EndpointState& state_;
  int fd_;
  uint64_t number_ = 0;
};

}  // namespace redecode
