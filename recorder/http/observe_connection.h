// recorder/http/observe_connection.h - ConnectionObserver: the exchanges of one HTTP/1.1 connection
// from copies of its bytes. Internal to recorder/http/*.cpp and its tests: it brings kj along.
#pragma once
#include <kj/compat/http.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "recorder/http/observe.h"
#include "recorder/http/observe_sse.h"
#include "recorder/http/observe_stream.h"
#include "recorder/http/observe_times.h"

namespace redecode {

// What the observers of one proxy share. Needs no event loop of its own.
struct ObserverShared {
  ObserverShared(ExchangeSink& sink, const ObserverLimits& limits);

  ExchangeSink& sink;
  ObserverLimits limits;
  ObserverCounts counts;
  DurationHistogram first_byte_us, whole_us;
  uint64_t next_number = 0;
  uint64_t held_bytes = 0;
  kj::HttpHeaderId content_encoding, expect;
  kj::Own<kj::HttpHeaderTable> table;

  void count(NotRecorded reason) { ++counts.not_recorded[static_cast<size_t>(reason)]; }
};

// Needs a current kj event loop; after each call the loop must be polled until nothing is left to
// do, for an observer works in its turns. Times are the `now_us` of the call that brought the byte,
// and must not descend.
class ConnectionObserver {
 public:
  explicit ConnectionObserver(ObserverShared& shared);
  ~ConnectionObserver();  // as closed()
  ConnectionObserver(const ConnectionObserver&) = delete;
  ConnectionObserver& operator=(const ConnectionObserver&) = delete;

  void client_bytes(std::string_view bytes, uint64_t now_us);
  void upstream_bytes(std::string_view bytes, uint64_t now_us);
  void client_ended(uint64_t now_us);    // will send no more; may still read
  void upstream_ended(uint64_t now_us);  // closed in order
  // The connection is over: exchanges that have not ended end here, by whoever left first.
  void closed(bool by_client, uint64_t now_us);
  // Nothing more is recorded of this connection; what was under way is counted.
  void give_up(NotRecorded reason);

  bool given_up() const { return given_up_; }
  uint32_t open_requests() const { return static_cast<uint32_t>(pending_.size()); }

 private:
  struct Pending;
  using Consume = kj::Function<void(std::string_view)>;

  void feed(FedStream& to, std::string_view bytes);
  kj::Promise<void> request_loop();
  kj::Promise<void> read_request_body(kj::HttpInputStream::Request&& request);
  void request_ended(Pending& pending);
  kj::Promise<void> answer_loop();
  kj::Promise<void> next_answer();
  kj::Promise<void> read_answer_body(kj::HttpInputStream::Response&& response);
  void take_answer(Pending& pending, std::string_view bytes);
  void answer_ended(Pending& pending);
  void settle_front();
  kj::Promise<void> drain(kj::AsyncInputStream& body, kj::byte* buffer, Consume consume);
  void failed(bool answer, const kj::Exception& why);
  void hold(Pending& pending, uint64_t bytes);
  void skip(Pending& pending, NotRecorded reason);
  void finish(Pending& pending, ExchangeEnd end);
  void end_all(ExchangeEnd end);

  static constexpr size_t kBufferBytes = 16384;

  ObserverShared& shared_;
  FedStream from_client_, from_upstream_;
  kj::Own<kj::HttpInputStream> requests_, answers_;
  std::unique_ptr<kj::byte[]> request_buffer_, answer_buffer_;
  std::deque<std::shared_ptr<Pending>> pending_;  // in order of arrival; the front is answered
  uint64_t now_us_ = 0;
  bool given_up_ = false;
  bool client_left_ = false;
  std::optional<NotRecorded> giving_up_;  // decided inside a turn, done at its end
  kj::Promise<void> request_task_ = nullptr, answer_task_ = nullptr;  // last: they use the rest
};

}  // namespace redecode
