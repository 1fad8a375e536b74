#include "recorder/http/dispatcher.h"

#include <utility>

namespace redecode {

JobDispatcher::JobDispatcher(TextBackend& backend, kj::UnixEventPort& port,
                             EndpointMetrics& metrics)
    : backend_(backend),
      metrics_(metrics),
      observer_(port, backend.event_fd(), kj::UnixEventPort::FdObserver::OBSERVE_READ) {}

std::optional<JobId> JobDispatcher::submit(TextJob job, JobListener& listener) {
  const std::optional<JobId> id = backend_.submit(std::move(job));
  if (!id) return id;
  jobs_.emplace(*id, Entry{&listener, Clock::now()});
  ++waiting_;
  ++metrics_.choices;
  return id;
}

void JobDispatcher::forget(JobId job) {
  const auto at = jobs_.find(job);
  if (at == jobs_.end()) return;
  if (!at->second.started) --waiting_;
  jobs_.erase(at);
  backend_.cancel(job);
}

kj::Promise<void> JobDispatcher::run() {
  // The watch begins before the events are taken, so that none between the two is missed.
  auto more = observer_.whenBecomesReadable();
  deliver();
  return more.then([this] { return run(); });
}

void JobDispatcher::start(Entry& entry, bool has_token) {
  if (entry.started) return;
  entry.started = true;
  --waiting_;
  if (has_token)
    metrics_.first_token_seconds.add(
        std::chrono::duration<double>(Clock::now() - entry.submitted).count());
}

void JobDispatcher::deliver() {
  events_.clear();
  backend_.take_events(events_);
  std::vector<JobListener*> touched;
  for (const BackendEvent& event : events_) {
    const auto at = jobs_.find(event.job);
    if (at == jobs_.end()) continue;
    JobListener* const listener = at->second.listener;
    start(at->second, event.has_token);
    if (event.end) jobs_.erase(at);
    listener->on_event(event);
    if (!std::exchange(listener->had_event_, true)) touched.push_back(listener);
  }
  for (JobListener* listener : touched) {
    listener->had_event_ = false;
    listener->settle();
  }
}

}  // namespace redecode
