// recorder/http/proxy.h - the recording proxy: a relay that passes bytes through untouched, and
// records the exchanges that it saw.
//
// It relays TCP, not HTTP: what a client sends reaches the server byte for byte, and the other way
// round, with half-closes, resets and back-pressure as they come. One buffer a direction and
// connection is read ahead, never more. What is recorded is parsed from copies on another thread
// (observe_thread.h), which cannot hold the traffic up.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "recorder/http/observe.h"
#include "recorder/http/observe_thread.h"

namespace redecode {

struct ProxyOptions {
  std::string upstream_host = "127.0.0.1";  // name or address
  uint16_t upstream_port = 0;
  std::string listen_host = "127.0.0.1";
  uint16_t listen_port = 0;       // 0: any that is free
  uint32_t connections = 4096;    // at once; more wait in the kernel's queue
  uint32_t buffer_bytes = 16384;  // a direction
  uint32_t connect_timeout_ms = 10000;
  uint32_t half_close_ms = 60000;  // a client may stay after the server has ended its side
  uint32_t drain_ms = 30000;       // running exchanges may last so long after `stop`
  ObserverLimits limits;
};

// What a proxy does now; safe to read from other threads.
struct ProxyGauges {
  std::atomic<uint64_t> connections{0};     // open
  std::atomic<uint64_t> buffered_bytes{0};  // read from one side, not yet taken by the other
  std::atomic<uint64_t> most_buffered_bytes{0};
};

struct ProxySummary {
  uint64_t connections = 0;
  uint64_t refused_connections = 0;  // answered 502: the server could not be reached
  uint64_t cut_connections = 0;      // still running when the drain ended
  uint64_t accept_failures = 0;      // no descriptors left, for example
  uint64_t client_bytes = 0;         // passed on to the server
  uint64_t upstream_bytes = 0;       // passed on to clients
  ObserverReport observed;
};

// "http://127.0.0.1:8000" into host and port (80 where none is said); a path of "/" or "/v1" is
// ignored, for paths come from the clients. Errors: usage (https, or not a URL).
void parse_http_url(const std::string& url, const char* flag, std::string& host, uint16_t& port);

// Serves until `stop` returns true (asked every few milliseconds), then stops accepting, lets
// running exchanges end and returns. `listening` is told the port once clients can connect.
// Errors: environment (cannot listen), usage (no such host). Trouble of single connections ends
// those. Its calls of `sink` come from another thread, and all have returned before it does.
ProxySummary run_proxy(const ProxyOptions& options, ExchangeSink& sink,
                       const std::function<void(uint16_t port)>& listening,
                       const std::function<bool()>& stop, ProxyGauges* gauges = nullptr);

}  // namespace redecode
