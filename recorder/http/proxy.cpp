#include "recorder/http/proxy.h"

#include <kj/async-io.h>
#include <netinet/in.h>

#include <charconv>
#include <list>
#include <string_view>

#include "recorder/http/proxy_relay.h"
#include "traces/error.h"

namespace redecode {
namespace {

constexpr auto kTick = 10 * kj::MILLISECONDS;
constexpr auto kAcceptPause = 50 * kj::MILLISECONDS;

std::string host_and_port(const std::string& host, uint16_t port) {
  const bool bare_ipv6 = host.find(':') != std::string::npos && host.front() != '[';
  return (bare_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

class Proxy final : public kj::TaskSet::ErrorHandler {
 public:
  Proxy(const ProxyOptions& options, ExchangeSink& sink, ProxyGauges& gauges)
      : options_(options),
        io_(kj::setupAsyncIo()),
        timer_(io_.provider->getTimer()),
        observer_(sink, options.limits),
        gauges_(gauges) {
    upstream_ = address(options.upstream_host, options.upstream_port);
    try {
      auto listen = address(options.listen_host, options.listen_port);
      receiver_ = listen->listen();
    } catch (const kj::Exception& e) {
      throw Error(
          ErrorCode::environment,
          std::string("cannot listen: ") + e.getDescription().cStr() + "; choose another address",
          host_and_port(options.listen_host, options.listen_port));
    }
    context_ = std::make_unique<RelayContext>(
        RelayContext{options_, *upstream_, timer_, observer_, gauges_, summary_});
  }

  uint16_t port() { return static_cast<uint16_t>(receiver_->getPort()); }

  ProxySummary serve(const std::function<bool()>& stop) {
    kj::Promise<void> accepting = accept_loop().eagerlyEvaluate(nullptr);
    while (!stop()) timer_.afterDelay(kTick).wait(io_.waitScope);
    accepting = nullptr;
    receiver_ = nullptr;
    drain();
    tasks_ = nullptr;
    relays_.clear();
    summary_.observed = observer_.finish();
    return std::move(summary_);
  }

 private:
  struct Entry {
    kj::Own<Relay> relay;
    bool done = false;
  };

  kj::Own<kj::NetworkAddress> address(const std::string& host, uint16_t port) {
    const std::string text = host_and_port(host, port);
    try {
      return io_.provider->getNetwork()
          .parseAddress(kj::StringPtr(text.c_str(), text.size()))
          .wait(io_.waitScope);
    } catch (const kj::Exception& e) {
      throw Error(ErrorCode::usage, std::string("no such address: ") + e.getDescription().cStr(),
                  text);
    }
  }

  kj::Promise<void> accept_loop() {
    if (relays_.size() >= options_.connections)
      return timer_.afterDelay(kTick).then([this] { return accept_loop(); });
    return receiver_->accept().then(
        [this](kj::Own<kj::AsyncIoStream>&& client) {
          begin(kj::mv(client));
          return accept_loop();
        },
        [this](kj::Exception&&) {
          ++summary_.accept_failures;
          return timer_.afterDelay(kAcceptPause).then([this] { return accept_loop(); });
        });
  }

  void begin(kj::Own<kj::AsyncIoStream> client) {
    relays_.push_back({kj::heap<Relay>(*context_, kj::mv(client))});
    const auto at = std::prev(relays_.end());
    tasks_->add(at->relay->run().then([this, at] { relays_.erase(at); }));
  }

  void drain() {
    const uint64_t end_us = observer_.now_us() + uint64_t{options_.drain_ms} * 1000;
    while (!relays_.empty() && observer_.now_us() < end_us) {
      for (Entry& entry : relays_)
        if (entry.relay->idle()) entry.relay->close();
      timer_.afterDelay(kTick).wait(io_.waitScope);
    }
    summary_.cut_connections = relays_.size();
  }

  void taskFailed(kj::Exception&&) override {}  // relays do not fail

  const ProxyOptions options_;
  kj::AsyncIoContext io_;
  kj::Timer& timer_;
  ObserverThread observer_;
  ProxyGauges& gauges_;
  ProxySummary summary_;
  kj::Own<kj::NetworkAddress> upstream_;
  kj::Own<kj::ConnectionReceiver> receiver_;
  std::unique_ptr<RelayContext> context_;
  std::list<Entry> relays_;
  kj::Own<kj::TaskSet> tasks_ = kj::heap<kj::TaskSet>(*this);
};

}  // namespace

void parse_http_url(const std::string& url, const char* flag, std::string& host, uint16_t& port) {
  const auto refuse = [&](const char* why) {
    throw Error(ErrorCode::usage, std::string(why) + "; give it as http://HOST:PORT",
                std::string(flag) + " " + url);
  };
  constexpr std::string_view kScheme = "http://";
  std::string_view rest = url;
  if (rest.starts_with("https://")) refuse("TLS is not spoken");
  if (!rest.starts_with(kScheme)) refuse("this is no http URL");
  rest.remove_prefix(kScheme.size());
  const size_t slash = rest.find('/');
  if (slash != std::string_view::npos) {
    const std::string_view path = rest.substr(slash);
    if (path != "/" && path != "/v1" && path != "/v1/") refuse("a path cannot be given");
    rest = rest.substr(0, slash);
  }
  if (rest.find('@') != std::string_view::npos) refuse("user names are not taken");
  const size_t colon = rest.find(':', rest.starts_with('[') ? rest.find(']') : 0);
  port = 80;
  if (colon != std::string_view::npos) {
    const std::string_view digits = rest.substr(colon + 1);
    const auto [at, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (failure != std::errc{} || at != digits.data() + digits.size() || port == 0)
      refuse("the port is no number from 1 to 65535");
  }
  host = rest.substr(0, colon);
  if (host.empty()) refuse("the host is missing");
}

ProxySummary run_proxy(const ProxyOptions& options, ExchangeSink& sink,
                       const std::function<void(uint16_t port)>& listening,
                       const std::function<bool()>& stop, ProxyGauges* gauges) {
  ProxyGauges own;
  Proxy proxy(options, sink, gauges != nullptr ? *gauges : own);
  listening(proxy.port());
  return proxy.serve(stop);
}

}  // namespace redecode
