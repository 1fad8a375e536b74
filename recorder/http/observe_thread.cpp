#include "recorder/http/observe_thread.h"

#include <sys/resource.h>
#include <unistd.h>

#include <map>

#include "recorder/http/observe_connection.h"

namespace redecode {

namespace {

// Woken for every event, this thread would take the core from the relay just when it is needed.
constexpr std::chrono::milliseconds kGatherTime{1};
constexpr int kNice = 10;
// On a busy machine it works in slices, unless so much waits that it must hurry.
constexpr std::chrono::microseconds kWorkTime{30}, kPauseTime{50};
constexpr uint64_t kHurryBytes = uint64_t{1} << 20;

constexpr uint64_t kEventBytes = 96;  // of the queue's own, about

class Connections {
 public:
  explicit Connections(ObserverShared& shared) : shared_(shared) {}

  ConnectionObserver& of(ObservedConnection& connection) {
    std::unique_ptr<ConnectionObserver>& found = all_[connection.number];
    if (!found) found = std::make_unique<ConnectionObserver>(shared_);
    return *found;
  }
  void forget(ObservedConnection& connection) { all_.erase(connection.number); }

 private:
  ObserverShared& shared_;
  std::map<uint64_t, std::unique_ptr<ConnectionObserver>> all_;
};

}  // namespace

ObserverThread::ObserverThread(ExchangeSink& sink, const ObserverLimits& limits)
    : limits_(limits), sink_(sink), thread_([this] { run(); }) {}

ObserverThread::~ObserverThread() {
  if (thread_.joinable()) finish();
}

uint64_t ObserverThread::now_us() const {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                   std::chrono::steady_clock::now() - start_)
                                   .count());
}

bool ObserverThread::push(const std::shared_ptr<ObservedConnection>& connection, Kind kind,
                          std::string_view bytes) {
  const uint64_t size_bytes = bytes.size() + kEventBytes;
  const bool data = kind == Kind::client_bytes || kind == Kind::upstream_bytes;
  if (data && backlog_bytes_.load(std::memory_order_relaxed) + size_bytes > limits_.backlog_bytes)
    return false;
  backlog_bytes_.fetch_add(size_bytes, std::memory_order_relaxed);
  Event event{connection, kind, now_us(), std::string(bytes)};
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    wake = waiting_;
    waiting_ = false;
  }
  if (wake) some_.notify_one();
  return true;
}

ObserverReport ObserverThread::finish() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ending_now_.store(true, std::memory_order_relaxed);
  some_.notify_one();
  gathered_.notify_one();
  thread_.join();
  return std::move(report_);
}

bool ObserverThread::take(std::deque<Event>& out) {
  std::unique_lock lock(mutex_);
  while (events_.empty() && !ending_) {
    waiting_ = true;
    some_.wait(lock);
  }
  waiting_ = false;
  if (!ending_) gathered_.wait_for(lock, kGatherTime, [this] { return ending_; });
  out.swap(events_);
  return !out.empty();
}

void ObserverThread::pause() {
  using Clock = std::chrono::steady_clock;
  const auto now = Clock::now();
  if (now - working_since_ < kWorkTime) return;
  if (backlog_bytes_.load(std::memory_order_relaxed) < kHurryBytes &&
      !ending_now_.load(std::memory_order_relaxed))
    std::this_thread::sleep_for(kPauseTime);
  working_since_ = Clock::now();
}

void ObserverThread::look_at(const Event& event, ConnectionObserver& observer) {
  switch (event.kind) {
    case Kind::client_bytes:
      return observer.client_bytes(event.bytes, event.time_us);
    case Kind::upstream_bytes:
      return observer.upstream_bytes(event.bytes, event.time_us);
    case Kind::client_ended:
      return observer.client_ended(event.time_us);
    case Kind::upstream_ended:
      return observer.upstream_ended(event.time_us);
    case Kind::lost:
      return observer.give_up(NotRecorded::backlog);
    case Kind::closed_by_client:
    case Kind::closed_by_upstream:
      return observer.closed(event.kind == Kind::closed_by_client, event.time_us);
  }
}

void ObserverThread::run() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
  kj::EventLoop loop;
  kj::WaitScope scope(loop);
  ObserverShared shared(sink_, limits_);
  {
    Connections connections(shared);
    std::deque<Event> batch;
    while (take(batch)) {
      for (; !batch.empty(); batch.pop_front()) {
        const Event& event = batch.front();
        ConnectionObserver& observer = connections.of(*event.connection);
        look_at(event, observer);
        scope.poll();
        event.connection->open_requests.store(observer.open_requests(), std::memory_order_relaxed);
        event.connection->given_up.store(observer.given_up(), std::memory_order_relaxed);
        if (event.kind == Kind::closed_by_client || event.kind == Kind::closed_by_upstream)
          connections.forget(*event.connection);
        event.connection->events_taken.fetch_add(1, std::memory_order_release);
        backlog_bytes_.fetch_sub(event.bytes.size() + kEventBytes, std::memory_order_relaxed);
        pause();
      }
    }
  }
  report_ = {shared.counts, shared.first_byte_us, shared.whole_us};
}

}  // namespace redecode
