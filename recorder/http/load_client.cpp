#include "recorder/http/load_client.h"

#include <kj/debug.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "recorder/http/observe_json.h"
#include "traces/error.h"
#include "traces/random.h"

namespace redecode {
namespace {

constexpr size_t kBufferBytes = 16384;
constexpr uint64_t kDropPurpose = 0x64726f70, kSlowPurpose = 0x736c6f77;
// Counted in bytes, so that how an answer arrives does not change which requests are dropped.
constexpr unsigned kDropPoints = 8;
constexpr uint64_t kFirstDropBytes = 48;
constexpr uint64_t kModelListBytes = uint64_t{1} << 20;
// Below the time after which servers close idle connections, so that none is used just then.
constexpr auto kIdleTime = 2 * kj::SECONDS;

// 0 (before the answer), 48, 96, 192 ... 3,072.
uint64_t drop_point_bytes(uint64_t bits) {
  const uint64_t point = bits % kDropPoints;
  return point == 0 ? 0 : kFirstDropBytes << (point - 1);
}

bool chosen(uint64_t bits, double percent) {
  return static_cast<double>(bits % 10000) < percent * 100;
}

kj::StringPtr text_ptr(const std::string& text) { return {text.c_str(), text.size()}; }

ObserverLimits answer_limits(uint64_t answer_bytes) {
  ObserverLimits limits;
  limits.answer_bytes = limits.event_bytes = answer_bytes;
  return limits;
}

std::string all_text(const Exchange& exchange) {
  std::string out;
  for (size_t i = 0; i < exchange.choices.size(); ++i)
    out += (i == 0 ? "" : "\n---\n") + exchange.choices[i].text;
  return out;
}

}  // namespace

struct LoadClient::Flight {
  Flight(uint64_t answer_bytes, bool to_drop, uint64_t drop_at)
      : limits(answer_limits(answer_bytes)),
        events(answer_bytes),
        drops(to_drop),
        drop_at_bytes(drop_at) {}

  ObserverLimits limits;
  SseReader events;
  bool drops;
  uint64_t drop_at_bytes;    // of the answer's body; 0: before it
  uint64_t bytes_per_s = 0;  // as a slow reader; 0: as fast as it comes
  std::unique_ptr<LoadResult> result = std::make_unique<LoadResult>();
  kj::Own<kj::AsyncInputStream> body;
  std::array<kj::byte, kBufferBytes> buffer{};
  bool event_stream = false;
  bool over = false;       // result->end is decided
  bool done_seen = false;  // "data: [DONE]"
  uint64_t received_bytes = 0;
  std::string whole;  // of an answer that is not streamed

  void end(LoadEnd how, std::string why = {}) {
    if (over) return;
    over = true;
    result->end = how;
    result->why = std::move(why);
  }
};

LoadClient::LoadClient(const LoadOptions& options, kj::Network& network, kj::WaitScope& scope,
                       kj::Timer& timer)
    : options_(options), timer_(timer) {
  kj::HttpHeaderTable::Builder builder;
  authorization_ = builder.add("Authorization");
  table_ = builder.build();
  const bool bare_ipv6 = options.host.find(':') != std::string::npos && options.host[0] != '[';
  host_ =
      (bare_ipv6 ? "[" + options.host + "]" : options.host) + ":" + std::to_string(options.port);
  if (!options.api_key.empty()) bearer_ = "Bearer " + options.api_key;
  try {
    address_ = network.parseAddress(text_ptr(host_)).wait(scope);
  } catch (const kj::Exception& e) {
    throw Error(ErrorCode::usage, std::string("no such address: ") + e.getDescription().cStr(),
                host_);
  }
  kj::HttpClientSettings settings;
  settings.idleTimeout = kIdleTime;
  client_ = kj::newHttpClient(timer, *table_, *address_, settings);
}

uint64_t LoadClient::now_us() const {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                   std::chrono::steady_clock::now() - start_)
                                   .count());
}

kj::HttpHeaders LoadClient::headers() const {
  kj::HttpHeaders out(*table_);
  out.set(kj::HttpHeaderId::HOST, text_ptr(host_));
  if (!bearer_.empty()) out.set(authorization_, text_ptr(bearer_));
  return out;
}

kj::Promise<std::unique_ptr<LoadResult>> LoadClient::send(const LoadRequest& request,
                                                          uint64_t ordinal) {
  const uint64_t bits = random_bits(options_.seed, ordinal, kDropPurpose);
  const bool drops = chosen(bits, options_.disconnect_percent);
  auto flight = kj::heap<Flight>(options_.answer_bytes, drops, drop_point_bytes(bits >> 32));
  Flight& f = *flight;
  if (chosen(random_bits(options_.seed, ordinal, kSlowPurpose), options_.slow_percent))
    f.bytes_per_s = options_.slow_reader_bytes_per_s;
  f.result->exchange.start_us = now_us();

  auto fields = headers();
  fields.set(kj::HttpHeaderId::CONTENT_TYPE, "application/json");
  auto exchange = kj::evalNow([&]() -> kj::Promise<void> {
    auto sending = client_->request(kj::HttpMethod::POST, text_ptr(request.path), fields,
                                    uint64_t{request.body.size()});
    auto body = kj::heapArray<kj::byte>(reinterpret_cast<const kj::byte*>(request.body.data()),
                                        request.body.size());
    // A server may refuse early: then the answer counts, not the write.
    auto writing = sending.body->write(body.begin(), body.size())
                       .attach(kj::mv(sending.body), kj::mv(body))
                       .eagerlyEvaluate([](kj::Exception&&) {});
    if (f.drops && f.drop_at_bytes == 0) {
      f.end(LoadEnd::dropped);
      return writing.attach(kj::mv(sending.response));
    }
    return sending.response
        .then([this, &f](kj::HttpClient::Response&& response) {
          return answered(f, kj::mv(response));
        })
        .attach(kj::mv(writing));
  });
  auto late = timer_.afterDelay(options_.timeout_ms * kj::MILLISECONDS).then([this, &f] {
    f.end(LoadEnd::timed_out, "no whole answer in " + std::to_string(options_.timeout_ms) + " ms");
  });
  return exchange
      .then([] {},
            [&f](kj::Exception&& e) {
              f.end(f.result->exchange.status == 0 ? LoadEnd::no_answer : LoadEnd::cut,
                    e.getDescription().cStr());
            })
      .exclusiveJoin(kj::mv(late))
      .then([this, &f, own = kj::mv(flight)]() mutable {
        f.result->exchange.end_us = now_us();
        f.result->text = all_text(f.result->exchange);
        return std::move(f.result);
      });
}

kj::Promise<void> LoadClient::answered(Flight& flight, kj::HttpClient::Response&& response) {
  flight.result->exchange.status = response.statusCode;
  KJ_IF_MAYBE (type, response.headers->get(kj::HttpHeaderId::CONTENT_TYPE))
    flight.event_stream =
        std::string_view(type->begin(), type->size()).starts_with("text/event-stream");
  flight.body = kj::mv(response.body);
  return read_body(flight);
}

// A slow reader takes ten pieces a second.
size_t LoadClient::piece_bytes(const Flight& flight) {
  if (flight.bytes_per_s == 0) return kBufferBytes;
  return static_cast<size_t>(std::clamp<uint64_t>(flight.bytes_per_s / 10, 1, kBufferBytes));
}

kj::Promise<void> LoadClient::read_body(Flight& flight) {
  return flight.body->tryRead(flight.buffer.data(), 1, piece_bytes(flight))
      .then([this, &flight](size_t count) -> kj::Promise<void> {
        if (count == 0) {
          body_ended(flight);
          return kj::READY_NOW;
        }
        take(flight, count);
        if (flight.over) {
          flight.body = nullptr;  // closes the connection, for there may be more
          return kj::READY_NOW;
        }
        if (flight.bytes_per_s == 0) return read_body(flight);
        const uint64_t pause_us = count * 1000000 / flight.bytes_per_s;
        return timer_.afterDelay(pause_us * kj::MICROSECONDS).then([this, &flight] {
          return read_body(flight);
        });
      });
}

void LoadClient::take(Flight& flight, size_t size_bytes) {
  const std::string_view bytes(reinterpret_cast<const char*>(flight.buffer.data()), size_bytes);
  flight.received_bytes += size_bytes;
  if (flight.result->exchange.first_us == 0) flight.result->exchange.first_us = now_us();
  if (flight.received_bytes > options_.answer_bytes)
    return flight.end(LoadEnd::too_large,
                      "more than " + std::to_string(options_.answer_bytes) + " bytes");
  if (flight.drops && flight.received_bytes >= flight.drop_at_bytes)
    return flight.end(LoadEnd::dropped);
  if (!flight.event_stream) {
    flight.whole += bytes;
    return;
  }
  flight.events.feed(bytes, [&](std::string_view data) {
    take_event(flight, data);
    return !flight.over;
  });
}

void LoadClient::take_event(Flight& flight, std::string_view data) {
  Exchange& exchange = flight.result->exchange;
  if (data == "[DONE]") {
    flight.done_seen = true;
    return;
  }
  uint64_t before = 0, after = 0;
  for (const ExchangeChoice& choice : exchange.choices) before += choice.text.size();
  if (!read_answer(data, flight.limits, exchange))
    return flight.end(LoadEnd::malformed, "an event is no JSON object");
  for (const ExchangeChoice& choice : exchange.choices) after += choice.text.size();
  if (after != before) exchange.chunk_us.push_back(now_us());
}

void LoadClient::body_ended(Flight& flight) {
  Exchange& exchange = flight.result->exchange;
  if (exchange.status != 200) {
    constexpr size_t kShown = 200;
    return flight.end(LoadEnd::http_error, "status " + std::to_string(exchange.status) + ": " +
                                               flight.whole.substr(0, kShown));
  }
  if (!flight.event_stream && !read_answer(flight.whole, flight.limits, exchange))
    return flight.end(LoadEnd::malformed, "the answer is no JSON object");
  if (exchange.choices.empty()) return flight.end(LoadEnd::malformed, "no choice in the answer");
  const bool finished =
      std::all_of(exchange.choices.begin(), exchange.choices.end(),
                  [](const ExchangeChoice& choice) { return !choice.finish_reason.empty(); });
  if (flight.event_stream && !flight.done_seen && !finished)
    return flight.end(LoadEnd::cut, "the stream ended without [DONE] and finish reason");
  flight.end(LoadEnd::ok);
}

kj::Promise<std::string> LoadClient::first_model() {
  auto asked = kj::evalNow([&] {
    return client_->request(kj::HttpMethod::GET, "/v1/models", headers(), uint64_t{0})
        .response
        .then([](kj::HttpClient::Response&& response) {
          auto& body = *response.body;
          return body.readAllText(kModelListBytes).attach(kj::mv(response.body));
        })
        .then([](kj::String&& text) {
          return read_model_id(std::string_view(text.begin(), text.size()));
        });
  });
  constexpr auto kPatience = 10 * kj::SECONDS;
  return timer_.timeoutAfter(kPatience, kj::mv(asked))
      .then([](std::string&& id) { return id; }, [](kj::Exception&&) { return std::string(); });
}

}  // namespace redecode
