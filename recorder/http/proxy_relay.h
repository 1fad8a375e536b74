// recorder/http/proxy_relay.h - Relay: one client connection and its connection to the server.
// Internal to recorder/http/*.cpp: it brings kj along.
#pragma once
#include <kj/async-io.h>
#include <kj/timer.h>

#include <memory>
#include <string_view>

#include "recorder/http/observe_thread.h"
#include "recorder/http/proxy.h"

namespace redecode {

// What all relays of a proxy use.
struct RelayContext {
  const ProxyOptions& options;
  kj::NetworkAddress& upstream;
  kj::Timer& timer;
  ObserverThread& observer;
  ProxyGauges& gauges;
  ProxySummary& summary;
};

class Relay {
 public:
  Relay(RelayContext& context, kj::Own<kj::AsyncIoStream> client);
  ~Relay();
  // Resolves when both sides are done, whatever happened; never fails. The relay must live as long.
  kj::Promise<void> run();
  // True when no request is under way, as far as the observer can tell.
  bool idle() const;
  // Ends it now: run() resolves. Clients and server see an orderly close.
  void close();

 private:
  enum class Side : uint8_t { client, upstream };
  struct Direction {
    Side from;
    std::unique_ptr<kj::byte[]> buffer;
    uint64_t held_bytes = 0;
    bool ended = false;
  };

  kj::AsyncIoStream& stream(Side side) { return side == Side::client ? *client_ : *upstream_; }
  static Side other(Side side) { return side == Side::client ? Side::upstream : Side::client; }
  kj::Promise<void> connect();
  void start();
  kj::Promise<void> pump(Direction& direction);
  kj::Promise<void> pass_on(Direction& direction, size_t size_bytes);
  void hold(Direction& direction, uint64_t size_bytes);
  void end_of(Direction& direction);
  void left(Side side);
  void finish();
  void observe(ObserverThread::Kind kind, std::string_view bytes = {});
  kj::Promise<void> refuse();
  kj::Promise<void> drain_client(uint64_t rest_bytes);

  RelayContext& context_;
  kj::Own<kj::AsyncIoStream> client_, upstream_;
  Direction up_, down_;
  std::shared_ptr<ObservedConnection> observed_;
  uint64_t pushed_ = 0;
  bool lost_ = false;
  uint64_t last_traffic_us_ = 0;
  Side first_to_leave_ = Side::client;
  bool somebody_left_ = false;
  kj::Own<kj::PromiseFulfiller<void>> done_;
  kj::Promise<void> up_task_ = nullptr, down_task_ = nullptr, linger_ = nullptr;
};

}  // namespace redecode
