#include "recorder/http/load.h"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <map>
#include <set>

#include "recorder/http/load_body.h"
#include "recorder/http/observe_json.h"
#include "tests/http/proxy_net.h"
#include "traces/digest.h"
#include "traces/error.h"
#include "traces/json_writer.h"

namespace redecode {
namespace {

using namespace http_test;

// The answer of the fake server: a function of the prompt.
std::string said(const std::string& prompt_json) {
  return "answer " + digest_hex(digest_text(prompt_json));
}

// A server of one endpoint; what it does with a request is decided by `status` and `spoil`.
class FakeServer {
 public:
  FakeServer() : server_([this](Socket& socket) { serve(socket); }) {}
  uint16_t port() const { return server_.port(); }

  std::function<std::string(const Exchange&)> text = [](const Exchange& e) {
    return said(e.prompt);
  };
  std::function<std::string(uint64_t)> head = [](uint64_t) { return std::string(); };
  std::atomic<uint64_t> requests{0}, failed_sends{0};
  std::mutex mutex;
  std::multiset<std::string> prompts;  // as JSON
  std::set<std::string> authorizations;

 private:
  static std::string stream(const std::string& words) {
    std::string out(kStreamHead);
    for (size_t at = 0; at < words.size(); at += 4)
      out +=
          chunk("data: {\"choices\":[{\"index\":0,\"text\":\"" + words.substr(at, 4) + "\"}]}\n\n");
    return out +
           chunk(
               "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\n") +
           chunk(
               "data: "
               "{\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":6}}\n\n") +
           chunk("data: [DONE]\n\n") + chunk("");
  }

  void serve(Socket& socket) {
    std::string bytes;
    for (;;) {
      size_t end = 0;
      while ((end = bytes.find("\r\n\r\n")) == std::string::npos) {
        const std::string more = socket.receive();
        if (more.empty()) return;
        bytes += more;
      }
      const std::string fields = bytes.substr(0, end);
      const size_t length_at = fields.find("Content-Length: ");
      const size_t length = length_at == std::string::npos
                                ? 0
                                : static_cast<size_t>(std::atoll(fields.c_str() + length_at + 16));
      while (bytes.size() < end + 4 + length) bytes += socket.receive();
      const std::string body = bytes.substr(end + 4, length);
      bytes.erase(0, end + 4 + length);
      if (!reply(socket, fields, body)) return;
    }
  }

  bool reply(Socket& socket, const std::string& fields, const std::string& body) {
    if (fields.starts_with("GET /v1/models"))
      return socket.send(answer(R"({"data":[{"id":"served"}]})"));
    Exchange exchange;
    if (!read_request(body, false, exchange)) return socket.send(answer("{}", "400 Bad Request"));
    {
      const std::lock_guard lock(mutex);
      prompts.insert(exchange.prompt);
      const size_t key = fields.find("Authorization: ");
      if (key != std::string::npos)
        authorizations.insert(fields.substr(key + 15, fields.find('\r', key) - key - 15));
    }
    const std::string own = head(requests++);
    if (own == "close") return false;
    if (!own.empty()) return socket.send(own);
    const bool sent = socket.send(
        exchange.streamed ? stream(text(exchange))
                          : answer("{\"choices\":[{\"index\":0,\"text\":\"" + text(exchange) +
                                   "\",\"finish_reason\":\"stop\"}]}"));
    if (!sent) ++failed_sends;
    return sent;
  }

  ScriptedServer server_;
};

AgentLoadOptions small_agent(uint32_t sessions = 12, uint32_t rounds = 3) {
  AgentLoadOptions agent;
  agent.sessions = sessions;
  agent.rounds = rounds;
  return agent;
}

LoadReport load(const FakeServer& server, const LoadPlan& plan, LoadOptions options = {}) {
  options.port = server.port();
  return run_load(
      options, plan, [] { return false; }, [](uint64_t, uint64_t) {});
}

}  // namespace

TEST_CASE("Agent load: equal seeds give equal prompts, sessions share their beginning") {
  AgentLoadOptions agent = small_agent();
  agent.context_tokens = 100;
  const auto plan = make_agent_load(agent), again = make_agent_load(agent);
  agent.ask.seed = 2;
  const auto other = make_agent_load(agent);
  const LoadRequest first = plan->request(3, 0, "", "m"), next = plan->request(3, 1, "so far", "m");
  CHECK(first.prompt.size() == 100);
  CHECK(first.body == again->request(3, 0, "", "m").body);
  CHECK(first.prompt != other->request(3, 0, "", "m").prompt);
  CHECK(plan->request(4, 0, "", "m").prompt.substr(0, 25) == first.prompt.substr(0, 25));
  CHECK(plan->request(4, 0, "", "m").prompt != first.prompt);
  CHECK(next.prompt.starts_with("so far"));
  CHECK(next.prompt.size() >= 6 + 24);
  CHECK(next.prompt.size() <= 6 + 56);
  CHECK(first.body.find("\"model\":\"m\"") != std::string::npos);
  CHECK_THROWS_AS(make_agent_load(small_agent(0)), Error);
}

TEST_CASE("Load: sessions and rounds are counted, timed and continue their answers") {
  for (const bool stream : {true, false}) {
    FakeServer server;
    AgentLoadOptions agent = small_agent();
    agent.ask.stream = stream;
    LoadOptions options;
    options.keep_answers = true;
    options.concurrency = 4;
    options.api_key = "key";
    const auto plan = make_agent_load(agent);
    const LoadReport report = load(server, *plan, options);
    CHECK(report.count(LoadEnd::ok) == 36);
    CHECK(report.requests() == 36);
    CHECK(report.chains_completed == 12);
    CHECK(report.model == "served");
    CHECK(report.whole_us.count() == 36);
    CHECK(report.first_token_us.count() == (stream ? 36u : 0u));
    CHECK(report.output_tokens == (stream ? 36u * 6 : 0u));
    CHECK(report.answers.size() == 36);
    CHECK(server.authorizations == std::set<std::string>{"Bearer key"});
    // Session 5 as it must have gone.
    std::string text;
    for (uint32_t round = 0; round < 3; ++round) {
      const LoadRequest request = plan->request(5, round, text, "");
      CHECK(server.prompts.count(quoted_json(request.prompt)) == 1);
      text = request.prompt + said(quoted_json(request.prompt));
    }
  }
}

TEST_CASE("Load: HTTP errors, lost connections, timeouts and nonsense are told apart") {
  FakeServer server;
  server.head = [](uint64_t number) {
    if (number == 0) return answer("{\"error\":1}", "429 Too Many Requests");
    if (number == 1) return answer("{\"error\":1}", "500 Internal Server Error");
    if (number == 2) return std::string("close");
    if (number == 3) return std::string(kStreamHead) + chunk("data: nonsense\n\n") + chunk("");
    if (number == 4) return std::string(kStreamHead);  // and no more
    if (number == 5) return answer(std::string(100000, ' '));
    return std::string();
  };
  LoadOptions options;
  options.concurrency = 1;
  options.timeout_ms = 300;
  options.answer_bytes = 50000;
  const LoadReport report = load(server, *make_agent_load(small_agent(8, 1)), options);
  CHECK(report.count(LoadEnd::ok) == 2);
  CHECK(report.http_errors == std::map<uint32_t, uint64_t>{{429, 1}, {500, 1}});
  CHECK(report.count(LoadEnd::no_answer) == 1);
  CHECK(report.count(LoadEnd::malformed) == 1);
  CHECK(report.count(LoadEnd::timed_out) == 1);
  CHECK(report.count(LoadEnd::too_large) == 1);
  CHECK(report.chains_cut == 6);
  CHECK(report.first_trouble.starts_with("HTTP error: status 429"));
}

TEST_CASE("Load: nobody listening is no answer") {
  LoadOptions options;
  options.port = closed_port();
  const LoadReport report = run_load(
      options, *make_agent_load(small_agent(3, 2)), [] { return false; },
      [](uint64_t, uint64_t) {});
  CHECK(report.count(LoadEnd::no_answer) == 3);
  CHECK(report.chains_cut == 3);
}

TEST_CASE("Load: disconnects follow the seed; slow readers get whole answers") {
  LoadOptions options;
  options.disconnect_percent = 50;
  options.concurrency = 8;
  uint64_t dropped[2] = {};
  for (uint64_t& count : dropped) {
    FakeServer server;
    // Long enough that every drop comes before the end.
    server.text = [](const Exchange&) { return std::string(8000, 'x'); };
    const LoadReport report = load(server, *make_agent_load(small_agent(40, 1)), options);
    count = report.count(LoadEnd::dropped);
    CHECK(report.count(LoadEnd::ok) + count == 40);
  }
  CHECK(dropped[0] == dropped[1]);
  CHECK(dropped[0] > 5);
  CHECK(dropped[0] < 35);
  options = {};
  options.slow_reader_bytes_per_s = 100000;
  options.keep_answers = true;
  FakeServer server;
  const auto plan = make_agent_load(small_agent(4, 1));
  const LoadReport report = load(server, *plan, options);
  REQUIRE(report.answers.size() == 4);
  for (const LoadAnswer& answered : report.answers)
    CHECK(answered.text == said(quoted_json(plan->request(answered.session, 0, "", "").prompt)));
}

TEST_CASE("Load: how an answer arrives does not change which requests are dropped") {
  AgentLoadOptions agent = small_agent(24, 1);
  agent.ask.stream = false;
  const auto plan = make_agent_load(agent);
  LoadOptions options;
  options.disconnect_percent = 50;
  options.keep_answers = true;
  options.concurrency = 24;
  std::set<uint32_t> whole[2];
  for (const size_t slow : {size_t{0}, size_t{1}}) {
    FakeServer server;
    server.text = [](const Exchange&) { return std::string(5000, 'x'); };
    options.slow_reader_bytes_per_s = slow * 10000;
    const LoadReport report = load(server, *plan, options);
    for (const LoadAnswer& answered : report.answers) whole[slow].insert(answered.session);
    CHECK(report.count(LoadEnd::dropped) == 24 - whole[slow].size());
  }
  CHECK(whole[0] == whole[1]);
  CHECK(whole[0].size() > 4);
  CHECK(whole[0].size() < 20);
}

TEST_CASE("Load: an arrival trace is sent in its order, with its lengths and shared prefixes") {
  std::vector<Exchange> rows(3);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].session = static_cast<SessionId>(i);
    rows[i].start_us = 5000000 - i * 1000;
    rows[i].prompt_tokens = 1024;
    rows[i].block_hashes = {7, i};
    rows[i].max_tokens = 10;
    rows[i].path = "/v1/completions";
    rows[i].end = ExchangeEnd::not_sent;
  }
  ArrivalLoadOptions arrivals;
  arrivals.scale = 2;
  const auto plan = make_arrival_load(rows, arrivals);
  CHECK(plan->chains() == 3);
  CHECK(plan->session(0) == 2);
  CHECK(plan->due_us(0) == 0);
  CHECK(plan->due_us(2) == 2000);
  Exchange first, second;
  REQUIRE(read_request(plan->request(0, 0, "", "m").body, false, first));
  REQUIRE(read_request(plan->request(1, 0, "", "m").body, false, second));
  CHECK(first.max_tokens == 10);
  CHECK(first.model == "m");
  CHECK(first.prompt.substr(0, 250) == second.prompt.substr(0, 250));
  CHECK(first.prompt != second.prompt);
  FakeServer server;
  LoadOptions options;
  options.time_true = true;
  options.speed = 2;
  const LoadReport report = load(server, *plan, options);
  CHECK(report.count(LoadEnd::ok) == 3);
  CHECK(report.late_us.count() == 3);
}

TEST_CASE("Load: recorded exchanges are asked again as they were") {
  Exchange exchange;
  exchange.path = "/v1/chat/completions";
  exchange.prompt = R"([{"role":"user","content":"hi"}])";
  exchange.sampling.temperature = 0.25f;
  exchange.sampling.seed = 9;
  exchange.has_seed = true;
  exchange.stop = {"x"};
  exchange.choice_count = 2;
  exchange.model = "recorded";
  const LoadRequest request = make_arrival_load({exchange}, {})->request(0, 0, "", "listed");
  CHECK(request.path == "/v1/chat/completions");
  Exchange asked;
  REQUIRE(read_request(request.body, true, asked));
  CHECK(asked.prompt == exchange.prompt);
  CHECK(asked.sampling.temperature == 0.25f);
  CHECK(asked.sampling.seed == 9);
  CHECK(asked.stop == exchange.stop);
  CHECK(asked.choice_count == 2);
  CHECK(asked.model == "recorded");
}

TEST_CASE("Answers: a planted difference is found, with the session and round where it is") {
  const auto plan = make_agent_load(small_agent());
  LoadOptions options;
  options.keep_answers = true;
  FakeServer good, bad;
  const LoadReport expected = load(good, *plan, options);
  // One prompt of session 4, round 1, is answered differently.
  const std::string opening = plan->request(4, 0, "", "").prompt;
  const std::string second =
      quoted_json(plan->request(4, 1, opening + said(quoted_json(opening)), "").prompt);
  bad.text = [&](const Exchange& e) { return e.prompt == second ? "corrupt" : said(e.prompt); };
  const LoadReport got = load(bad, *plan, options);
  const auto saved = parse_answers(answers_json(expected.answers), "good.json");
  CHECK(saved.size() == 36);
  const AnswerComparison same = compare_answers(saved, expected.answers);
  CHECK(same.sessions == 12);
  CHECK(same.differing == 0);
  const AnswerComparison found = compare_answers(saved, got.answers);
  CHECK(found.sessions == 12);
  CHECK(found.differing == 1);
  CHECK(found.first_session == 4);
  CHECK(found.first_round == 1);
  AnswerComparison quoted{60, 9, 0, 12, 2};
  CHECK(comparison_text(quoted, 0.071, 0.266) ==
        "9 of 60 sessions (15.0 %, 7.1-26.6 %) gave another answer, first: session 12 round 2");
}

TEST_CASE("Answers: files read back, damaged ones are refused, missing answers are said") {
  const std::vector<LoadAnswer> answers = {
      {1, 0, "\xF0\x9F\x98\x80 \"quoted\"\n"}, {0, 1, ""}, {0, 0, "bad \xFF byte"}};
  const auto back = parse_answers(answers_json(answers), "a.json");
  REQUIRE(back.size() == 3);
  CHECK(back[0].text == "bad \xEF\xBF\xBD byte");
  CHECK(back[2] == answers[0]);
  CHECK(parse_answers("[]", "a.json").empty());
  for (const char* bad : {"", "{}", "[1]", "[{\"session\":-1}]",
                          "[{\"session\":0,\"round\":0,"
                          "\"digest\":\"0000000000000000\",\"text\":\"x\"}]"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_answers(bad, "a.json"), Error);
  }
  const AnswerComparison missing = compare_answers(back, {{1, 0, "other"}, {0, 0, "x"}});
  CHECK(missing.sessions == 2);  // both differ where they can be compared
  CHECK(missing.differing == 2);
  const AnswerComparison none = compare_answers(back, {});
  CHECK(none.sessions == 0);
  CHECK(none.not_compared == 2);
}

TEST_CASE("Load through the proxy: nothing is lost, answers are recorded") {
  FakeServer server;
  RunningProxy proxy(server.port());
  LoadOptions options;
  options.port = proxy.port();
  options.concurrency = 16;
  options.keep_answers = true;
  const LoadReport report = run_load(
      options, *make_agent_load(small_agent(50, 3)), [] { return false; },
      [](uint64_t, uint64_t) {});
  CHECK(report.count(LoadEnd::ok) == 150);
  proxy.stop();
  CHECK(proxy.kept.all.size() == 150);
  for (const Exchange& exchange : proxy.kept.all) {
    CHECK(exchange.end == ExchangeEnd::complete);
    REQUIRE(exchange.choices.size() == 1);
    CHECK(exchange.choices[0].text == said(exchange.prompt));
    CHECK(exchange.output_tokens == 6);
  }
}

TEST_CASE("Answers: a book tells right, wrong and unknown ones, whole and in part") {
  const AnswerBook book({{0, 0, "right"}, {0, 1, ""}});
  AnswerChecks checks;
  book.check({0, 0, "right"}, true, checks);
  book.check({0, 0, "rig"}, false, checks);
  book.check({0, 1, ""}, false, checks);
  CHECK(checks ==
        AnswerChecks{.whole = 1, .parts = 2, .wrong = 0, .unknown = 0, .first_wrong = {}});
  book.check({0, 0, "righ"}, true, checks);
  CHECK(checks.wrong == 1);
  CHECK(checks.first_wrong == "session 0 round 0: 'righ' in place of 'right'");
  book.check({0, 0, "rigt"}, false, checks);
  book.check({0, 1, "x"}, false, checks);
  book.check({1, 0, "right"}, true, checks);
  CHECK(checks.whole == 2);
  CHECK(checks.parts == 4);
  CHECK(checks.wrong == 3);
  CHECK(checks.unknown == 1);
  CHECK(checks.first_wrong == "session 0 round 0: 'righ' in place of 'right'");
}

TEST_CASE("Load: repeated answers are checked, and a mixed-up one is found") {
  FakeServer server;
  LoadOptions options;
  options.port = server.port();
  options.concurrency = 8;
  options.keep_answers = true;
  const auto plan = make_agent_load(small_agent(20, 2));
  const auto run = [&] {
    return run_load(
        options, *plan, [] { return false; }, [](uint64_t, uint64_t) {});
  };
  const LoadReport first = run();
  REQUIRE(first.answers.size() == 40);
  const AnswerBook book(first.answers);
  options.keep_answers = false;
  options.book = &book;
  options.repeat_ms = 300;
  options.disconnect_percent = 30;
  const LoadReport again = run();
  CHECK(again.requests() > 40);
  CHECK(again.checks.whole == again.count(LoadEnd::ok));
  CHECK(again.checks.parts > 0);
  CHECK(again.checks.wrong == 0);
  CHECK(again.checks.unknown == 0);
  CHECK(again.answers.empty());
  std::atomic<uint64_t> number{0};
  server.text = [&](const Exchange& e) {
    return ++number == 30 ? said("another prompt") : said(e.prompt);
  };
  options.disconnect_percent = 0;
  options.repeat_ms = 0;
  const LoadReport spoilt = run();
  CHECK(spoilt.checks.wrong >= 1);
  CHECK_FALSE(spoilt.checks.first_wrong.empty());
}

TEST_CASE("Load: a thousand hostile streaming clients through the proxy", "[slow]") {
  FakeServer server;
  RunningProxy proxy(server.port());
  LoadOptions options;
  options.port = proxy.port();
  options.concurrency = 1000;
  options.disconnect_percent = 20;
  options.slow_reader_bytes_per_s = 20000;
  const LoadReport report = run_load(
      options, *make_agent_load(small_agent(3000, 2)), [] { return false; },
      [](uint64_t, uint64_t) {});
  CHECK(report.count(LoadEnd::ok) + report.count(LoadEnd::dropped) == report.requests());
  CHECK(report.count(LoadEnd::dropped) > 500);
  proxy.stop();
  CHECK(proxy.gauges.buffered_bytes.load() == 0);
  CHECK(proxy.gauges.connections.load() == 0);
  CHECK(proxy.summary.observed.counts.not_recorded_total() == 0);
  uint64_t complete = 0, other_text = 0;
  for (const Exchange& exchange : proxy.kept.all) {
    const std::string whole = said(exchange.prompt);
    const std::string text = exchange.choices.empty() ? "" : exchange.choices[0].text;
    if (exchange.end == ExchangeEnd::complete) {
      ++complete;
      other_text += text != whole;
    } else {
      other_text += !whole.starts_with(text);
    }
  }
  CHECK(other_text == 0);
  CHECK(complete >= report.count(LoadEnd::ok));
  CHECK(proxy.kept.all.size() <= report.requests());
}

}  // namespace redecode
