#include "recorder/http/observe.h"

#include <catch2/catch_test_macros.hpp>
#include <functional>

#include "recorder/http/observe_connection.h"
#include "recorder/http/observe_escapes.h"
#include "recorder/http/observe_json.h"
#include "recorder/http/observe_sse.h"
#include "recorder/http/observe_times.h"
#include "tests/http/proxy_net.h"
#include "traces/json_writer.h"
#include "traces/random.h"

namespace redecode {
namespace {

using namespace http_test;

// One observed connection, whose loop is polled after every call.
class Observed {
 public:
  explicit Observed(const ObserverLimits& limits = {})
      : scope_(loop_),
        shared_(sink, limits),
        connection_(std::make_unique<ConnectionObserver>(shared_)) {
    scope_.poll();
  }
  void client(std::string_view bytes, uint64_t now_us = 1) {
    connection_->client_bytes(bytes, now_us);
    scope_.poll();
  }
  void upstream(std::string_view bytes, uint64_t now_us = 1) {
    connection_->upstream_bytes(bytes, now_us);
    scope_.poll();
  }
  void close(bool by_client = true, uint64_t now_us = 1) {
    connection_->closed(by_client, now_us);
    connection_.reset();
    scope_.poll();
  }
  const ObserverCounts& counts() const { return shared_.counts; }
  uint64_t held_bytes() const { return shared_.held_bytes; }
  bool given_up() const { return connection_->given_up(); }

  KeptExchanges sink;

 private:
  kj::EventLoop loop_;
  kj::WaitScope scope_;
  ObserverShared shared_;
  std::unique_ptr<ConnectionObserver> connection_;
};

std::string random_text(RandomSequence& draws) {
  static const std::vector<std::string> kPieces = {"a",        " word",        "\n",
                                                   "\"",       "\\",           "\t",
                                                   "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
                                                   "data:",    "\r\n\r\n",     "{}",
                                                   "[DONE]"};
  std::string out;
  for (uint64_t i = draws.below(12); i > 0; --i) out += kPieces[draws.below(kPieces.size())];
  return out;
}

// Every character above ASCII as JSON escapes, as Python writes it.
std::string escaped(const std::string& json) {
  std::string out;
  for (size_t at = 0; at < json.size();) {
    const auto lead = static_cast<uint8_t>(json[at]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    uint32_t code = length == 1 ? lead : lead & (0x7Fu >> length);
    for (size_t i = 1; i < length; ++i)
      code = (code << 6) | (static_cast<uint8_t>(json[at + i]) & 0x3F);
    at += length;
    char text[16];
    if (length == 1) {
      out += static_cast<char>(lead);
    } else if (code < 0x10000) {
      std::snprintf(text, sizeof text, "\\u%04x", code);
      out += text;
    } else {
      std::snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xD800 + ((code - 0x10000) >> 10),
                    0xDC00 + ((code - 0x10000) & 0x3FF));
      out += text;
    }
  }
  return out;
}

struct Sent {
  std::string prompt_json, path, request, reply;
  std::vector<std::string> texts;
  bool chat = false, streamed = false;
};

std::string choice_json(const Sent& sent, size_t index, const std::string& text, bool last) {
  JsonWriter json;
  json.begin_object().key("choices").begin_array().begin_object().member("index", index);
  if (sent.chat)
    json.key(sent.streamed ? "delta" : "message")
        .begin_object()
        .member("role", "assistant")
        .member("content", text)
        .end_object();
  else
    json.member("text", text);
  json.key("finish_reason");
  if (last)
    json.value("stop");
  else
    json.null();
  json.end_object().end_array().end_object();
  return json.take();
}

Sent random_exchange(RandomSequence& draws) {
  Sent sent;
  sent.chat = draws.below(2) == 1;
  sent.streamed = draws.below(2) == 1;
  sent.path = sent.chat ? "/v1/chat/completions" : "/v1/completions";
  JsonWriter prompt;
  if (sent.chat)
    prompt.begin_array()
        .begin_object()
        .member("role", "user")
        .member("content", random_text(draws))
        .end_object()
        .end_array();
  else
    prompt.value(random_text(draws));
  sent.prompt_json = prompt.take();
  JsonWriter body;
  body.begin_object().member("model", "m").member("stream", sent.streamed);
  body.key(sent.chat ? "messages" : "prompt").raw(sent.prompt_json).end_object();
  std::string text = body.take();
  if (draws.below(2) == 1) text = escaped(text);
  sent.request = post(sent.path + "?api_key=secret", text, "Authorization: Bearer secret\r\n");
  const size_t choices = sent.streamed ? 1 + draws.below(3) : 1;
  sent.texts.resize(choices);
  if (!sent.streamed) {
    sent.texts[0] = random_text(draws);
    const std::string json = choice_json(sent, 0, sent.texts[0], true);
    sent.reply = answer(draws.below(2) == 1 ? escaped(json) : json);
    return sent;
  }
  sent.reply = kStreamHead;
  for (uint64_t i = draws.below(20); i > 0; --i) {
    const size_t index = draws.below(choices);
    const std::string piece = random_text(draws);
    sent.texts[index] += piece;
    sent.reply += chunk("data: " + choice_json(sent, index, piece, false) + "\n\n");
  }
  for (size_t i = 0; i < choices; ++i)
    sent.reply += chunk("data: " + choice_json(sent, i, "", true) + "\r\n\r\n");
  sent.reply += chunk(": comment\n\ndata: [DONE]\n\n") + chunk("");
  return sent;
}

void in_pieces(RandomSequence& draws, std::string_view bytes,
               const std::function<void(std::string_view)>& feed) {
  while (!bytes.empty()) {
    const size_t size = std::min<size_t>(bytes.size(), 1 + draws.below(200));
    feed(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
}

}  // namespace

TEST_CASE("Observer: what it keeps equals what was sent, for 200 random exchanges") {
  RandomSequence draws(7);
  Observed observed;
  uint64_t now_us = 0;
  std::vector<Sent> all;
  for (int i = 0; i < 200; ++i) {
    all.push_back(random_exchange(draws));
    in_pieces(draws, all.back().request,
              [&](std::string_view bytes) { observed.client(bytes, ++now_us); });
    in_pieces(draws, all.back().reply,
              [&](std::string_view bytes) { observed.upstream(bytes, ++now_us); });
  }
  observed.close();
  CHECK(observed.held_bytes() == 0);
  CHECK(observed.counts().not_recorded_total() == 0);
  REQUIRE(observed.sink.all.size() == all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const Exchange& got = observed.sink.all[i];
    CAPTURE(i);
    CHECK(got.number == i);
    CHECK(got.path == all[i].path);
    CHECK(got.prompt == all[i].prompt_json);
    CHECK(got.streamed == all[i].streamed);
    CHECK(got.end == ExchangeEnd::complete);
    CHECK(got.start_us < got.first_us);
    CHECK(got.first_us <= got.end_us);
    CHECK(std::is_sorted(got.chunk_us.begin(), got.chunk_us.end()));
    REQUIRE(got.choices.size() == all[i].texts.size());
    for (size_t c = 0; c < got.choices.size(); ++c) {
      CHECK(got.choices[c].text == all[i].texts[c]);
      CHECK(got.choices[c].finish_reason == "stop");
    }
  }
}

TEST_CASE("Observer: times are those of the bytes that ended a thing") {
  Observed observed;
  const std::string request = post("/v1/completions", R"({"prompt":"p","stream":true})");
  observed.client(request.substr(0, 20), 10);
  observed.client(request.substr(20), 20);
  observed.upstream(kStreamHead, 30);
  observed.upstream(chunk("data: {\"choices\":[{\"text\":\"a\"}]}\n\n"), 40);
  observed.upstream(chunk("data: {\"choices\":[{\"text\":\"b\"}]}\n"), 50);
  observed.upstream(chunk("\n"), 60);
  observed.upstream(chunk(""), 70);
  REQUIRE(observed.sink.all.size() == 1);
  const Exchange& exchange = observed.sink.all[0];
  CHECK(exchange.start_us == 20);
  CHECK(exchange.first_us == 40);
  CHECK(exchange.chunk_us == std::vector<uint64_t>{40, 60});
  CHECK(exchange.end_us == 70);
  observed.close();
}

TEST_CASE("Observer: limits of bodies, answers and memory") {
  const std::string long_prompt = R"({"prompt":")" + std::string(5000, 'p') + "\"}";
  const auto reason = [](const Observed& observed, NotRecorded why) {
    return observed.counts().not_recorded[static_cast<size_t>(why)];
  };
  ObserverLimits limits;
  limits.request_bytes = 4000;
  {
    Observed requests(limits);
    requests.client(post("/v1/completions", long_prompt));
    requests.upstream(answer("{}"));
    CHECK(reason(requests, NotRecorded::too_large) == 1);
    requests.close();
  }
  limits = {};
  limits.answer_bytes = 1000;
  {
    Observed answers(limits);
    answers.client(post("/v1/completions", "{}"));
    answers.upstream(answer(std::string(2000, ' ')));
    CHECK(reason(answers, NotRecorded::too_large) == 1);
    answers.close();
  }
  limits = {};
  limits.held_bytes = 3000;
  Observed memory(limits);
  memory.client(post("/v1/completions", long_prompt));
  CHECK(reason(memory, NotRecorded::memory) == 0);  // nothing was under way yet
  CHECK(memory.given_up());
  CHECK(memory.held_bytes() == 0);
  memory.close();
}

TEST_CASE("Observer: an answer that nobody asked for, and another protocol, end the observation") {
  {
    Observed unasked;
    unasked.upstream(answer("{}"));
    unasked.upstream(answer("{}"));
    CHECK(unasked.given_up());
    unasked.close();
  }
  Observed upgrade;
  upgrade.client(post("/v1/completions", "{}"));
  upgrade.upstream("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n");
  upgrade.upstream("anything");
  CHECK(upgrade.given_up());
  upgrade.close();
  CHECK(upgrade.counts().not_recorded[static_cast<size_t>(NotRecorded::not_http)] == 1);
}

TEST_CASE("Request fields: known ones are read, others and wrong types are passed over") {
  Exchange out;
  REQUIRE(read_request(
      R"({"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],
          "max_completion_tokens":9,"n":2,"temperature":0.5,"top_p":null,"top_k":4,"min_p":"no",
          "seed":12,"stop":["a","b"],"stream":1,"user":"someone","logit_bias":{"5":1}})",
      true, out));
  CHECK(out.prompt == R"([{"role":"user","content":[{"type":"text","text":"x"}]}])");
  CHECK(out.prompt_bytes == out.prompt.size());
  CHECK(out.max_tokens == 9);
  CHECK(out.choice_count == 2);
  CHECK(out.sampling.temperature == 0.5f);
  CHECK(out.sampling.top_p == 1.0f);
  CHECK(out.sampling.top_k == 4);
  CHECK(out.sampling.min_p == 0.0f);
  CHECK(out.has_seed);
  CHECK(out.sampling.seed == 12);
  CHECK(out.stop == std::vector<std::string>{"a", "b"});
  CHECK_FALSE(out.streamed);
  Exchange tokens;
  REQUIRE(read_request(R"({"prompt":[1, 2, 300],"stop":"."})", false, tokens));
  CHECK(tokens.prompt == "[1,2,300]");
  CHECK(tokens.stop == std::vector<std::string>{"."});
  for (const char* bad : {"", "[]", "{", "{\"prompt\":", "nonsense", "{\"a\":1}}"})
    CHECK_FALSE(read_request(bad, false, tokens));
  const std::string deep(1000, '[');
  CHECK_FALSE(read_request("{\"prompt\":" + deep, false, tokens));
}

TEST_CASE("Unicode escapes: pairs are joined, what JSON must escape stays escaped") {
  CHECK(without_unicode_escapes(R"("\u00e9\u20AC\ud83d\ude00\u0041")") ==
        "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"
        "A\"");
  CHECK(without_unicode_escapes(R"("\u0022\u005c\\u0041\n")") == R"("\"\\\\u0041\n")");
  CHECK(without_unicode_escapes(R"("\ud83dx\ude00")") == "\"\xEF\xBF\xBDx\xEF\xBF\xBD\"");
  for (const char* odd : {"\\", "\\u", "\\u12", "\\u12g4", "\\u-123", ""})
    CHECK(without_unicode_escapes(odd) == odd);
  Exchange out;
  REQUIRE(read_request(R"({"prompt":"\u0001\u001f\u0000\""})", false, out));
  CHECK(out.prompt == R"("\u0001\u001f\u0000\"")");
}

TEST_CASE("Server-sent events: line ends, comments, several lines of data, limits") {
  std::vector<std::string> got;
  const auto keep = [&](std::string_view data) {
    got.emplace_back(data);
    return true;
  };
  const std::string stream =
      ": hello\n\ndata: one\n\nevent: x\r\ndata:two\r\ndata:  three\r\n\r\ndata\r\rdata: "
      "four\r\r\n\nid: 5\n\n";
  for (size_t piece = 1; piece < 9; ++piece) {
    got.clear();
    SseReader reader(1000);
    for (size_t at = 0; at < stream.size(); at += piece)
      CHECK(reader.feed(std::string_view(stream).substr(at, piece), keep));
    CHECK(got == std::vector<std::string>{"one", "two\n three", "four"});
  }
  SseReader small(10);
  CHECK_FALSE(small.feed("data: more than ten bytes", keep));
  CHECK_FALSE(small.feed("\n\n", keep));
}

TEST_CASE("Duration histogram: exact when small, within 1.6 percent when large") {
  DurationHistogram times;
  CHECK(times.at(0.5) == 0);
  for (uint64_t i = 1; i <= 100; ++i) times.add(i);
  CHECK(times.at(0.5) == 50);
  CHECK(times.at(0.99) == 99);
  CHECK(times.at(1.0) == 100);
  for (const uint64_t value : {uint64_t{129}, uint64_t{1000003}, UINT64_MAX}) {
    DurationHistogram one;
    one.add(value);
    one.add(value);
    CHECK(one.at(0.5) == value);  // never above the largest
    one.add(UINT64_MAX);
    const auto read = static_cast<double>(one.at(0.5));
    CHECK(read >= static_cast<double>(value));
    CHECK(read <= static_cast<double>(value) * 1.016);
  }
}

}  // namespace redecode
