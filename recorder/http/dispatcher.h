// recorder/http/dispatcher.h - JobDispatcher: brings what the backend says of a job to whoever
// waits for it.
#pragma once
#include <kj/async-unix.h>

#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "recorder/http/metrics.h"
#include "recorder/http/text_backend.h"

namespace redecode {

class JobListener {
 public:
  virtual ~JobListener() = default;
  virtual void on_event(const BackendEvent& event) = 0;
  // After the events of one wake-up, for each listener that had one.
  virtual void settle() = 0;

 private:
  friend class JobDispatcher;
  bool had_event_ = false;  // in the wake-up that is being delivered
};

// Lives on one event loop. A listener must forget its jobs before it goes, and may do so in
// on_event.
class JobDispatcher {
 public:
  JobDispatcher(TextBackend& backend, kj::UnixEventPort& port, EndpointMetrics& metrics);

  // Nothing when the backend takes no more.
  std::optional<JobId> submit(TextJob job, JobListener& listener);
  // No more events of this job; it is cancelled unless it has ended.
  void forget(JobId job);
  uint64_t waiting() const { return waiting_; }  // without a first event
  uint64_t live() const { return jobs_.size(); }

  // Never ends by itself.
  kj::Promise<void> run();

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    JobListener* listener = nullptr;
    Clock::time_point submitted;
    bool started = false;
  };
  void deliver();
  void start(Entry& entry, bool has_token);

  TextBackend& backend_;
  EndpointMetrics& metrics_;
  kj::UnixEventPort::FdObserver observer_;
  std::map<JobId, Entry> jobs_;
  std::vector<BackendEvent> events_;
  uint64_t waiting_ = 0;
};

}  // namespace redecode
