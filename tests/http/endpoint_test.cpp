// The endpoint over a scripted backend: answers, streams, errors and limits.
#include <catch2/catch_test_macros.hpp>

#include "tests/http/endpoint_net.h"

namespace redecode::http_test {
namespace {

constexpr const char* kCompletions = "/v1/completions";
constexpr const char* kChat = "/v1/chat/completions";

std::string error_code(const Reply& reply) { return at(reply.body, "error.code"); }

}  // namespace

TEST_CASE("Endpoint: a completion, whole and streamed, is the same text") {
  ScriptedBackend backend;
  backend.words = {"he", "l", "lo"};
  backend.script = say_words(3);
  Served served(backend);
  const Reply whole = post(served.port(), kCompletions, R"({"prompt":"abc","max_tokens":9})");
  CHECK(whole.status == 200);
  CHECK(at(whole.body, "object") == "text_completion");
  CHECK(at(whole.body, "model") == "scripted");
  CHECK(at(whole.body, "choices.0.text") == "hello");
  CHECK(at(whole.body, "choices.0.finish_reason") == "length");
  CHECK(at(whole.body, "choices.0.logprobs") == "null");
  CHECK(at(whole.body, "usage.prompt_tokens") == "3");
  CHECK(at(whole.body, "usage.completion_tokens") == "3");
  CHECK(at(whole.body, "usage.total_tokens") == "6");
  CHECK(backend.jobs().at(0).max_tokens == 9);

  const Reply stream = post(served.port(), kCompletions,
                            R"({"prompt":"abc","stream":true,)"
                            R"("stream_options":{"include_usage":true}})");
  CHECK(stream.status == 200);
  CHECK(stream.head.find("text/event-stream") != std::string::npos);
  CHECK(streamed_text(stream.body, 0, false) == "hello");
  const auto events = events_of(stream.body);
  REQUIRE(events.size() == 5);
  CHECK(at(events[2], "choices.0.finish_reason") == "length");
  CHECK(at(events[0], "choices.0.finish_reason") == "null");
  CHECK(at(events[3], "usage.completion_tokens") == "3");
  CHECK(at(events[3], "choices") == "[]");
  CHECK(events[4] == "[DONE]");
  CHECK(backend.jobs().at(1).max_tokens == 16);  // the API's default
}

TEST_CASE("Endpoint: chat, whole and streamed, the role once a choice") {
  ScriptedBackend backend;
  backend.words = {"x", "y"};
  backend.script = say_words(2, RequestEnd::stop);
  Served served(backend);
  const std::string messages = R"({"messages":[{"role":"user","content":"hi"}],"n":2)";
  const Reply whole = post(served.port(), kChat, messages + "}");
  CHECK(at(whole.body, "object") == "chat.completion");
  CHECK(at(whole.body, "choices.1.message.role") == "assistant");
  CHECK(at(whole.body, "choices.1.message.content") == "xy");
  CHECK(at(whole.body, "choices.1.finish_reason") == "stop");
  CHECK(at(whole.body, "usage.completion_tokens") == "4");
  CHECK(backend.jobs().at(0).prompt == backend.encode("uhi"));
  CHECK(backend.jobs().at(0).max_tokens == 61);  // all the room that the context has

  const Reply stream = post(served.port(), kChat, messages + R"(,"stream":true})");
  for (int choice = 0; choice < 2; ++choice)
    CHECK(streamed_text(stream.body, choice, true) == "xy");
  size_t roles = 0;
  for (const std::string& event : events_of(stream.body))
    roles += at(event, "choices.0.delta.role") == "assistant" ? 1 : 0;
  CHECK(roles == 2);
  CHECK(at(events_of(stream.body)[0], "object") == "chat.completion.chunk");
}

TEST_CASE("Endpoint: the end token is counted and not shown") {
  ScriptedBackend backend;
  backend.words.assign(512, "?");
  backend.script = [](JobId job, const TextJob&) {
    return std::vector{token_event(job, 1), token_event(job, 511, RequestEnd::stop)};
  };
  Served served(backend);
  const Reply reply = post(served.port(), kCompletions, R"({"prompt":"a","logprobs":0})");
  CHECK(at(reply.body, "choices.0.text") == "?");
  CHECK(at(reply.body, "choices.0.finish_reason") == "stop");
  CHECK(at(reply.body, "choices.0.logprobs.tokens") == R"(["?"])");
  CHECK(at(reply.body, "usage.completion_tokens") == "2");
}

TEST_CASE("Endpoint: a stop string across tokens ends the text before it and cancels the job") {
  ScriptedBackend backend;
  backend.words = {"one ", "EN", "x", "two", "EN", "D tail", "never"};
  backend.script = say_words(7);
  Served served(backend);
  const std::string body = R"({"prompt":"a","stop":["END"],"logprobs":0)";
  const Reply whole = post(served.port(), kCompletions, body + "}");
  CHECK(at(whole.body, "choices.0.text") == "one ENxtwo");
  CHECK(at(whole.body, "choices.0.finish_reason") == "stop");
  CHECK(at(whole.body, "choices.0.logprobs.tokens") == R"(["one ","EN","x","two"])");
  CHECK(at(whole.body, "choices.0.logprobs.text_offset") == "[0,4,6,7]");
  CHECK(at(whole.body, "usage.completion_tokens") == "6");
  CHECK(backend.cancelled() == std::vector<JobId>{0});

  const Reply stream = post(served.port(), kCompletions, body + R"(,"stream":true})");
  CHECK(streamed_text(stream.body, 0, false) == "one ENxtwo");
  CHECK(stream.body.find("END") == std::string::npos);
  CHECK(stream.body.find("tail") == std::string::npos);
  CHECK(backend.cancelled().size() == 2);
}

TEST_CASE("Endpoint: no event splits a character, and what never becomes one is replaced") {
  ScriptedBackend backend;
  backend.words = {"\xE2", "\x82", "\xAC", "a\xF0\x9F", "\x98\x80", "\xC3"};
  backend.script = say_words(6);
  Served served(backend);
  const Reply stream = post(served.port(), kCompletions, R"({"prompt":"a","stream":true})");
  CHECK(streamed_text(stream.body, 0, false) ==
        "\xE2\x82\xAC"
        "a\xF0\x9F\x98\x80\xEF\xBF\xBD");
  const auto events = events_of(stream.body);
  REQUIRE(events.size() == 5);
  CHECK(at(events[0], "choices.0.text") == "\xE2\x82\xAC");
}

TEST_CASE("Endpoint: echo puts the prompt in front, of texts and of tokens") {
  ScriptedBackend backend;
  backend.words = {"he", "\xC3", "\xA9"};
  backend.script = say_words(1);
  Served served(backend);
  const Reply text = post(served.port(), kCompletions, R"({"prompt":["q: ","r: "],"echo":true})");
  CHECK(at(text.body, "choices.0.text") == "q: he");
  CHECK(at(text.body, "choices.1.text") == "r: he");
  const Reply tokens = post(served.port(), kCompletions, R"({"prompt":[1,2,0],"echo":true})");
  CHECK(at(tokens.body, "choices.0.text") == "\xC3\xA9hehe");
  const Reply stream =
      post(served.port(), kCompletions, R"({"prompt":"q: ","echo":true,"stream":true})");
  CHECK(streamed_text(stream.body, 0, false) == "q: he");
}

TEST_CASE("Endpoint: seeds follow from the request, or from a counter") {
  ScriptedBackend backend;
  backend.words = {"a"};
  backend.script = say_words(1);
  Served served(backend);
  post(served.port(), kCompletions, R"({"prompt":"a","seed":5})");
  post(served.port(), kCompletions, R"({"prompt":["a","a"],"seed":5,"n":2})");
  post(served.port(), kCompletions, R"({"prompt":"a"})");
  post(served.port(), kCompletions, R"({"prompt":"a"})");
  const auto jobs = backend.jobs();
  REQUIRE(jobs.size() == 7);
  const auto seed = [&](size_t job) { return jobs[job].sampling.seed; };
  CHECK(seed(0) == 5);
  CHECK(seed(1) == 5);
  CHECK(seed(2) != 5);
  CHECK(seed(3) == 5);
  CHECK(seed(4) == seed(2));
  CHECK(seed(5) != seed(6));
}

TEST_CASE("Endpoint: models, health, metrics and HEAD") {
  ScriptedBackend backend;
  Served served(backend);
  CHECK(at(call(served.port(), "GET", "/health").body, "status") == "ok");
  CHECK(call(served.port(), "HEAD", "/health").status == 200);
  const Reply models = call(served.port(), "GET", "/v1/models?x=1");
  CHECK(at(models.body, "data.0.id") == "scripted");
  CHECK(at(models.body, "data.0.max_model_len") == "64");
  CHECK(at(call(served.port(), "GET", "/v1/models/scripted%3Aalias").body, "id") == "scripted");
  const Reply metrics = call(served.port(), "GET", "/metrics");
  CHECK(metrics.head.find("text/plain; version=0.0.4") != std::string::npos);
  CHECK(metrics.body.find("path=\"/v1/models\",status=\"200\"} 2") != std::string::npos);
}

TEST_CASE("Endpoint: each error has its status, and JSON as the API has it") {
  ScriptedBackend backend;
  EndpointOptions options;
  options.request.body_bytes = 1000;
  options.max_waiting = 4;
  Served served(backend, options);
  const uint16_t port = served.port();
  const auto check = [](const Reply& reply, int status, const std::string& code) {
    INFO(reply.body);
    CHECK(reply.status == status);
    CHECK_FALSE(at(reply.body, "error.message").empty());
    CHECK_FALSE(at(reply.body, "error.type").empty());
    CHECK(error_code(reply) == code);
  };
  check(post(port, kCompletions, "{"), 400, "null");
  check(post(port, kCompletions, R"({"prompt":"a","n":0})"), 400, "null");
  CHECK(at(post(port, kCompletions, R"({"prompt":"a","n":0})").body, "error.param") == "n");
  check(post(port, kCompletions, R"({"prompt":"a","model":"gpt"})"), 404, "model_not_found");
  check(post(port, kCompletions, R"({"prompt":[512]})"), 400, "null");
  check(post(port, kCompletions, R"({"prompt":")" + std::string(64, 'a') + R"("})"), 400,
        "context_length_exceeded");
  check(post(port, kCompletions, R"({"prompt":"aaaa","max_tokens":61})"), 400,
        "context_length_exceeded");
  check(post(port, kCompletions, R"({"prompt":"a","n":5})"), 400, "null");
  check(post(port, kCompletions, std::string(1001, ' ')), 413, "null");
  check(call(port, "POST", kCompletions, R"({"prompt":"a"})", {"Content-Type: text/plain"}), 415,
        "null");
  check(call(port, "GET", kCompletions), 405, "null");
  CHECK(call(port, "GET", kChat).head.find("Allow: POST") != std::string::npos);
  check(call(port, "DELETE", "/v1/models"), 405, "null");
  check(call(port, "GET", "/v2"), 404, "not_found");
  check(call(port, "GET", "/v1/models/gpt"), 404, "model_not_found");
  CHECK(backend.jobs().empty());
}

TEST_CASE("Endpoint: a chunked body is limited, too") {
  ScriptedBackend backend;
  EndpointOptions options;
  options.request.body_bytes = 1000;
  Served served(backend, options);
  Socket socket = Socket::connect(served.port());
  socket.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
  socket.send("3e9\r\n" + std::string(1001, ' ') + "\r\n0\r\n\r\n");
  CHECK(read_reply(socket).status == 413);
}

TEST_CASE("Endpoint: bytes that are no HTTP get a JSON error") {
  ScriptedBackend backend;
  Served served(backend);
  Socket socket = Socket::connect(served.port());
  socket.send("nonsense\r\n\r\n");
  const Reply reply = read_reply(socket);
  CHECK(reply.status >= 400);
  CHECK_FALSE(at(reply.body, "error.message").empty());
}

TEST_CASE("Endpoint: a body that stalls is given up") {
  ScriptedBackend backend;
  EndpointOptions options;
  options.body_timeout_ms = 50;
  Served served(backend, options);
  Socket socket = Socket::connect(served.port());
  socket.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 100\r\n\r\n{");
  CHECK(read_reply(socket).status == 408);
}

TEST_CASE("Endpoint: a token is demanded everywhere but for health") {
  ScriptedBackend backend;
  backend.words = {"a"};
  backend.script = say_words(1);
  EndpointOptions options;
  options.token = "sixteen-letters!";
  Served served(backend, options);
  const auto status = [&](const Headers& headers) {
    return call(served.port(), "GET", "/v1/models", {}, headers).status;
  };
  CHECK(call(served.port(), "GET", "/health").status == 200);
  CHECK(status({}) == 401);
  CHECK(status({"Authorization: Bearer sixteen-letters?"}) == 401);
  CHECK(status({"Authorization: Bearer sixteen-letters!!"}) == 401);
  CHECK(status({"Authorization: Basic sixteen-letters!"}) == 401);
  CHECK(status({"Authorization: sixteen-letters!"}) == 401);
  CHECK(status({"Authorization: Bearer sixteen-letters!"}) == 200);
  CHECK(status({"authorization: bearer sixteen-letters!"}) == 200);
  const Reply refused = post(served.port(), kCompletions, R"({"prompt":"a"})");
  CHECK(refused.status == 401);
  CHECK(refused.head.find("WWW-Authenticate: Bearer") != std::string::npos);
  CHECK(backend.jobs().empty());
}

TEST_CASE("Endpoint: too many waiting choices are told to come again") {
  ScriptedBackend backend;
  backend.words = {"a"};
  EndpointOptions options;
  options.max_waiting = 2;
  Served served(backend, options);
  Socket first = Socket::connect(served.port());
  first.send(request_text("POST", kCompletions, R"({"prompt":"a","n":2})", kJsonBody));
  REQUIRE(eventually([&] { return backend.jobs().size() == 2; }));
  const Reply refused = post(served.port(), kCompletions, R"({"prompt":"a"})");
  CHECK(refused.status == 429);
  CHECK(refused.head.find("Retry-After: ") != std::string::npos);
  backend.emit({token_event(0, 0, RequestEnd::length), token_event(1, 0, RequestEnd::length)});
  CHECK(read_reply(first).status == 200);
  Socket again = Socket::connect(served.port());
  again.send(request_text("POST", kCompletions, R"({"prompt":"a"})", kJsonBody));
  CHECK(eventually([&] { return backend.jobs().size() == 3; }));
  backend.emit({token_event(2, 0, RequestEnd::length)});
  CHECK(read_reply(again).status == 200);
}

TEST_CASE("Endpoint: a backend that takes no more gives 429, and what it took is cancelled") {
  ScriptedBackend backend;
  backend.most_jobs = 1;
  Served served(backend);
  CHECK(post(served.port(), kCompletions, R"({"prompt":"a","n":2})").status == 429);
  CHECK(backend.cancelled() == std::vector<JobId>{0});
}

TEST_CASE("Endpoint: a client that leaves cancels its choices, streamed or not") {
  ScriptedBackend backend;
  backend.words = {"a"};
  Served served(backend);
  for (const std::string stream : {"false", "true"}) {
    const size_t before = backend.jobs().size();
    Socket socket = Socket::connect(served.port());
    socket.send(request_text("POST", kCompletions,
                             R"({"prompt":"a","n":2,"stream":)" + stream + "}", kJsonBody));
    REQUIRE(eventually([&] { return backend.jobs().size() == before + 2; }));
    socket.close();
    CHECK(eventually([&] { return backend.cancelled().size() == before + 2; }));
  }
  const Reply metrics = call(served.port(), "GET", "/metrics");
  CHECK(metrics.body.find("\nredecode_choices_waiting 0\n") != std::string::npos);
  CHECK(metrics.body.find("\nredecode_choices_live 0\n") != std::string::npos);
  CHECK(served.finish().disconnects == 2);
}

TEST_CASE("Endpoint: a slow reader holds up nobody else, and gets all of its answer") {
  ScriptedBackend backend;
  backend.words = {std::string(200'000, 'w'), "b"};
  backend.info_.context_tokens = 4096;
  Served served(backend);
  Socket slow = Socket::connect(served.port(), 4096);
  slow.send(request_text("POST", kCompletions, R"({"prompt":"a","stream":true,"max_tokens":100})",
                         kJsonBody));
  REQUIRE(eventually([&] { return backend.jobs().size() == 1; }));
  for (int i = 0; i < 50; ++i) backend.emit({token_event(0, 0)});
  backend.emit({token_event(0, 0, RequestEnd::length)});
  backend.script = [](JobId job, const TextJob&) {
    return std::vector{token_event(job, 1, RequestEnd::length)};
  };
  CHECK(at(post(served.port(), kCompletions, R"({"prompt":"a"})").body, "choices.0.text") == "b");
  const Reply all = read_reply(slow);
  CHECK(all.whole);
  CHECK(streamed_text(all.body, 0, false).size() == 51u * 200'000u);
}

TEST_CASE("Endpoint: an answer that takes too long is ended with 504, in a stream by an event") {
  ScriptedBackend backend;
  backend.words = {"a"};
  EndpointOptions options;
  options.request_timeout_ms = 50;
  Served served(backend, options);
  const Reply whole = post(served.port(), kCompletions, R"({"prompt":"a"})");
  CHECK(whole.status == 504);
  const Reply stream = post(served.port(), kCompletions, R"({"prompt":"a","stream":true})");
  CHECK(stream.status == 200);
  CHECK(stream.whole);
  CHECK(at(events_of(stream.body).at(0), "error.code") == "timeout");
  CHECK(backend.cancelled().size() == 2);
}

TEST_CASE("Endpoint: jobs that the engine fails give 500, and its end gives 503") {
  ScriptedBackend backend;
  backend.script = [](JobId job, const TextJob&) {
    BackendEvent event;
    event.job = job;
    event.end = RequestEnd::failed;
    return std::vector{event};
  };
  Served served(backend);
  CHECK(post(served.port(), kCompletions, R"({"prompt":"a"})").status == 500);
  backend.fail();
  CHECK(eventually([&] { return served.ended(); }));
}

TEST_CASE("Endpoint: several requests on one connection, pipelined") {
  ScriptedBackend backend;
  backend.words = {"a"};
  backend.script = say_words(1);
  Served served(backend);
  Socket socket = Socket::connect(served.port());
  const std::string one = request_text("POST", kCompletions, R"({"prompt":"a"})", kJsonBody);
  socket.send(one);
  CHECK(read_reply(socket).status == 200);
  socket.send(one);
  CHECK(read_reply(socket).status == 200);
  CHECK(served.finish().connections == 1);
}

TEST_CASE("Endpoint: draining refuses new requests, and running ones end") {
  ScriptedBackend backend;
  backend.words = {"a"};
  Served served(backend);
  Socket running = Socket::connect(served.port());
  running.send(request_text("POST", kCompletions, R"({"prompt":"a","stream":true})", kJsonBody));
  REQUIRE(eventually([&] { return backend.jobs().size() == 1; }));
  served.begin_drain();
  CHECK(eventually([&] { return call(served.port(), "GET", "/health").status == 503; }));
  const Reply refused = post(served.port(), kCompletions, R"({"prompt":"a"})");
  CHECK(refused.status == 503);
  CHECK(refused.head.find("Retry-After") != std::string::npos);
  CHECK(error_code(refused) == "draining");
  CHECK_FALSE(served.ended());
  backend.emit({token_event(0, 0, RequestEnd::length)});
  const Reply all = read_reply(running);
  CHECK(all.whole);
  CHECK(streamed_text(all.body, 0, false) == "a");
  CHECK(served.finish().cut_by_drain == 0);
}

TEST_CASE("Endpoint: the drain's end cancels what still runs, with an error") {
  ScriptedBackend backend;
  EndpointOptions options;
  options.drain_timeout_ms = 50;
  Served served(backend, options);
  Socket stream = Socket::connect(served.port()), whole = Socket::connect(served.port());
  stream.send(request_text("POST", kCompletions, R"({"prompt":"a","stream":true})", kJsonBody));
  whole.send(request_text("POST", kCompletions, R"({"prompt":"a"})", kJsonBody));
  REQUIRE(eventually([&] { return backend.jobs().size() == 2; }));
  served.begin_drain();
  const Reply cut = read_reply(stream);
  CHECK(cut.whole);
  CHECK(at(events_of(cut.body).at(0), "error.code") == "draining");
  CHECK(read_reply(whole).status == 503);
  CHECK(served.finish().cut_by_drain == 2);
  CHECK(backend.cancelled().size() == 2);
}

}  // namespace redecode::http_test
