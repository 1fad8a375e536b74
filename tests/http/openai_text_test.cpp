// Text of tokens: what may be sent, whatever the borders of the tokens are; rendering of tokens.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "recorder/http/answer.h"
#include "recorder/http/endpoint.h"
#include "recorder/http/metrics.h"
#include "recorder/http/text_stream.h"
#include "traces/random.h"
#include "traces/utf8.h"

namespace redecode {
namespace {

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string through(TextStream stream, const std::string& bytes, RandomSequence& random,
                    bool* every_piece_is_utf8 = nullptr) {
  std::string out;
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = std::min<size_t>(1 + random.below(5), bytes.size() - at);
    const std::string piece = stream.feed(std::string_view(bytes).substr(at, length));
    if (every_piece_is_utf8 != nullptr) *every_piece_is_utf8 &= is_utf8(piece);
    out += piece;
    at += length;
  }
  return out + stream.finish();
}

std::string whole(TextStream stream, const std::string& bytes) {
  const std::string out = stream.feed(bytes);
  return out + stream.finish();
}

}  // namespace

TEST_CASE("UTF-8 stream: a character waits until it is whole") {
  Utf8Stream stream;
  CHECK(stream.feed("a\xE2") == "a");
  CHECK(stream.feed("\x82").empty());
  CHECK(stream.feed("\xAC"
                    "b") ==
        "\xE2\x82\xAC"
        "b");
  CHECK(stream.feed("\xF0\x9F\x98").empty());
  CHECK(stream.feed("\x80") == "\xF0\x9F\x98\x80");
}

TEST_CASE("UTF-8 stream: what can become no character is replaced at once, the rest at the end") {
  const std::string bad = "\xEF\xBF\xBD";
  CHECK(Utf8Stream().feed("\xFF"
                          "a") == bad + "a");
  CHECK(Utf8Stream().feed("\x80") == bad);
  CHECK(Utf8Stream().feed("\xC0\x80") == bad + bad);
  CHECK(Utf8Stream().feed("\xED\xA0") == bad + bad);
  CHECK(Utf8Stream().feed("\xF4\x90") == bad + bad);
  CHECK(Utf8Stream().feed("\xE2\x41") == bad + "A");
  Utf8Stream stream;
  CHECK(stream.feed("\xF0\x9F").empty());
  CHECK(stream.finish() == bad + bad);
  CHECK(stream.finish().empty());
}

TEST_CASE("Text stream: token borders change nothing, for 4,000 random texts and stop strings") {
  RandomSequence random(7);
  const std::vector<std::string> parts = {
      "a", "b", "ab", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xE2", "\x82", "\xFF", "c"};
  size_t stopped = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string bytes;
    const uint64_t length = random.below(24);
    for (uint64_t k = 0; k < length; ++k) bytes += parts[random.below(parts.size())];
    std::vector<std::string> stops;
    const uint64_t stop_count = random.below(4);
    for (uint64_t k = 0; k < stop_count; ++k) {
      std::string stop = parts[random.below(6)];
      const uint64_t more = random.below(3);
      for (uint64_t m = 0; m < more; ++m) stop += parts[random.below(6)];
      stops.push_back(stop);
    }
    bool utf8 = true;
    const std::string wanted = whole(TextStream(stops), bytes);
    CHECK(through(TextStream(stops), bytes, random, &utf8) == wanted);
    CHECK(utf8);
    for (const std::string& stop : stops) CHECK(wanted.find(stop) == std::string::npos);
    TextStream again(stops);
    again.feed(bytes);
    stopped += again.stopped() ? 1 : 0;
    const std::string all = whole(TextStream({}), bytes);
    CHECK(all.starts_with(wanted));
    if (stops.empty()) CHECK(all == wanted);
  }
  CHECK(stopped > 1000);
}

TEST_CASE("Stop strings: the first complete one ends the text; possible beginnings wait") {
  StopMatcher matcher({"abcd", "bc"});
  CHECK(matcher.feed("xa") == "x");
  CHECK(matcher.feed("b").empty());
  CHECK(matcher.feed("cd") == "a");
  CHECK(matcher.stopped());
  CHECK(matcher.feed("more").empty());
  CHECK(matcher.finish().empty());

  StopMatcher waits({"END"});
  CHECK(waits.feed("aEN") == "a");
  CHECK(waits.feed("x") == "ENx");
  CHECK(waits.feed("E").empty());
  CHECK(waits.finish() == "E");
  CHECK_FALSE(waits.stopped());
}

TEST_CASE("Answers: tokens that are no text are shown as bytes, minus infinity as a number") {
  CHECK(token_text("ab") == "ab");
  CHECK(token_text("\xE2\x82") == "bytes:\\xe2\\x82");
  ChoiceAnswer choice;
  choice.tokens.push_back({"a", -INFINITY, 0, {{"a", -INFINITY, 0, {}}, {"a", -1.0f, 0, {}}}});
  const std::string event = render_event({}, choice, true, true);
  CHECK(event.find(R"("token_logprobs":[-9999])") != std::string::npos);
  CHECK(event.find(R"("top_logprobs":[{"a":-9999}])") != std::string::npos);
}

TEST_CASE("Tokens are compared whole") {
  CHECK(same_token("secret", "secret"));
  CHECK_FALSE(same_token("secreT", "secret"));
  CHECK_FALSE(same_token("secret1", "secret"));
  CHECK_FALSE(same_token("secre", "secret"));
  CHECK_FALSE(same_token(std::string("secret\0", 7), "secret"));
  CHECK_FALSE(same_token("", "secret"));
}

TEST_CASE("Metrics: histograms count up, their last bucket is everything") {
  BackendMetrics backend;
  backend.recording = true;
  backend.ring_capacity = 8;
  backend.ring_records = 2;
  for (const double seconds : {0.00005, 0.003, 99.0}) backend.step_seconds.add(seconds);
  EndpointMetrics endpoint;
  endpoint.answers[{"/v1/models", 200}] = 3;
  const std::string text = render_metrics(endpoint, backend);
  const auto has = [&](const std::string& line) {
    return text.find("\n" + line + "\n") != std::string::npos;
  };
  CHECK(has("redecode_http_answers_total{path=\"/v1/models\",status=\"200\"} 3"));
  CHECK(has("redecode_step_seconds_bucket{le=\"0.005\"} 2"));
  CHECK(has("redecode_step_seconds_bucket{le=\"30\"} 2"));
  CHECK(has("redecode_step_seconds_bucket{le=\"+Inf\"} 3"));
  CHECK(has("redecode_step_seconds_count 3"));
  CHECK(has("redecode_ring_fill_ratio 0.25"));
  CHECK(has("# TYPE redecode_dropped_steps_total counter"));
}

}  // namespace redecode
