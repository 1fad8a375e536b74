#include "recorder/http/proxy.h"

#include <catch2/catch_test_macros.hpp>

#include "tests/http/proxy_net.h"
#include "traces/error.h"

namespace redecode {
namespace {

using namespace http_test;

struct Passed {
  std::string request, reply;  // as the server and the client got them
  bool reset = false;
  ProxySummary summary;
  std::vector<Exchange> exchanges;
};

// Sends `request`, which the server must get whole before it sends `reply` in `pieces` and ends.
Passed pass(const std::string& request, const std::string& reply, size_t piece_bytes = 100000) {
  Passed out;
  ScriptedServer server([&](Socket& socket) {
    out.request = socket.receive_exactly(request.size());
    for (size_t at = 0; at < reply.size(); at += piece_bytes)
      socket.send(std::string_view(reply).substr(at, piece_bytes));
  });
  RunningProxy proxy(server.port());
  Socket client = Socket::connect(proxy.port());
  client.send(request);
  out.reply = client.receive_all(&out.reset);
  client.close();
  proxy.stop();
  out.summary = proxy.summary;
  out.exchanges = proxy.kept.all;
  return out;
}

void check_untouched(const Passed& passed, const std::string& request, const std::string& reply) {
  CHECK(passed.request == request);
  CHECK(passed.reply == reply);
  CHECK_FALSE(passed.reset);
  CHECK(passed.summary.client_bytes == request.size());
  CHECK(passed.summary.upstream_bytes == reply.size());
}

const std::string kBody = R"({"model":"m","prompt":"Hi","max_tokens":3})";
const std::string kAnswer = R"({"choices":[{"index":0,"text":" there","finish_reason":"length"}],)"
                            R"("usage":{"prompt_tokens":1,"completion_tokens":3}})";

std::string event(const std::string& text, const std::string& finish = "") {
  return "data: {\"choices\":[{\"index\":0,\"text\":\"" + text +
         "\",\"finish_reason\":" + (finish.empty() ? "null" : "\"" + finish + "\"") + "}]}\n\n";
}

}  // namespace

TEST_CASE("Proxy: a plain exchange passes byte for byte and is recorded") {
  const std::string request = post("/v1/completions", kBody), reply = answer(kAnswer);
  const Passed passed = pass(request, reply);
  check_untouched(passed, request, reply);
  REQUIRE(passed.exchanges.size() == 1);
  const Exchange& exchange = passed.exchanges[0];
  CHECK(exchange.path == "/v1/completions");
  CHECK(exchange.model == "m");
  CHECK(exchange.prompt == "\"Hi\"");
  CHECK(exchange.max_tokens == 3);
  CHECK(exchange.status == 200);
  CHECK(exchange.end == ExchangeEnd::complete);
  CHECK(exchange.prompt_tokens == 1);
  CHECK(exchange.output_tokens == 3);
  CHECK(exchange.sampling.temperature == 1.0f);
  REQUIRE(exchange.choices.size() == 1);
  CHECK(exchange.choices[0].text == " there");
  CHECK(exchange.choices[0].text_bytes == 6);
  CHECK(exchange.choices[0].finish_reason == "length");
  CHECK(exchange.start_us <= exchange.first_us);
  CHECK(exchange.first_us <= exchange.end_us);
  CHECK(not_recorded_text(passed.summary.observed.counts) == "0 of 1 exchanges not recorded");
}

TEST_CASE("Proxy: a streamed answer passes in whatever pieces it comes") {
  const std::string request = post("/v1/completions", kBody);
  const std::string reply = std::string(kStreamHead) + chunk(event("a")) +
                            chunk(event("b") + event("c", "stop")) + chunk("data: [DONE]\n\n") +
                            chunk("");
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{100000}}) {
    const Passed passed = pass(request, reply, piece);
    check_untouched(passed, request, reply);
    REQUIRE(passed.exchanges.size() == 1);
    CHECK(passed.exchanges[0].choices.at(0).text == "abc");
    CHECK(passed.exchanges[0].choices.at(0).finish_reason == "stop");
    CHECK(passed.exchanges[0].chunk_us.size() == 3);
    CHECK(passed.exchanges[0].end == ExchangeEnd::complete);
  }
}

TEST_CASE("Proxy: several requests on one connection, one after the other and pipelined") {
  const std::string one = post("/v1/completions", kBody), models =
                                                              "GET /v1/models HTTP/1.1\r\n"
                                                              "Host: test\r\n\r\n";
  const std::string reply = answer(kAnswer), list = answer(R"({"data":[]})");
  for (const bool pipelined : {false, true}) {
    std::string seen;
    ScriptedServer server([&](Socket& socket) {
      for (const auto& [get, put] : {std::pair(one, reply), {models, list}, {one, reply}}) {
        seen += socket.receive_exactly(get.size());
        socket.send(put);
      }
      socket.receive_all();
    });
    RunningProxy proxy(server.port());
    Socket client = Socket::connect(proxy.port());
    std::string got;
    if (pipelined) {
      client.send(one + models + one);
      got = client.receive_exactly(2 * reply.size() + list.size());
    } else {
      for (const auto& [put, get] : {std::pair(one, reply), {models, list}, {one, reply}}) {
        client.send(put);
        got += client.receive_exactly(get.size());
      }
    }
    client.close();
    proxy.stop();
    CHECK(seen == one + models + one);
    CHECK(got == reply + list + reply);
    CHECK(proxy.kept.all.size() == 2);
    CHECK(proxy.summary.observed.counts.other_requests == 1);
    CHECK(proxy.summary.observed.counts.not_recorded_total() == 0);
  }
}

TEST_CASE("Proxy: error statuses pass and are recorded without an answer's text") {
  const std::string request = post("/v1/chat/completions", R"({"messages":[],"stream":true})");
  const std::string reply = answer(R"({"error":{"message":"slow down"}})", "429 Too Many Requests");
  const Passed passed = pass(request, reply);
  check_untouched(passed, request, reply);
  REQUIRE(passed.exchanges.size() == 1);
  CHECK(passed.exchanges[0].status == 429);
  CHECK(passed.exchanges[0].choices.empty());
  CHECK(passed.exchanges[0].streamed);
}

TEST_CASE("Proxy: an interim answer before the real one") {
  const std::string request = post("/v1/completions", kBody, "Expect: 100-continue\r\n");
  const std::string reply = "HTTP/1.1 100 Continue\r\n\r\n" + answer(kAnswer);
  for (const size_t piece : {size_t{3}, size_t{100000}}) {
    const Passed passed = pass(request, reply, piece);
    check_untouched(passed, request, reply);
    REQUIRE(passed.exchanges.size() == 1);
    CHECK(passed.exchanges[0].choices.at(0).text == " there");
  }
}

TEST_CASE("Proxy: huge headers pass, whether the observer can read them or not") {
  const std::string header = "X-Large: " + std::string(400000, 'h') + "\r\n";
  const std::string request = post("/v1/completions", kBody, header), reply = answer(kAnswer);
  const Passed passed = pass(request, reply);
  check_untouched(passed, request, reply);
  CHECK(passed.exchanges.size() + passed.summary.observed.counts.given_up_connections == 1);
}

TEST_CASE("Proxy: bytes that are no HTTP pass") {
  std::string noise;
  for (int i = 0; i < 100000; ++i) noise += static_cast<char>(i * 7919 >> 3);
  const Passed passed = pass(noise, noise + "end");
  check_untouched(passed, noise, noise + "end");
  CHECK(passed.exchanges.empty());
  CHECK(passed.summary.observed.counts.given_up_connections == 1);
}

TEST_CASE("Proxy: bodies that cannot be recorded are counted by reason") {
  const std::string good = answer(kAnswer);
  const auto reason = [](const Passed& passed, NotRecorded why) {
    return passed.summary.observed.counts.not_recorded[static_cast<size_t>(why)];
  };
  const std::string no_json = post("/v1/completions", "prompt=hi");
  CHECK(reason(pass(no_json, good), NotRecorded::not_json) == 1);
  const std::string request = post("/v1/completions", kBody);
  CHECK(reason(pass(request, answer("<html>")), NotRecorded::not_json) == 1);
  const std::string packed =
      "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x01";
  const Passed encoded = pass(request, packed);
  CHECK(reason(encoded, NotRecorded::encoded) == 1);
  CHECK(not_recorded_text(encoded.summary.observed.counts) ==
        "1 of 1 exchanges not recorded: 1 a body is compressed");
}

TEST_CASE("Proxy: a client that half-closes still gets its answer") {
  const std::string request = post("/v1/completions", kBody), reply = answer(kAnswer);
  std::string seen;
  ScriptedServer server([&](Socket& socket) {
    seen = socket.receive_all();  // to the end that the client sent
    socket.send(reply);
  });
  RunningProxy proxy(server.port());
  Socket client = Socket::connect(proxy.port());
  client.send(request);
  client.end();
  CHECK(client.receive_all() == reply);
  proxy.stop();
  CHECK(seen == request);
  REQUIRE(proxy.kept.all.size() == 1);
  CHECK(proxy.kept.all[0].end == ExchangeEnd::complete);
}

TEST_CASE("Proxy: a client that leaves mid-stream is missed by the server") {
  std::atomic<bool> noticed{false};
  ScriptedServer server([&](Socket& socket) {
    socket.receive(100000);
    socket.send(kStreamHead);
    const std::string piece = chunk(event("x"));
    for (int i = 0; i < 5000 && !noticed; ++i) {
      noticed = !socket.send(piece);
      ::usleep(1000);
    }
  });
  RunningProxy proxy(server.port());
  Socket client = Socket::connect(proxy.port());
  client.send(post("/v1/completions", kBody));
  client.receive(10);
  client.reset();
  for (int i = 0; i < 500 && !noticed; ++i) ::usleep(10000);
  CHECK(noticed);
  proxy.stop();
  REQUIRE(proxy.kept.all.size() == 1);
  CHECK(proxy.kept.all[0].end == ExchangeEnd::client_gone);
  CHECK(proxy.kept.all[0].end_us == 0);
  CHECK(proxy.kept.all[0].status == 200);
}

TEST_CASE("Proxy: a server that dies mid-stream is missed by the client") {
  for (const bool by_reset : {false, true}) {
    const std::string part = std::string(kStreamHead) + chunk(event("x"));
    ScriptedServer server([&](Socket& socket) {
      socket.receive(100000);
      socket.send(part);
      ::usleep(50000);  // the part is read before the reset overtakes it
      if (by_reset) socket.reset();
    });
    RunningProxy proxy(server.port());
    Socket client = Socket::connect(proxy.port());
    client.send(post("/v1/completions", kBody));
    bool reset = false;
    CHECK(client.receive_all(&reset) == part);
    CHECK(reset == by_reset);
    client.close();
    proxy.stop();
    REQUIRE(proxy.kept.all.size() == 1);
    CHECK(proxy.kept.all[0].end == ExchangeEnd::upstream_gone);
    CHECK(proxy.kept.all[0].choices.at(0).text == "x");
  }
}

TEST_CASE("Proxy: a server that cannot be reached is a 502 with a JSON error") {
  RunningProxy proxy(closed_port());
  Socket client = Socket::connect(proxy.port());
  client.send(post("/v1/completions", kBody));
  const std::string reply = client.receive_all();
  CHECK(reply.starts_with("HTTP/1.1 502 Bad Gateway\r\n"));
  CHECK(reply.find("\"upstream_unreachable\"") != std::string::npos);
  client.close();
  proxy.stop();
  CHECK(proxy.summary.refused_connections == 1);
  REQUIRE(proxy.kept.all.size() == 1);
  CHECK(proxy.kept.all[0].status == 0);
  CHECK(proxy.kept.all[0].end == ExchangeEnd::upstream_gone);
  CHECK(proxy.kept.all[0].prompt == "\"Hi\"");
}

TEST_CASE("Proxy: a slow reader stops the server, it does not fill the proxy") {
  std::atomic<uint64_t> taken{0};
  std::atomic<bool> full{false};
  constexpr uint64_t kMost = uint64_t{256} << 20;
  ScriptedServer server([&](Socket& socket) {
    socket.receive(100000);
    taken = socket.send_until_full(std::string(65536, 'x'), kMost);
    full = true;
    socket.receive_all();
  });
  ProxyOptions options;
  options.limits.backlog_bytes = 1 << 20;
  RunningProxy proxy(server.port(), options);
  Socket client = Socket::connect(proxy.port(), 65536);
  client.send("GET / HTTP/1.1\r\n\r\n");
  for (int i = 0; i < 1000 && !full; ++i) ::usleep(10000);
  CHECK(full);
  CHECK(taken < kMost);  // the rest of it lies in the kernel's buffers
  CHECK(proxy.gauges.buffered_bytes.load() > 0);
  CHECK(proxy.gauges.most_buffered_bytes.load() <= 2 * options.buffer_bytes);
  client.close();
  proxy.stop();
  CHECK(proxy.gauges.buffered_bytes.load() == 0);
  CHECK(proxy.gauges.connections.load() == 0);
}

TEST_CASE("Proxy: more connections than allowed wait their turn") {
  ScriptedServer server([&](Socket& socket) {
    while (!socket.receive(100000).empty()) socket.send(answer(kAnswer));
  });
  ProxyOptions options;
  options.connections = 2;
  RunningProxy proxy(server.port(), options);
  std::vector<std::thread> clients;
  std::atomic<int> served{0};
  for (int i = 0; i < 12; ++i)
    clients.emplace_back([&] {
      Socket client = Socket::connect(proxy.port());
      client.send(post("/v1/completions", kBody));
      if (client.receive_exactly(answer(kAnswer).size()) == answer(kAnswer)) ++served;
    });
  for (std::thread& client : clients) client.join();
  proxy.stop();
  CHECK(served == 12);
  CHECK(proxy.kept.all.size() == 12);
}

TEST_CASE("Proxy: stopping lets a running exchange end and closes idle connections") {
  std::atomic<bool> asked{false}, go_on{false};
  ScriptedServer server([&](Socket& socket) {
    if (socket.receive(100000).empty()) return;
    socket.send(kStreamHead);
    socket.send(chunk(event("a")));
    asked = true;
    for (int i = 0; i < 1000 && !go_on; ++i) ::usleep(5000);
    socket.send(chunk(event("b", "stop")) + chunk(""));
    socket.receive_all();
  });
  RunningProxy proxy(server.port());
  Socket idle = Socket::connect(proxy.port());
  Socket busy = Socket::connect(proxy.port());
  busy.send(post("/v1/completions", kBody));
  for (int i = 0; i < 1000 && !asked; ++i) ::usleep(5000);
  std::thread stopping([&] { proxy.stop(); });
  CHECK(idle.receive_all().empty());
  go_on = true;
  const std::string reply = busy.receive_all();
  stopping.join();
  CHECK(reply.ends_with(chunk(event("b", "stop")) + chunk("")));
  CHECK(proxy.summary.cut_connections == 0);
  REQUIRE(proxy.kept.all.size() == 1);
  CHECK(proxy.kept.all[0].choices.at(0).text == "ab");
  CHECK(proxy.kept.all[0].end == ExchangeEnd::complete);
}

TEST_CASE("Proxy: a trace that cannot be written does not stop the traffic") {
  class Full final : public ExchangeSink {
    void write(const Exchange&) override { throw Error(ErrorCode::environment, "disk full"); }
  };
  Full sink;
  const std::string request = post("/v1/completions", kBody), reply = answer(kAnswer);
  ScriptedServer server([&](Socket& socket) {
    while (socket.receive_exactly(request.size()).size() == request.size()) socket.send(reply);
  });
  RunningProxy proxy(server.port(), {}, &sink);
  Socket client = Socket::connect(proxy.port());
  for (int i = 0; i < 3; ++i) {
    client.send(request);
    CHECK(client.receive_exactly(reply.size()) == reply);
  }
  client.close();
  proxy.stop();
  CHECK(not_recorded_text(proxy.summary.observed.counts) ==
        "3 of 3 exchanges not recorded: 3 the trace could not be written");
  CHECK(proxy.summary.observed.counts.first_write_error == "disk full");
}

TEST_CASE("Proxy: an observer without room gives up, the bytes still pass") {
  ProxyOptions options;
  options.limits.backlog_bytes = 64;
  const std::string request = post("/v1/completions", kBody), reply = answer(kAnswer);
  ScriptedServer server([&](Socket& socket) {
    socket.receive_exactly(request.size());
    socket.send(reply);
  });
  RunningProxy proxy(server.port(), options);
  Socket client = Socket::connect(proxy.port());
  client.send(request);
  CHECK(client.receive_all() == reply);
  client.close();
  proxy.stop();
  CHECK(not_recorded_text(proxy.summary.observed.counts) ==
        "1 of 1 exchanges not recorded: 1 the observer fell behind");
}

TEST_CASE("Proxy: URLs of servers") {
  std::string host;
  uint16_t port = 0;
  parse_http_url("http://127.0.0.1:8000", "--upstream", host, port);
  CHECK((host == "127.0.0.1" && port == 8000));
  parse_http_url("http://model/v1", "--upstream", host, port);
  CHECK((host == "model" && port == 80));
  parse_http_url("http://[::1]:81/", "--upstream", host, port);
  CHECK((host == "[::1]" && port == 81));
  for (const char* bad : {"https://a", "127.0.0.1:80", "http://", "http://a:0", "http://a:x",
                          "http://a:65536", "http://a/b", "http://u@a"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_http_url(bad, "--upstream", host, port), Error);
  }
}

}  // namespace redecode
