#include "recorder/http/endpoint.h"

#include <kj/async-io.h>
#include <openssl/crypto.h>

#include <chrono>
#include <utility>

#include "recorder/http/endpoint_service.h"
#include "recorder/http/endpoint_state.h"
#include "traces/error.h"
#include "traces/random.h"

namespace redecode {
namespace {

constexpr auto kTick = 10 * kj::MILLISECONDS;
constexpr auto kAcceptPause = 50 * kj::MILLISECONDS;
constexpr auto kCloseGrace = 1 * kj::SECONDS;
constexpr uint64_t kTicksPerLook = 20;    // at clients that left, and at time limits
constexpr double kErrorGraceSeconds = 2;  // to write the error of a request that took too long

std::string host_and_port(const std::string& host, uint16_t port) {
  const bool bare_ipv6 = host.find(':') != std::string::npos && host.front() != '[';
  return (bare_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

class Endpoint final : public kj::TaskSet::ErrorHandler, public kj::HttpServerCallbacks {
 public:
  Endpoint(const EndpointOptions& options, TextBackend& backend)
      : options_(options),
        backend_(backend),
        io_(kj::setupAsyncIo()),
        timer_(io_.provider->getTimer()),
        headers_(builder_),
        table_(builder_.build()),
        dispatcher_(backend, io_.unixEventPort, metrics_),
        state_{options_, backend_, timer_, dispatcher_, metrics_, *table_, headers_},
        errors_(state_),
        server_(
            timer_, *table_,
            [this](kj::AsyncIoStream& stream) -> kj::Own<kj::HttpService> {
              int fd = -1;
              KJ_IF_MAYBE (known, stream.getFd()) fd = *known;
              return kj::heap<EndpointService>(state_, fd);
            },
            settings()),
        tasks_(*this) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    state_.started_unix_s = std::chrono::duration_cast<std::chrono::seconds>(now).count();
    state_.id_key =
        static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
    listen();
  }

  uint16_t port() { return static_cast<uint16_t>(receiver_->getPort()); }

  EndpointSummary serve(const std::function<bool()>& stop) {
    kj::Promise<void> delivering =
        dispatcher_.run().eagerlyEvaluate([this](kj::Exception&&) { dispatcher_failed_ = true; });
    kj::Promise<void> accepting = accept_loop().eagerlyEvaluate(nullptr);
    while (!stop() && !backend_.failed() && !dispatcher_failed_) tick();
    drain();
    accepting = nullptr;
    receiver_ = nullptr;
    server_.drain().exclusiveJoin(timer_.afterDelay(kCloseGrace)).wait(io_.waitScope);
    EndpointSummary summary;
    summary.connections = metrics_.connections;
    summary.requests = metrics_.requests;
    summary.choices = metrics_.choices;
    summary.disconnects = metrics_.disconnects;
    summary.cut_by_drain = metrics_.cut_by_drain;
    return summary;
  }

 private:
  kj::HttpServerSettings settings() {
    kj::HttpServerSettings out;
    out.headerTimeout = options_.header_timeout_ms * kj::MILLISECONDS;
    out.pipelineTimeout = options_.idle_timeout_ms * kj::MILLISECONDS;
    out.canceledUploadGraceBytes = options_.request.body_bytes;
    out.errorHandler = errors_;
    out.callbacks = *this;
    return out;
  }

  bool shouldClose() override { return state_.draining; }

  void listen() {
    const std::string text = host_and_port(options_.host, options_.port);
    kj::Own<kj::NetworkAddress> address;
    try {
      address = io_.provider->getNetwork()
                    .parseAddress(kj::StringPtr(text.c_str(), text.size()))
                    .wait(io_.waitScope);
    } catch (const kj::Exception& e) {
      throw Error(ErrorCode::usage, std::string("no such address: ") + e.getDescription().cStr(),
                  text);
    }
    try {
      receiver_ = address->listen();
    } catch (const kj::Exception& e) {
      throw Error(
          ErrorCode::environment,
          std::string("cannot listen: ") + e.getDescription().cStr() + "; choose another address",
          text);
    }
  }

  kj::Promise<void> accept_loop() {
    if (metrics_.open_connections >= options_.max_connections)
      return timer_.afterDelay(kTick).then([this] { return accept_loop(); });
    return receiver_->accept().then(
        [this](kj::Own<kj::AsyncIoStream>&& client) {
          begin(kj::mv(client));
          return accept_loop();
        },
        [this](kj::Exception&&) {
          return timer_.afterDelay(kAcceptPause).then([this] { return accept_loop(); });
        });
  }

  void begin(kj::Own<kj::AsyncIoStream> client) {
    ++metrics_.connections;
    ++metrics_.open_connections;
    tasks_.add(server_.listenHttp(kj::mv(client)).attach(kj::defer([this] {
      --metrics_.open_connections;
    })));
  }

  void taskFailed(kj::Exception&&) override {}  // a connection that broke off

  void tick() {
    timer_.afterDelay(kTick).wait(io_.waitScope);
    if (++ticks_ % kTicksPerLook == 0) look_at_requests();
  }

  void look_at_requests() {
    const double limit_s = options_.request_timeout_ms / 1000.0;
    for (const auto& [number, request] : state_.active) {
      if (!request->answering) continue;
      const double taken_s = ActiveRequest::since(request->begun_at);
      if (request->client_gone()) {
        request->cut("the client has closed its connection");
      } else if (taken_s > limit_s + kErrorGraceSeconds) {
        request->cut("the client did not read the end of its answer");
      } else if (taken_s > limit_s && !request->answering->done()) {
        ++metrics_.timeouts;
        ApiError error;
        error.status = 504;
        error.type = "server_error";
        error.code = "timeout";
        error.message =
            "the answer took longer than " + std::to_string(options_.request_timeout_ms) + " ms";
        request->answering->abort(error);
      }
    }
  }

  // Connections are still accepted, so that new requests hear 503 rather than nothing.
  void drain() {
    state_.draining = true;
    const auto start = ActiveRequest::Clock::now();
    while (!state_.active.empty() && !backend_.failed() && !dispatcher_failed_ &&
           ActiveRequest::since(start) * 1000.0 < options_.drain_timeout_ms)
      tick();
    for (const auto& [number, request] : state_.active) {
      ++metrics_.cut_by_drain;
      if (request->answering) request->answering->abort(draining_error());
    }
    for (int i = 0; i < 100 && !state_.active.empty(); ++i) tick();
    for (const auto& [number, request] : state_.active) request->cut("the server is ending");
    tick();
  }

  const EndpointOptions options_;
  TextBackend& backend_;
  kj::AsyncIoContext io_;
  kj::Timer& timer_;
  kj::HttpHeaderTable::Builder builder_;
  EndpointHeaders headers_;
  kj::Own<kj::HttpHeaderTable> table_;
  EndpointMetrics metrics_;
  JobDispatcher dispatcher_;
  EndpointState state_;
  EndpointErrors errors_;
  kj::Own<kj::ConnectionReceiver> receiver_;
  kj::HttpServer server_;
  kj::TaskSet tasks_;
  uint64_t ticks_ = 0;
  bool dispatcher_failed_ = false;
};

}  // namespace

EndpointSummary run_endpoint(const EndpointOptions& options, TextBackend& backend,
                             const std::function<void(uint16_t port)>& listening,
                             const std::function<bool()>& stop) {
  Endpoint endpoint(options, backend);
  listening(endpoint.port());
  return endpoint.serve(stop);
}

bool same_token(const std::string& given, const std::string& wanted) {
  // Compares as many bytes as the wanted token has, whatever was given; lengths are no secret.
  std::string padded = given;
  padded.resize(wanted.size(), '\0');
  const bool same_bytes = CRYPTO_memcmp(padded.data(), wanted.data(), wanted.size()) == 0;
  return same_bytes && given.size() == wanted.size();
}

}  // namespace redecode
