// tests/http/proxy_net.h - plain sockets for tests of the proxy: a scripted server, a client, and a
// proxy between them on a thread of its own.
#pragma once
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "recorder/http/proxy.h"

namespace redecode::http_test {

// A connected socket. Reads and writes give up after ten seconds.
class Socket {
 public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {
    const timeval patience = {10, 0};
    if (descriptor_ < 0) return;
    setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(descriptor_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  }
  Socket(Socket&& from) noexcept : descriptor_(std::exchange(from.descriptor_, -1)) {}
  Socket& operator=(Socket&& from) noexcept {
    std::swap(descriptor_, from.descriptor_);
    return *this;
  }
  ~Socket() { close(); }

  static Socket connect(uint16_t port, int receive_bytes = 0) {
    Socket out(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (receive_bytes != 0)
      setsockopt(out.descriptor_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(out.descriptor_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) out.close();
    return out;
  }

  bool open() const { return descriptor_ >= 0; }
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }
  // What the kernel takes at once, in all.
  uint64_t send_until_full(std::string_view bytes, uint64_t most_bytes) {
    uint64_t sent = 0;
    for (int quiet = 0; quiet < 20 && sent < most_bytes;) {
      const ssize_t count =
          ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count > 0) {
        sent += static_cast<uint64_t>(count);
        quiet = 0;
      } else {
        ++quiet;
        ::usleep(10000);
      }
    }
    return sent;
  }
  // Up to `most` bytes: what comes first; empty at the end. `reset` is set when it was no end.
  std::string receive(size_t most = 65536, bool* reset = nullptr) {
    std::string out(most, '\0');
    const ssize_t count = ::recv(descriptor_, out.data(), most, 0);
    if (reset != nullptr) *reset = count < 0;
    out.resize(count > 0 ? static_cast<size_t>(count) : 0);
    return out;
  }
  std::string receive_exactly(size_t size) {
    std::string out;
    while (out.size() < size) {
      const std::string more = receive(size - out.size());
      if (more.empty()) break;
      out += more;
    }
    return out;
  }
  std::string receive_all(bool* reset = nullptr) {
    std::string out;
    for (;;) {
      const std::string more = receive(65536, reset);
      if (more.empty()) return out;
      out += more;
    }
  }
  void set_no_delay() {
    const int on = 1;
    setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  void end() { ::shutdown(descriptor_, SHUT_WR); }
  void reset() {
    const linger now = {1, 0};
    setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }
  void close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }

 private:
  int descriptor_;
};

// Listens on a free port; `serve` gets each connection on a thread of its own.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::function<void(Socket&)> serve) : serve_(std::move(serve)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&at), size) != 0) return;
    ::listen(listener_, 4096);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size);
    port_ = ntohs(at.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~ScriptedServer() {
    ::shutdown(listener_, SHUT_RDWR);
    if (acceptor_.joinable()) acceptor_.join();
    ::close(listener_);
    for (std::thread& thread : threads_) thread.join();
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;
  uint16_t port() const { return port_; }

 private:
  void accept_all() {
    for (;;) {
      const int taken = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (taken < 0) return;
      threads_.emplace_back([this, taken] {
        Socket socket(taken);
        serve_(socket);
      });
    }
  }

  std::function<void(Socket&)> serve_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

// A port that nobody listens on.
inline uint16_t closed_port() {
  const int taken = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  ::bind(taken, reinterpret_cast<sockaddr*>(&at), size);
  ::getsockname(taken, reinterpret_cast<sockaddr*>(&at), &size);
  ::close(taken);
  return ntohs(at.sin_port);
}

class KeptExchanges final : public ExchangeSink {
 public:
  void write(const Exchange& exchange) override { all.push_back(exchange); }
  std::vector<Exchange> all;
};

// A proxy before `upstream`, from construction to stop().
class RunningProxy {
 public:
  explicit RunningProxy(uint16_t upstream, ProxyOptions options = {},
                        ExchangeSink* sink = nullptr) {
    options.upstream_port = upstream;
    ExchangeSink& to = sink != nullptr ? *sink : static_cast<ExchangeSink&>(kept);
    thread_ = std::thread([this, options, &to] {
      const auto listening = [this](uint16_t port) {
        const std::lock_guard lock(mutex_);
        port_ = port;
        ready_.notify_one();
      };
      summary = run_proxy(
          options, to, listening, [this] { return stop_.load(); }, &gauges);
    });
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return port_ != 0; });
  }
  ~RunningProxy() { stop(); }
  uint16_t port() const { return port_; }
  // After it `kept` and `summary` are whole.
  void stop() {
    stop_.store(true);
    if (thread_.joinable()) thread_.join();
  }

  KeptExchanges kept;
  ProxyGauges gauges;
  ProxySummary summary;

 private:
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable ready_;
  uint16_t port_ = 0;
  std::thread thread_;
};

inline std::string post(std::string_view path, std::string_view body,
                        std::string_view headers = {}) {
  return "POST " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n" + std::string(headers) +
         "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + std::string(body);
}

inline std::string answer(std::string_view body, std::string_view status = "200 OK",
                          std::string_view type = "application/json") {
  return "HTTP/1.1 " + std::string(status) + "\r\nContent-Type: " + std::string(type) +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

inline std::string chunk(std::string_view bytes) {
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  return size + std::string(bytes) + "\r\n";
}

// The head of a streamed answer; chunk() follows, and chunk("") ends it.
inline constexpr std::string_view kStreamHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
    "Transfer-Encoding: chunked\r\n\r\n";

}  // namespace redecode::http_test
