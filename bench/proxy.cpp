// bench_proxy [--requests N] [--rounds N] [--events N] [--pause-us N]: what the recording proxy
// adds to a request.
//
// A fixed server answers on loopback; each round sends requests to it directly and through the
// proxy, in turns within one run, one at a time on kept connections. Answers are small JSON, or a
// stream of events, sent without a pause or (paced) with one before each event, as a model does.
// Times are from the first byte sent to the last byte received, for streams also to the first
// event, and for paced ones from sending an event to receiving it. All of it shares this machine's
// cores.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "bench/measure.h"
#include "tests/http/proxy_net.h"

namespace redecode {
namespace {

using namespace http_test;
using Clock = std::chrono::steady_clock;

constexpr int kPacedRequests = 4;  // a round and side

const std::string kSmallBody = R"({"model":"m","prompt":"Hello there","max_tokens":8})";
const std::string kStreamBody =
    R"({"model":"m","prompt":"Hello there","max_tokens":32,"stream":true})";
const std::string kPacedBody =  // of the same length
    R"({"model":"m","prompt":"Hello paced","max_tokens":32,"stream":true})";
const std::string kSmallAnswer =
    answer(R"({"choices":[{"index":0,"text":"General","finish_reason":"length"}],)"
           R"("usage":{"prompt_tokens":2,"completion_tokens":8}})");
const std::string kEvent =
    chunk("data: {\"choices\":[{\"index\":0,\"text\":\" word\",\"finish_reason\":null}]}\n\n");
const std::string kStreamEnd = chunk("data: [DONE]\n\n") + chunk("");

struct Stream {
  uint64_t events;
  std::chrono::microseconds pause;
  std::vector<std::atomic<Clock::rep>> sent;  // of the paced answer under way
  uint64_t size_bytes() const {
    return kStreamHead.size() + events * kEvent.size() + kStreamEnd.size();
  }
};

void send_paced(Socket& socket, Stream& stream) {
  for (std::atomic<Clock::rep>& sent : stream.sent) {
    std::this_thread::sleep_for(stream.pause);
    sent.store(Clock::now().time_since_epoch().count());
    socket.send(kEvent);
  }
}

// Answers by what came: all requests are known.
void serve(Socket& socket, Stream& stream) {
  socket.set_no_delay();
  const std::string small = post("/v1/completions", kSmallBody);
  const std::string streamed = post("/v1/completions", kStreamBody);
  for (;;) {
    std::string got = socket.receive_exactly(small.size());
    if (got.size() < small.size()) return;
    if (got == small) {
      socket.send(kSmallAnswer);
      continue;
    }
    got += socket.receive_exactly(streamed.size() - small.size());
    socket.send(kStreamHead);
    if (got.ends_with(kPacedBody))
      send_paced(socket, stream);
    else
      for (uint64_t i = 0; i < stream.events; ++i) socket.send(kEvent);
    socket.send(kStreamEnd);
  }
}

struct Times {
  std::vector<double> first_us, whole_us;
};

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

void ask(Socket& socket, const std::string& body, uint64_t answer_bytes, Times& times) {
  const std::string request = post("/v1/completions", body);
  const auto start = Clock::now();
  socket.send(request);
  uint64_t got = 0;
  double first = 0;
  while (got < answer_bytes) {
    const size_t count = socket.receive(65536).size();
    if (count == 0) std::abort();
    if (got == 0) first = us_since(start);
    got += count;
  }
  times.first_us.push_back(first);
  times.whole_us.push_back(us_since(start));
}

void ask_paced(Socket& socket, const Stream& stream, std::vector<double>& event_us) {
  socket.send(post("/v1/completions", kPacedBody));
  uint64_t got = 0, seen = 0;
  while (got < stream.size_bytes()) {
    const size_t count = socket.receive(65536).size();
    if (count == 0) std::abort();
    const Clock::rep now = Clock::now().time_since_epoch().count();
    got += count;
    for (; seen < stream.events && got >= kStreamHead.size() + (seen + 1) * kEvent.size(); ++seen)
      event_us.push_back(
          std::chrono::duration<double, std::micro>(Clock::duration(now - stream.sent[seen].load()))
              .count());
  }
}

double at(std::vector<double>& sorted, double share) {
  return sorted[std::min(sorted.size() - 1,
                         static_cast<size_t>(share * static_cast<double>(sorted.size())))];
}

void print_row(const char* what, std::vector<double> direct, std::vector<double> proxied) {
  std::sort(direct.begin(), direct.end());
  std::sort(proxied.begin(), proxied.end());
  std::printf("%-22s", what);
  for (const double share : {0.5, 0.99, 0.999}) {
    const double a = at(direct, share), b = at(proxied, share);
    std::printf("  %8.1f %8.1f %+8.1f", a, b, b - a);
  }
  std::printf("\n");
}

uint64_t number(int argc, char** argv, const char* flag, const char* otherwise) {
  return static_cast<uint64_t>(
      std::atoll(std::string(flag_value(argc, argv, flag, otherwise)).c_str()));
}

int run(int argc, char** argv) {
  const uint64_t requests = number(argc, argv, "--requests", "200");
  const uint64_t rounds = number(argc, argv, "--rounds", "50");
  const uint64_t events = number(argc, argv, "--events", "32");
  Stream stream = {events, std::chrono::microseconds(number(argc, argv, "--pause-us", "500")),
                   std::vector<std::atomic<Clock::rep>>(events)};
  ScriptedServer server([&](Socket& socket) { serve(socket, stream); });
  std::vector<double> event_us[2];
  Times small[2], streamed[2];
  uint64_t recorded = 0;
  {
    RunningProxy proxy(server.port());
    Socket sockets[2] = {Socket::connect(server.port()), Socket::connect(proxy.port())};
    for (Socket& socket : sockets) socket.set_no_delay();
    Times warm;
    for (Socket& socket : sockets) ask(socket, kSmallBody, kSmallAnswer.size(), warm);
    for (uint64_t round = 0; round < rounds; ++round)
      for (int side = 0; side < 2; ++side) {
        for (uint64_t i = 0; i < requests; ++i) {
          ask(sockets[side], kSmallBody, kSmallAnswer.size(), small[side]);
          if (i % 4 == 0) ask(sockets[side], kStreamBody, stream.size_bytes(), streamed[side]);
        }
        for (int i = 0; i < kPacedRequests; ++i) ask_paced(sockets[side], stream, event_us[side]);
      }
    for (Socket& socket : sockets) socket.close();
    proxy.stop();
    recorded = proxy.summary.observed.counts.recorded;
  }
  std::printf(
      "%llu small and %llu streamed requests a side, %llu exchanges recorded, microseconds\n",
      static_cast<unsigned long long>(small[0].whole_us.size()),
      static_cast<unsigned long long>(streamed[0].whole_us.size()),
      static_cast<unsigned long long>(recorded));
  std::printf("%-22s  %26s  %26s  %26s\n", "", "p50 direct, proxy, added", "p99", "p99.9");
  print_row("small, whole", small[0].whole_us, small[1].whole_us);
  print_row("streamed, first byte", streamed[0].first_us, streamed[1].first_us);
  print_row("paced, each event", event_us[0], event_us[1]);
  print_row("streamed, whole", streamed[0].whole_us, streamed[1].whole_us);
  return 0;
}

}  // namespace
}  // namespace redecode

int main(int argc, char** argv) { return redecode::run(argc, argv); }
