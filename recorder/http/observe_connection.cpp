#include "recorder/http/observe_connection.h"

#include <kj/debug.h>

#include <algorithm>
#include <utility>

#include "recorder/http/observe_json.h"
#include "traces/error.h"

namespace redecode {

// One request and its answer, while they last.
struct ConnectionObserver::Pending {
  explicit Pending(const ObserverLimits& limits) : events(limits.event_bytes) {}

  Exchange exchange;
  kj::HttpMethod method = kj::HttpMethod::GET;
  bool wanted = false;  // of a path that is recorded, and nothing went wrong with it
  bool chat = false;
  bool request_done = false, answer_done = false;
  bool event_stream = false;
  bool answer_valid = true;
  std::string request_body, answer_body;
  SseReader events;
  uint64_t held_bytes = 0;
};

namespace {

constexpr std::string_view kChatPath = "/v1/chat/completions", kCompletionPath = "/v1/completions";

std::string_view path_of(kj::StringPtr url) {
  std::string_view path(url.begin(), url.size());
  // The absolute form: "http://host/path".
  if (const size_t scheme = path.find("://"); scheme != std::string_view::npos) {
    const size_t slash = path.find('/', scheme + 3);
    path = slash == std::string_view::npos ? std::string_view("/") : path.substr(slash);
  }
  return path.substr(0, path.find_first_of("?#"));
}

// What comes before "/v1/" belongs to the client's gateway and may be its key: it is not kept.
std::string_view endpoint_of(std::string_view path) {
  for (const std::string_view endpoint : {kChatPath, kCompletionPath})
    if (path.ends_with(endpoint)) return endpoint;
  return {};
}

bool is_plain(const kj::HttpHeaders& headers, kj::HttpHeaderId content_encoding) {
  KJ_IF_MAYBE (encoding, headers.get(content_encoding))
    return *encoding == "identity" || encoding->size() == 0;
  return true;
}

bool is_event_stream(const kj::HttpHeaders& headers) {
  KJ_IF_MAYBE (type, headers.get(kj::HttpHeaderId::CONTENT_TYPE))
    return std::string_view(type->begin(), type->size()).starts_with("text/event-stream");
  return false;
}

}  // namespace

ObserverShared::ObserverShared(ExchangeSink& to, const ObserverLimits& caps)
    : sink(to), limits(caps) {
  kj::HttpHeaderTable::Builder builder;
  content_encoding = builder.add("Content-Encoding");
  expect = builder.add("Expect");
  table = builder.build();
}

ConnectionObserver::ConnectionObserver(ObserverShared& shared)
    : shared_(shared),
      requests_(kj::newHttpInputStream(from_client_, *shared.table)),
      answers_(kj::newHttpInputStream(from_upstream_, *shared.table)),
      request_buffer_(std::make_unique<kj::byte[]>(kBufferBytes)),
      answer_buffer_(std::make_unique<kj::byte[]>(kBufferBytes)) {
  request_task_ =
      request_loop().eagerlyEvaluate([this](kj::Exception&& why) { failed(false, why); });
  answer_task_ = answer_loop().eagerlyEvaluate([this](kj::Exception&& why) { failed(true, why); });
}

ConnectionObserver::~ConnectionObserver() { closed(client_left_, now_us_); }

void ConnectionObserver::feed(FedStream& to, std::string_view bytes) {
  if (given_up_) return;
  if (shared_.held_bytes + to.waiting_bytes() + bytes.size() > shared_.limits.held_bytes)
    return give_up(NotRecorded::memory);
  if (giving_up_) return give_up(*giving_up_);
  to.feed(bytes);
}

void ConnectionObserver::client_bytes(std::string_view bytes, uint64_t now_us) {
  now_us_ = now_us;
  feed(from_client_, bytes);
}

void ConnectionObserver::upstream_bytes(std::string_view bytes, uint64_t now_us) {
  now_us_ = now_us;
  feed(from_upstream_, bytes);
}

void ConnectionObserver::client_ended(uint64_t now_us) {
  now_us_ = now_us;
  client_left_ = true;
  if (!given_up_) from_client_.end();
}

void ConnectionObserver::upstream_ended(uint64_t now_us) {
  now_us_ = now_us;
  if (!given_up_) from_upstream_.end();
}

void ConnectionObserver::closed(bool by_client, uint64_t now_us) {
  now_us_ = std::max(now_us_, now_us);
  if (giving_up_) give_up(*giving_up_);
  request_task_ = nullptr;
  answer_task_ = nullptr;
  end_all(by_client ? ExchangeEnd::client_gone : ExchangeEnd::upstream_gone);
}

void ConnectionObserver::give_up(NotRecorded reason) {
  if (given_up_) return;
  given_up_ = true;
  giving_up_.reset();
  request_task_ = nullptr;
  answer_task_ = nullptr;
  ++shared_.counts.given_up_connections;
  bool counted = false;
  for (const auto& pending : pending_) {
    if (!pending->wanted) continue;
    skip(*pending, reason);
    counted = true;
  }
  // What the lost bytes held is not known; it was one exchange at least.
  if (!counted && reason == NotRecorded::backlog) shared_.count(reason);
  pending_.clear();
}

// Inside a turn of the loop the tasks cannot be dropped: the next call does.
void ConnectionObserver::failed(bool answer, const kj::Exception&) {
  if (given_up_) return;
  const bool cut = answer ? from_upstream_.ended() : from_client_.ended();
  if (!cut) {
    giving_up_ = NotRecorded::not_http;
    return;
  }
  if (answer) end_all(client_left_ ? ExchangeEnd::client_gone : ExchangeEnd::upstream_gone);
}

void ConnectionObserver::hold(Pending& pending, uint64_t bytes) {
  shared_.held_bytes += bytes - pending.held_bytes;
  pending.held_bytes = bytes;
}

void ConnectionObserver::skip(Pending& pending, NotRecorded reason) {
  if (!pending.wanted) return;
  pending.wanted = false;
  shared_.count(reason);
  pending.request_body = {};
  pending.answer_body = {};
  pending.exchange.choices.clear();
  hold(pending, 0);
}

kj::Promise<void> ConnectionObserver::drain(kj::AsyncInputStream& body, kj::byte* buffer,
                                            Consume consume) {
  return body.tryRead(buffer, 1, kBufferBytes)
      .then(
          [this, &body, buffer, take = kj::mv(consume)](size_t count) mutable -> kj::Promise<void> {
            if (count == 0) return kj::READY_NOW;
            take(std::string_view(reinterpret_cast<const char*>(buffer), count));
            return drain(body, buffer, kj::mv(take));
          });
}

kj::Promise<void> ConnectionObserver::request_loop() {
  return requests_->awaitNextMessage().then([this](bool more) -> kj::Promise<void> {
    if (!more) return kj::READY_NOW;
    return requests_->readRequest()
        .then([this](kj::HttpInputStream::Request&& request) {
          return read_request_body(kj::mv(request));
        })
        .then([this] { return request_loop(); });
  });
}

kj::Promise<void> ConnectionObserver::read_request_body(kj::HttpInputStream::Request&& request) {
  if (pending_.size() >= shared_.limits.pipelined)
    return KJ_EXCEPTION(FAILED, "too many requests without an answer");
  auto pending = std::make_shared<Pending>(shared_.limits);
  pending->method = request.method;
  pending->exchange.path = endpoint_of(path_of(request.url));
  pending->chat = pending->exchange.path == kChatPath;
  pending->wanted = request.method == kj::HttpMethod::POST && !pending->exchange.path.empty();
  if (!pending->wanted) ++shared_.counts.other_requests;
  if (!is_plain(request.headers, shared_.content_encoding)) skip(*pending, NotRecorded::encoded);
  if (request.headers.get(shared_.expect) != nullptr) from_upstream_.expect_interim();
  pending_.push_back(pending);
  auto& body = *request.body;
  return drain(body, request_buffer_.get(),
               [this, pending](std::string_view bytes) {
                 if (!pending->wanted) return;
                 if (pending->request_body.size() + bytes.size() > shared_.limits.request_bytes)
                   skip(*pending, NotRecorded::too_large);
                 else
                   pending->request_body += bytes;
                 if (pending->wanted)
                   hold(*pending, pending->request_body.size() + pending->answer_body.size());
               })
      .attach(kj::mv(request.body))
      .then([this, pending] { request_ended(*pending); });
}

void ConnectionObserver::request_ended(Pending& pending) {
  pending.exchange.start_us = now_us_;
  pending.request_done = true;
  if (pending.wanted) {
    if (!read_request(pending.request_body, pending.chat, pending.exchange))
      skip(pending, NotRecorded::not_json);
    pending.request_body = {};
  }
  if (pending.wanted) {
    pending.exchange.number = shared_.next_number++;
    pending.exchange.session = static_cast<SessionId>(pending.exchange.number);
    hold(pending, pending.exchange.prompt.size() + pending.answer_body.size());
  }
  settle_front();
}

kj::Promise<void> ConnectionObserver::answer_loop() {
  return answers_->awaitNextMessage().then([this](bool more) -> kj::Promise<void> {
    if (more) return next_answer();
    if (!pending_.empty())
      end_all(client_left_ ? ExchangeEnd::client_gone : ExchangeEnd::upstream_gone);
    return kj::READY_NOW;
  });
}

kj::Promise<void> ConnectionObserver::next_answer() {
  if (pending_.empty() || pending_.front()->answer_done)
    return KJ_EXCEPTION(FAILED, "an answer without a request");
  return answers_->readResponse(pending_.front()->method)
      .then([this](kj::HttpInputStream::Response&& response) -> kj::Promise<void> {
        if (response.statusCode < 200)
          return KJ_EXCEPTION(FAILED, "an interim answer or another protocol");
        return read_answer_body(kj::mv(response));
      })
      .then([this] { return answer_loop(); });
}

kj::Promise<void> ConnectionObserver::read_answer_body(kj::HttpInputStream::Response&& response) {
  const std::shared_ptr<Pending> pending = pending_.front();
  pending->exchange.status = response.statusCode;
  pending->event_stream = is_event_stream(response.headers);
  if (!is_plain(response.headers, shared_.content_encoding)) skip(*pending, NotRecorded::encoded);
  auto& body = *response.body;
  return drain(body, answer_buffer_.get(),
               [this, pending](std::string_view bytes) { take_answer(*pending, bytes); })
      .attach(kj::mv(response.body))
      .then([this, pending] { answer_ended(*pending); });
}

void ConnectionObserver::take_answer(Pending& pending, std::string_view bytes) {
  Exchange& exchange = pending.exchange;
  if (exchange.first_us == 0) exchange.first_us = std::max<uint64_t>(1, now_us_);
  if (!pending.wanted || exchange.status != 200) return;
  const ObserverLimits& limits = shared_.limits;
  uint64_t text_bytes = 0;
  if (!pending.event_stream) {
    if (pending.answer_body.size() + bytes.size() > limits.answer_bytes) {
      skip(pending, NotRecorded::too_large);
      return;
    }
    pending.answer_body += bytes;
  } else {
    const auto on_event = [&](std::string_view data) {
      if (data == "[DONE]") return true;
      if (exchange.chunk_us.size() >= limits.events) return false;
      if (!read_answer(data, limits, exchange)) return pending.answer_valid = false;
      exchange.chunk_us.push_back(now_us_);
      return true;
    };
    if (!pending.events.feed(bytes, on_event)) {
      skip(pending, pending.answer_valid ? NotRecorded::too_large : NotRecorded::not_json);
      return;
    }
    for (const ExchangeChoice& choice : exchange.choices) text_bytes += choice.text.size();
    text_bytes += exchange.chunk_us.size() * sizeof(uint64_t) + pending.events.held_bytes();
  }
  hold(pending, exchange.prompt.size() + pending.request_body.size() + text_bytes +
                    pending.answer_body.size());
  if (shared_.held_bytes > limits.held_bytes) skip(pending, NotRecorded::memory);
}

void ConnectionObserver::answer_ended(Pending& pending) {
  pending.exchange.end_us = std::max<uint64_t>(1, now_us_);
  pending.answer_done = true;
  if (pending.wanted && pending.exchange.status == 200 && !pending.event_stream &&
      !read_answer(pending.answer_body, shared_.limits, pending.exchange))
    skip(pending, NotRecorded::not_json);
  settle_front();
}

// An answer may come before the request's last byte (an early refusal): both must be there.
void ConnectionObserver::settle_front() {
  while (!pending_.empty() && pending_.front()->answer_done && pending_.front()->request_done) {
    const std::shared_ptr<Pending> pending = pending_.front();
    pending_.pop_front();
    finish(*pending, ExchangeEnd::complete);
  }
}

void ConnectionObserver::finish(Pending& pending, ExchangeEnd end) {
  if (pending.wanted && !pending.request_done) {
    pending.wanted = false;  // a request that never came whole is none
    ++shared_.counts.other_requests;
  }
  if (pending.wanted) {
    Exchange& exchange = pending.exchange;
    exchange.end = end;
    if (end != ExchangeEnd::complete) exchange.end_us = 0;
    try {
      shared_.sink.write(exchange);
      ++shared_.counts.recorded;
      if (exchange.first_us != 0)
        shared_.first_byte_us.add(exchange.first_us -
                                  std::min(exchange.first_us, exchange.start_us));
      if (exchange.end_us != 0)
        shared_.whole_us.add(exchange.end_us - std::min(exchange.end_us, exchange.start_us));
    } catch (const Error& e) {
      shared_.count(NotRecorded::write_failed);
      if (shared_.counts.first_write_error.empty()) shared_.counts.first_write_error = e.what();
    }
  }
  hold(pending, 0);
}

void ConnectionObserver::end_all(ExchangeEnd end) {
  const auto all = std::exchange(pending_, {});
  for (const auto& pending : all)
    finish(*pending, pending->answer_done && pending->request_done ? ExchangeEnd::complete : end);
}

}  // namespace redecode
