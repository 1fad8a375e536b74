#include "recorder/http/proxy_relay.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <utility>

namespace redecode {
namespace {

constexpr std::string_view kUnreachable =
    R"({"error":{"message":"the server behind this proxy cannot be reached",)"
    R"("type":"bad_gateway","code":"upstream_unreachable"}})";
constexpr uint64_t kQuietUs = 1000000;  // an unobserved connection counts as idle then
constexpr uint64_t kDrainBytes = uint64_t{8}
                                 << 20;  // of a refused client, read so that it reads us
constexpr auto kRefuseTime = 2 * kj::SECONDS;

void set_no_delay(kj::AsyncIoStream& stream) {
  const int on = 1;
  try {
    stream.setsockopt(IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  } catch (const kj::Exception&) {  // gone already, or not TCP
  }
}

// The close that follows is a reset, as the other side's was: no reader may take it for an end.
void reset_on_close(kj::AsyncIoStream& stream) {
  const linger now = {1, 0};
  try {
    stream.setsockopt(SOL_SOCKET, SO_LINGER, &now, sizeof now);
  } catch (const kj::Exception&) {
  }
}

void end_writing(kj::AsyncIoStream& stream) {
  try {
    stream.shutdownWrite();
  } catch (const kj::Exception&) {  // the peer was faster
  }
}

}  // namespace

Relay::Relay(RelayContext& context, kj::Own<kj::AsyncIoStream> client)
    : context_(context),
      client_(kj::mv(client)),
      up_{Side::client, std::make_unique<kj::byte[]>(context.options.buffer_bytes)},
      down_{Side::upstream, std::make_unique<kj::byte[]>(context.options.buffer_bytes)} {
  observed_ = std::make_shared<ObservedConnection>(context_.summary.connections++);
  context_.gauges.connections.fetch_add(1, std::memory_order_relaxed);
  last_traffic_us_ = context_.observer.now_us();
  set_no_delay(*client_);
}

Relay::~Relay() {
  hold(up_, 0);
  hold(down_, 0);
  context_.gauges.connections.fetch_sub(1, std::memory_order_relaxed);
  observe(first_to_leave_ == Side::client ? ObserverThread::Kind::closed_by_client
                                          : ObserverThread::Kind::closed_by_upstream);
}

kj::Promise<void> Relay::run() {
  auto pair = kj::newPromiseAndFulfiller<void>();
  done_ = kj::mv(pair.fulfiller);
  up_task_ = connect().eagerlyEvaluate(nullptr);
  return kj::mv(pair.promise);
}

kj::Promise<void> Relay::connect() {
  auto connecting = kj::evalNow([this] { return context_.upstream.connect(); });
  return context_.timer
      .timeoutAfter(context_.options.connect_timeout_ms * kj::MILLISECONDS, kj::mv(connecting))
      .then(
          [this](kj::Own<kj::AsyncIoStream>&& upstream) -> kj::Promise<void> {
            upstream_ = kj::mv(upstream);
            set_no_delay(*upstream_);
            start();
            return pump(up_);
          },
          [this](kj::Exception&&) { return refuse(); });
}

void Relay::start() { down_task_ = pump(down_).eagerlyEvaluate(nullptr); }

// Reads only when the other side has taken what was read before.
kj::Promise<void> Relay::pump(Direction& direction) {
  kj::AsyncIoStream& from = stream(direction.from);
  // kj throws what a call meets at once; evalNow makes it the promise's failure, as later ones are.
  return kj::evalNow(
             [&] { return from.tryRead(direction.buffer.get(), 1, context_.options.buffer_bytes); })
      .then(
          [this, &direction](size_t count) -> kj::Promise<void> {
            if (count != 0) return pass_on(direction, count);
            end_of(direction);
            return kj::READY_NOW;
          },
          [this, &direction](kj::Exception&&) -> kj::Promise<void> {
            left(direction.from);
            return kj::READY_NOW;
          });
}

kj::Promise<void> Relay::pass_on(Direction& direction, size_t size_bytes) {
  hold(direction, size_bytes);
  // The call sends what the kernel takes at once; the copy for the observer comes after.
  auto written = kj::evalNow(
      [&] { return stream(other(direction.from)).write(direction.buffer.get(), size_bytes); });
  const bool up = direction.from == Side::client;
  observe(up ? ObserverThread::Kind::client_bytes : ObserverThread::Kind::upstream_bytes,
          {reinterpret_cast<const char*>(direction.buffer.get()), size_bytes});
  return written.then(
      [this, &direction, size_bytes, up]() -> kj::Promise<void> {
        hold(direction, 0);
        (up ? context_.summary.client_bytes : context_.summary.upstream_bytes) += size_bytes;
        return pump(direction);
      },
      [this, &direction](kj::Exception&&) -> kj::Promise<void> {
        left(other(direction.from));
        return kj::READY_NOW;
      });
}

void Relay::hold(Direction& direction, uint64_t size_bytes) {
  const uint64_t now = context_.gauges.buffered_bytes.fetch_add(size_bytes - direction.held_bytes,
                                                                std::memory_order_relaxed) +
                       size_bytes - direction.held_bytes;
  direction.held_bytes = size_bytes;
  if (now > context_.gauges.most_buffered_bytes.load(std::memory_order_relaxed))
    context_.gauges.most_buffered_bytes.store(now, std::memory_order_relaxed);
}

// An orderly end of one direction; the other one may go on.
void Relay::end_of(Direction& direction) {
  direction.ended = true;
  const bool client = direction.from == Side::client;
  observe(client ? ObserverThread::Kind::client_ended : ObserverThread::Kind::upstream_ended);
  if (!std::exchange(somebody_left_, true)) first_to_leave_ = direction.from;
  end_writing(stream(other(direction.from)));
  if (up_.ended && down_.ended) return finish();
  if (!client)
    linger_ = context_.timer.afterDelay(context_.options.half_close_ms * kj::MILLISECONDS)
                  .then([this] { finish(); })
                  .eagerlyEvaluate(nullptr);
}

// A side is gone without an end: the other one learns it the same way.
void Relay::left(Side side) {
  if (!std::exchange(somebody_left_, true)) first_to_leave_ = side;
  reset_on_close(stream(other(side)));
  finish();
}

void Relay::finish() {
  if (done_.get() != nullptr && done_->isWaiting()) done_->fulfill();
}

void Relay::close() { finish(); }

bool Relay::idle() const {
  if (lost_ || observed_->given_up.load(std::memory_order_relaxed))
    return context_.observer.now_us() - last_traffic_us_ > kQuietUs;
  return observed_->events_taken.load(std::memory_order_acquire) == pushed_ &&
         observed_->open_requests.load(std::memory_order_relaxed) == 0;
}

void Relay::observe(ObserverThread::Kind kind, std::string_view bytes) {
  const bool close = kind == ObserverThread::Kind::closed_by_client ||
                     kind == ObserverThread::Kind::closed_by_upstream;
  if (!bytes.empty() && lost_) last_traffic_us_ = context_.observer.now_us();
  if (lost_ && !close) return;
  if (!context_.observer.push(observed_, kind, bytes)) {
    lost_ = true;
    context_.observer.push(observed_, ObserverThread::Kind::lost);
  }
  ++pushed_;
}

// The server is not there: the client gets a 502 for its first request, if it sends one.
kj::Promise<void> Relay::refuse() {
  ++context_.summary.refused_connections;
  somebody_left_ = true;
  first_to_leave_ = Side::upstream;
  auto answer = [this](size_t count) -> kj::Promise<void> {
    if (count == 0) return kj::READY_NOW;
    observe(ObserverThread::Kind::client_bytes,
            {reinterpret_cast<const char*>(up_.buffer.get()), count});
    auto text = kj::str("HTTP/1.1 502 Bad Gateway\r\nContent-Type: application/json\r\n",
                        "Content-Length: ", kUnreachable.size(), "\r\nConnection: close\r\n\r\n",
                        kj::arrayPtr(kUnreachable.data(), kUnreachable.size()));
    auto written = client_->write(text.begin(), text.size()).attach(kj::mv(text));
    return written.then([this] {
      end_writing(*client_);
      return drain_client(kDrainBytes);
    });
  };
  auto served = kj::evalNow([this] {
                  return client_->tryRead(up_.buffer.get(), 1, context_.options.buffer_bytes);
                }).then(kj::mv(answer));
  return context_.timer.timeoutAfter(kRefuseTime, kj::mv(served))
      .then([this] { finish(); }, [this](kj::Exception&&) { finish(); });
}

// Bytes that nobody reads would turn the close into a reset, and the answer might be lost.
kj::Promise<void> Relay::drain_client(uint64_t rest_bytes) {
  return client_->tryRead(up_.buffer.get(), 1, context_.options.buffer_bytes)
      .then([this, rest_bytes](size_t count) -> kj::Promise<void> {
        if (count == 0 || count > rest_bytes) return kj::READY_NOW;
        observe(ObserverThread::Kind::client_bytes,
                {reinterpret_cast<const char*>(up_.buffer.get()), count});
        return drain_client(rest_bytes - count);
      });
}

}  // namespace redecode
