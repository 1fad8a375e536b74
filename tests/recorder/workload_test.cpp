#include "recorder/workload.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <set>
#include <string>
#include <vector>

#include "traces/error.h"

using namespace redecode;

namespace {

AgentOptions agent() {
  AgentOptions options;
  options.sessions = 3;
  options.rounds = 2;
  options.context_tokens = 40;
  options.vocab = 50;
  return options;
}

ArrivalOptions arrivals() {
  ArrivalOptions options;
  options.vocab = 50;
  return options;
}

std::vector<Request> poll(TrafficSource& source, StepIndex now) {
  std::vector<Request> out;
  source.poll(now, out);
  return out;
}

template <class Act>
std::string usage_error(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::usage);
    return error.message();
  }
  return "";
}

bool same_tokens(const std::vector<int32_t>& a, const std::vector<int32_t>& b, size_t count) {
  return a.size() >= count && b.size() >= count &&
         std::equal(a.begin(), a.begin() + count, b.begin());
}

}  // namespace

TEST_CASE("agent sessions share a system prompt and nothing more") {
  AgentWorkload workload(agent());
  const auto requests = poll(workload, 0);
  REQUIRE(requests.size() == 3);
  std::set<uint64_t> seeds;
  for (const Request& request : requests) {
    CHECK(request.prompt.size() == 40);
    CHECK(request.round == 0);
    CHECK(same_tokens(request.prompt, requests[0].prompt, 10));
    for (const int32_t token : request.prompt) CHECK((token >= 0 && token < 50));
    seeds.insert(request.sampling.seed);
  }
  CHECK(seeds.size() == 3);
  CHECK(requests[1].prompt != requests[0].prompt);
  CHECK(requests[1].prompt != requests[2].prompt);
  CHECK(poll(workload, 1).empty());
  CHECK(workload.next_arrival() == UINT64_MAX);
  CHECK_FALSE(workload.exhausted());
}

TEST_CASE("the next round comes after the think time and extends prompt and output") {
  AgentOptions options = agent();
  options.sessions = 1;
  options.think_steps_min = options.think_steps_max = 5;
  options.new_tokens_min = options.new_tokens_max = 7;
  AgentWorkload workload(options);
  const Request first = poll(workload, 0).at(0);
  workload.finished(first, {1, 2, 3}, RequestEnd::length, 20);
  CHECK(workload.next_arrival() == 25);
  CHECK(poll(workload, 24).empty());
  const Request second = poll(workload, 25).at(0);
  CHECK(second.id == 1);
  CHECK(second.session == 0);
  CHECK(second.round == 1);
  REQUIRE(second.prompt.size() == 50);
  CHECK(same_tokens(second.prompt, first.prompt, 40));
  CHECK(std::vector<int32_t>(second.prompt.begin() + 40, second.prompt.begin() + 43) ==
        std::vector<int32_t>{1, 2, 3});
  CHECK(second.sampling.seed != first.sampling.seed);
  workload.finished(second, {4}, RequestEnd::stop, 30);
  CHECK(workload.exhausted());
  CHECK(workload.counters().sessions_completed == 1);
}

TEST_CASE("a session ends early when a round is too long, and the next one starts") {
  AgentOptions options = agent();
  options.concurrency = 1;
  AgentWorkload workload(options);
  const auto first = poll(workload, 0);
  REQUIRE(first.size() == 1);
  CHECK(poll(workload, 1).empty());
  workload.finished(first[0], {}, RequestEnd::too_long, 1);
  CHECK(workload.next_arrival() == 0);
  const auto second = poll(workload, 1);
  REQUIRE(second.size() == 1);
  CHECK(second[0].session == 1);
  CHECK(workload.counters().sessions_cut == 1);
}

TEST_CASE("tokens of a session do not depend on when others end") {
  const auto second_rounds = [](bool reversed) {
    AgentWorkload workload(agent());
    auto requests = poll(workload, 0);
    if (reversed) std::reverse(requests.begin(), requests.end());
    StepIndex now = 1;
    for (const Request& request : requests)
      workload.finished(request, {9}, RequestEnd::length, now++);
    auto next = poll(workload, 100);
    std::sort(next.begin(), next.end(),
              [](const Request& a, const Request& b) { return a.id < b.id; });
    std::vector<std::vector<int32_t>> prompts;
    for (const Request& request : next) prompts.push_back(request.prompt);
    return prompts;
  };
  const auto forward = second_rounds(false);
  REQUIRE(forward.size() == 3);
  CHECK(forward == second_rounds(true));
}

TEST_CASE("agent options without meaning are refused by name") {
  const auto refused = [](auto&& change) {
    AgentOptions options = agent();
    change(options);
    return usage_error([&] { AgentWorkload workload(options); });
  };
  CHECK(refused([](AgentOptions&) {}).empty());
  CHECK(refused([](AgentOptions& o) { o.vocab = 0; }).find("vocab") != std::string::npos);
  CHECK(refused([](AgentOptions& o) { o.rounds = 0; }).find("rounds") != std::string::npos);
  CHECK(refused([](AgentOptions& o) { o.sessions = o.rounds = 1u << 16; }).find("32 bits") !=
        std::string::npos);
  CHECK(refused([](AgentOptions& o) { o.new_tokens_min = 99; }).find("new_min") !=
        std::string::npos);
  CHECK(refused([](AgentOptions& o) { o.system_percent = 101; }).find("system_percent") !=
        std::string::npos);
  CHECK(refused([](AgentOptions& o) {
          o.arrivals = {1, 2};
        }).find("fewer arrivals") != std::string::npos);
  CHECK(refused([](AgentOptions& o) {
          o.arrivals = {3, 2, 4};
        }).find("ascend") != std::string::npos);
  CHECK(refused([](AgentOptions& o) { o.context_tokens = 1u << 25; }).find("16,777,216") !=
        std::string::npos);
  CHECK(refused([](AgentOptions& o) { o.sampling.top_p = 0; }).find("top_p") != std::string::npos);
}

TEST_CASE("arrivals come in order of time, at the step their time falls into") {
  ArrivalOptions options = arrivals();
  options.step_us = 1000;
  options.scale = 4;
  ArrivalWorkload workload(
      {{9000, 40, 8, {}}, {5000, 3, 1, {}}, {5999, 80, 400, {}}, {1'000'000, 8, 8, {}}}, options);
  CHECK(workload.next_arrival() == 0);
  const auto first = poll(workload, 0);
  REQUIRE(first.size() == 2);
  CHECK(first[0].prompt.size() == 1);
  CHECK(first[0].max_tokens == 1);
  CHECK(first[1].prompt.size() == 20);
  CHECK(first[1].max_tokens == 100);
  CHECK(workload.next_arrival() == 4);
  CHECK(poll(workload, 3).empty());
  const auto second = poll(workload, 4);
  REQUIRE(second.size() == 1);
  CHECK(second[0].id == 2);
  CHECK_FALSE(workload.exhausted());
  CHECK(workload.next_arrival() == 995);
  CHECK(poll(workload, 1'000'000).size() == 1);
  CHECK(workload.exhausted());
  CHECK(workload.next_arrival() == UINT64_MAX);
}

TEST_CASE("equal block ids make equal tokens, other ids and no ids other ones") {
  ArrivalOptions options = arrivals();
  options.scale = 8;  // blocks of 64 tokens
  ArrivalWorkload workload({{0, 1500, 1, {1, 2, 3}},
                            {0, 1500, 1, {1, 2, 4}},
                            {0, 1500, 1, {2, 1, 3}},
                            {0, 1500, 1, {}},
                            {0, 1500, 1, {}}},
                           options);
  const auto r = poll(workload, 0);
  REQUIRE(r.size() == 5);
  CHECK(same_tokens(r[0].prompt, r[1].prompt, 128));
  CHECK_FALSE(same_tokens(r[0].prompt, r[1].prompt, 187));
  CHECK(std::equal(r[0].prompt.begin(), r[0].prompt.begin() + 64, r[2].prompt.begin() + 64));
  CHECK_FALSE(same_tokens(r[0].prompt, r[2].prompt, 64));
  CHECK_FALSE(same_tokens(r[3].prompt, r[4].prompt, 64));
}

TEST_CASE("caps, row limits and refusals of arrival workloads") {
  ArrivalOptions options = arrivals();
  options.prompt_cap = 5;
  options.output_cap = 2;
  options.rows = 1;
  ArrivalWorkload workload({{0, 100, 100, {}}, {0, 100, 100, {}}}, options);
  const auto requests = poll(workload, 0);
  REQUIRE(requests.size() == 1);
  CHECK(requests[0].prompt.size() == 5);
  CHECK(requests[0].max_tokens == 2);
  CHECK(workload.exhausted());

  const std::vector<ArrivalRow> one = {{0, 1, 1, {}}};
  options.scale = 3;
  CHECK(usage_error([&] { ArrivalWorkload w(one, options); }).find("512") != std::string::npos);
  options.scale = 1;
  CHECK_FALSE(usage_error([&] { ArrivalWorkload w({}, options); }).empty());
  options.step_us = 0;
  CHECK_FALSE(usage_error([&] { ArrivalWorkload w(one, options); }).empty());
  options = arrivals();
  try {
    ArrivalWorkload w({{0, UINT32_MAX, 1, {}}}, options);
    FAIL("it took a prompt of 2^32 tokens");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::limit);
  }
}

TEST_CASE("a workload is parsed from text and described so that it can be parsed again") {
  const WorkloadSpec spec = parse_workload(
      "agent:sessions=7,rounds=2 ctx=99, temperature=0.7,stop=2 seed=18446744073709551615");
  CHECK(spec.kind == WorkloadKind::agent);
  CHECK(spec.agent.sessions == 7);
  CHECK(spec.agent.rounds == 2);
  CHECK(spec.agent.context_tokens == 99);
  CHECK(spec.agent.sampling.temperature == 0.7f);
  CHECK(spec.agent.stop_token == 2);
  CHECK(spec.agent.seed == UINT64_MAX);
  CHECK(spec.agent.max_tokens == AgentOptions().max_tokens);
  CHECK(describe(spec) ==
        "agent sessions=7 rounds=2 ctx=99 system_percent=25 new_min=24 new_max=56 max_tokens=48 "
        "concurrency=0 think_min=0 think_max=0 vocab=0 stop=2 seed=18446744073709551615 "
        "temperature=0.7 top_k=0 top_p=1 min_p=0");
  CHECK(describe(parse_workload(describe(spec))) == describe(spec));

  const WorkloadSpec mooncake = parse_workload("mooncake scale=16 rows=100");
  CHECK(mooncake.needs_rows());
  CHECK(mooncake.arrival.scale == 16);
  CHECK(describe(parse_workload(describe(mooncake))) == describe(mooncake));
  CHECK(parse_workload("azure").kind == WorkloadKind::azure);
}

TEST_CASE("text that names no workload says what there is") {
  const auto error = [](const char* text) { return usage_error([&] { parse_workload(text); }); };
  CHECK(error("").find("agent, mooncake, azure and requests") != std::string::npos);
  CHECK(error("agents").find("agent, mooncake, azure and requests") != std::string::npos);
  CHECK(error("agent scale=2").find("it has sessions, rounds") != std::string::npos);
  CHECK(error("azure sessions=2").find("it has scale") != std::string::npos);
  CHECK(error("agent sessions").find("key=value") != std::string::npos);
  CHECK(error("agent rounds=1 rounds=1").find("twice") != std::string::npos);
  for (const char* text : {"agent sessions=-1", "agent sessions=", "agent sessions=4294967296",
                           "agent sessions=1x", "agent temperature=nan", "agent temperature=inf"})
    CHECK(error(text).find("is no value for") != std::string::npos);
}

TEST_CASE("make_workload builds the kind that the spec names") {
  WorkloadSpec spec = parse_workload("agent sessions=2");
  CHECK(usage_error([&] { make_workload(spec); }).find("vocab") != std::string::npos);
  spec.set_vocab(10);
  CHECK(poll(*make_workload(spec), 0).size() == 2);
  spec.kind = WorkloadKind::azure;
  CHECK(poll(*make_workload(spec, {{0, 4, 1, {}}}), 0).size() == 1);
}
