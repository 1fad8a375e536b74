// recorder/http/observe_thread.h - ObserverThread: looks at copies of traffic on a thread of its
// own, behind a bounded queue, so that no parsing delays the traffic. It runs at low priority and
// looks a few hundred times a second at most; times are those of the traffic.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "recorder/http/observe.h"
#include "recorder/http/observe_times.h"

namespace redecode {

class ConnectionObserver;

// One connection as both threads see it.
struct ObservedConnection {
  explicit ObservedConnection(uint64_t in_order) : number(in_order) {}
  const uint64_t number;                  // unique in the observer
  std::atomic<uint64_t> events_taken{0};  // looked at
  std::atomic<uint32_t> open_requests{0};
  std::atomic<bool> given_up{false};
};

struct ObserverReport {
  ObserverCounts counts;
  DurationHistogram first_byte_us, whole_us;
};

class ObserverThread {
 public:
  enum class Kind : uint8_t {
    client_bytes,
    upstream_bytes,
    client_ended,
    upstream_ended,
    closed_by_client,
    closed_by_upstream,
    lost,  // the queue was full: give up
  };

  ObserverThread(ExchangeSink& sink, const ObserverLimits& limits);
  ~ObserverThread();

  // Microseconds since construction.
  uint64_t now_us() const;
  // Copies `bytes` into the queue, stamped with now. False when the backlog's limit is reached: the
  // bytes are dropped, and the caller should send `lost`, then only the close. Other kinds are
  // always taken. Thread-safe; does not wait for the observer.
  bool push(const std::shared_ptr<ObservedConnection>& connection, Kind kind,
            std::string_view bytes = {});
  // Waits until everything pushed was looked at, and ends the thread. Call once.
  ObserverReport finish();

 private:
  struct Event {
    std::shared_ptr<ObservedConnection> connection;
    Kind kind;
    uint64_t time_us;
    std::string bytes;
  };
  void run();
  void pause();
  static void look_at(const Event& event, ConnectionObserver& observer);
  bool take(std::deque<Event>& out);

  const ObserverLimits limits_;
  ExchangeSink& sink_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable some_, gathered_;
  std::deque<Event> events_;
  bool waiting_ = false;  // the thread sleeps
  bool ending_ = false;
  std::atomic<bool> ending_now_{false};  // as ending_, without the lock
  std::atomic<uint64_t> backlog_bytes_{0};
  std::chrono::steady_clock::time_point working_since_ = start_;
  ObserverReport report_;
  std::thread thread_;
};

}  // namespace redecode
