#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <string>
#include <vector>

#include "engine/batcher/batcher.h"
#include "tests/batcher/fake_engine.h"
#include "traces/error.h"
#include "traces/random.h"

using namespace redecode;

namespace {

constexpr uint32_t kVocab = 97;

Request request_of(RequestId id, std::vector<int32_t> prompt, uint32_t max_tokens) {
  Request request;
  request.id = id;
  request.session = id;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.seed = 1000 + id;
  return request;
}

std::vector<int32_t> tokens_from(RandomSequence& draws, size_t count) {
  std::vector<int32_t> tokens(count);
  for (int32_t& token : tokens) token = static_cast<int32_t>(draws.below(kVocab));
  return tokens;
}

// Prompts of which many share beginnings.
std::vector<Request> random_requests(uint64_t seed, uint32_t count) {
  RandomSequence draws(seed, 1);
  std::vector<std::vector<int32_t>> prompts;
  std::vector<Request> requests;
  for (RequestId id = 0; id < count; ++id) {
    std::vector<int32_t> prompt;
    if (!prompts.empty() && draws.below(3) != 0) {
      prompt = prompts[draws.below(prompts.size())];
      prompt.resize(1 + draws.below(prompt.size()));
    }
    const auto more = tokens_from(draws, 1 + draws.below(30));
    prompt.insert(prompt.end(), more.begin(), more.end());
    prompts.push_back(prompt);
    Request request = request_of(id, prompt, static_cast<uint32_t>(1 + draws.below(25)));
    if (draws.below(3) == 0) request.stop_token = static_cast<int32_t>(draws.below(kVocab));
    requests.push_back(std::move(request));
  }
  return requests;
}

struct Outcome {
  std::map<RequestId, FinishedRequest> finished;
  Digest digest = 0;
  BatcherCounters counters;
  uint64_t steps = 0, resumed = 0, shared_pages = 0;
  std::vector<Arrival> arrivals;
};

// Submits the requests a few at a time and runs all to the end, checking every step.
Outcome serve(const BatcherOptions& options, const std::vector<Request>& requests,
              uint64_t arrival_seed) {
  Batcher batcher(options);
  fake::Engine engine(options, kVocab);
  RandomSequence draws(arrival_seed, 2);
  Outcome outcome;
  size_t submitted = 0;
  while (submitted < requests.size() || !batcher.idle()) {
    for (uint64_t n = draws.below(4); n > 0 && submitted < requests.size(); --n)
      batcher.submit(requests[submitted++]);
    Step step;
    if (batcher.next(step)) batcher.update(engine.run(step));
    for (FinishedRequest& done : batcher.take_finished()) {
      const RequestId id = done.request.id;
      REQUIRE(outcome.finished.try_emplace(id, std::move(done)).second);
    }
    REQUIRE(engine.steps() < 100000);
  }
  REQUIRE(batcher.pages().held_pages() == 0);
  REQUIRE(batcher.pages().available_pages() == options.page_count - 1);
  outcome.digest = engine.digest();
  outcome.counters = batcher.counters();
  outcome.steps = engine.steps();
  outcome.resumed = engine.resumed();
  outcome.shared_pages = engine.shared_pages();
  outcome.arrivals = engine.arrivals();
  return outcome;
}

void require_expected(const Outcome& outcome, const std::vector<Request>& requests,
                      uint32_t max_seq_len) {
  REQUIRE(outcome.finished.size() == requests.size());
  for (const Request& request : requests) {
    const FinishedRequest& done = outcome.finished.at(request.id);
    const auto expected = fake::expected_output(request, kVocab, max_seq_len);
    INFO("request " << request.id);
    REQUIRE(done.output == expected);
    REQUIRE(done.request.prompt == request.prompt);
    const bool stopped = expected.back() == request.stop_token;
    REQUIRE(done.end == (stopped ? RequestEnd::stop : RequestEnd::length));
  }
}

BatcherOptions random_options(uint64_t seed) {
  RandomSequence draws(seed, 3);
  BatcherOptions options;
  options.page_size = static_cast<uint32_t>(1 + draws.below(9));
  options.max_seq_len = 120;
  options.page_count = 120 / options.page_size + 2 + static_cast<uint32_t>(draws.below(200));
  options.max_batch_rows = static_cast<uint32_t>(1 + draws.below(12));
  options.prefill_chunk_rows = static_cast<uint32_t>(1 + draws.below(40));
  for (uint32_t bucket = 1; bucket <= std::min(8u, options.max_batch_rows); bucket *= 2)
    options.buckets.push_back(bucket);
  options.prefix_sharing = draws.below(3) != 0;
  options.mixed = draws.below(2) != 0;
  options.vocab = kVocab;
  return options;
}

}  // namespace

TEST_CASE("random workloads finish with the expected tokens under every policy") {
  uint64_t preemptions = 0, cached = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    INFO("seed " << seed);
    const BatcherOptions options = random_options(seed);
    const auto requests = random_requests(seed, 25);
    const Outcome outcome = serve(options, requests, seed);
    require_expected(outcome, requests, options.max_seq_len);
    CHECK(outcome.counters.preemptions == outcome.resumed);
    CHECK(outcome.counters.submitted == requests.size());
    CHECK(outcome.counters.finished == requests.size());
    if (!options.prefix_sharing) CHECK(outcome.counters.cached_tokens == 0);
    CHECK(outcome.shared_pages * options.page_size == outcome.counters.cached_tokens);
    preemptions += outcome.counters.preemptions;
    cached += outcome.counters.cached_tokens;
  }
  CHECK(preemptions > 50);  // the cases do reach what they are for
  CHECK(cached > 1000);
}

TEST_CASE("the same calls build the same steps") {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto requests = random_requests(seed, 20);
    const Outcome a = serve(random_options(seed), requests, seed);
    const Outcome b = serve(random_options(seed), requests, seed);
    CHECK(a.digest == b.digest);
    CHECK(a.steps == b.steps);
    CHECK(a.digest != serve(random_options(seed + 1000), requests, seed).digest);
  }
}

TEST_CASE("few pages preempt and give the same tokens as many") {
  BatcherOptions options;
  options.page_size = 4;
  options.max_seq_len = 80;
  options.max_batch_rows = 8;
  options.prefix_sharing = false;
  const auto requests = random_requests(5, 30);
  options.page_count = 500;
  const Outcome many = serve(options, requests, 5);
  options.page_count = 25;
  const Outcome few = serve(options, requests, 5);
  CHECK(many.counters.preemptions == 0);
  CHECK(few.counters.preemptions > 0);
  require_expected(many, requests, 80);
  require_expected(few, requests, 80);
}

TEST_CASE("a prefix that is cached is not computed again, and is flagged") {
  BatcherOptions options;
  options.page_size = 4;
  options.page_count = 64;
  RandomSequence draws(11);
  const auto prompt = tokens_from(draws, 16);
  auto longer = prompt;
  longer.push_back(3);
  const std::vector<Request> requests = {request_of(0, prompt, 9), request_of(1, prompt, 2),
                                         request_of(2, longer, 2)};
  Batcher batcher(options);
  fake::Engine engine(options, kVocab);
  Step step;
  for (const Request& request : requests) {
    batcher.submit(request);
    while (batcher.next(step)) batcher.update(engine.run(step));
  }
  REQUIRE(engine.arrivals().size() == 3);
  CHECK(engine.arrivals()[0].cached_tokens == 0);
  CHECK(engine.arrivals()[1].cached_tokens == 12);  // one prompt row must run, so not all 16
  CHECK(engine.arrivals()[2].cached_tokens == 16);
  CHECK(engine.shared_pages() == 7);

  // Output is found again as well: a next round extends prompt and output.
  auto next_round = prompt;
  const auto output = fake::expected_output(requests[0], kVocab, options.max_seq_len);
  next_round.insert(next_round.end(), output.begin(), output.end());
  batcher.submit(request_of(3, next_round, 1));
  while (batcher.next(step)) batcher.update(engine.run(step));
  CHECK(engine.arrivals()[3].cached_tokens == 24);  // 16 + 9 tokens, the last one never computed
}

TEST_CASE("prefill and decode take turns, or share steps when mixed") {
  BatcherOptions options;
  options.page_size = 4;
  options.prefill_chunk_rows = 8;
  options.buckets = {2, 4};
  RandomSequence draws(3);
  const std::vector<Request> requests = {request_of(0, tokens_from(draws, 5), 20),
                                         request_of(1, tokens_from(draws, 40), 4)};
  const auto phases_of = [&](bool mixed) {
    options.mixed = mixed;
    Batcher batcher(options);
    fake::Engine engine(options, kVocab);
    for (const Request& request : requests) batcher.submit(request);
    std::string phases;
    Step step;
    while (batcher.next(step)) {
      phases += "pdm"[static_cast<int>(step.phase)];
      batcher.update(engine.run(step));
    }
    return phases;
  };
  // 3 rows of the long prompt fit beside the short one; 37 are left, 8 a step, or 7 beside a
  // decode.
  CHECK(phases_of(false) == "pdpdpdpdpdp" + std::string(14, 'd'));
  CHECK(phases_of(true) == "pmmmmmm" + std::string(13, 'd'));
}

TEST_CASE("decode steps name the smallest bucket, or none when it is too small") {
  BatcherOptions options;
  options.buckets = {2, 4};
  Batcher batcher(options);
  fake::Engine engine(options, kVocab);
  for (RequestId id = 0; id < 5; ++id) batcher.submit(request_of(id, {1, 2, 3}, 2 + id));
  std::vector<uint32_t> buckets;
  Step step;
  while (batcher.next(step)) {
    if (step.phase == Phase::decode) buckets.push_back(step.bucket);
    batcher.update(engine.run(step));
  }
  CHECK(buckets == std::vector<uint32_t>{0, 4, 4, 2, 2});
}

TEST_CASE("requests that can never run end at once and are reported") {
  BatcherOptions options;
  options.page_size = 4;
  options.page_count = 4;  // 12 tokens
  options.max_seq_len = 20;
  options.vocab = kVocab;
  Batcher batcher(options);
  batcher.submit(request_of(0, std::vector<int32_t>(20, 1), 1));  // no room for a token
  batcher.submit(request_of(1, std::vector<int32_t>(8, 1), 6));   // 13 tokens of KV
  batcher.submit(request_of(2, {}, 1));
  batcher.submit(request_of(3, {1}, 0));
  batcher.submit(request_of(4, {static_cast<int32_t>(kVocab)}, 1));
  batcher.submit(request_of(5, {-1}, 1));
  batcher.submit(request_of(6, std::vector<int32_t>(8, 1), 5));  // 12 tokens of KV: just fits
  const auto refused = batcher.take_finished();
  REQUIRE(refused.size() == 6);
  for (size_t i = 0; i < 6; ++i) {
    CHECK(refused[i].request.id == i);
    CHECK(refused[i].output.empty());
    CHECK(refused[i].end == (i < 2 ? RequestEnd::too_long : RequestEnd::failed));
  }
  fake::Engine engine(options, kVocab);
  Step step;
  while (batcher.next(step)) {
    CHECK(step.departures.empty());  // the refused were never alive
    batcher.update(engine.run(step));
  }
  const auto done = batcher.take_finished();
  REQUIRE(done.size() == 1);
  CHECK(done[0].output.size() == 5);
}

TEST_CASE("output stops at max_seq_len") {
  BatcherOptions options;
  options.max_seq_len = 10;
  const std::vector<Request> requests = {request_of(0, {1, 2, 3, 4, 5, 6}, 100)};
  const Outcome outcome = serve(options, requests, 1);
  CHECK(outcome.finished.at(0).output.size() == 4);
  CHECK(outcome.finished.at(0).end == RequestEnd::length);
}

TEST_CASE("departures are in the next step, the last ones on request") {
  BatcherOptions options;
  Batcher batcher(options);
  fake::Engine engine(options, kVocab);
  batcher.submit(request_of(0, {1, 2}, 1));
  batcher.submit(request_of(1, {1, 2}, 2));
  Step step;
  REQUIRE(batcher.next(step));
  CHECK_FALSE(step.rows.empty());
  batcher.update(engine.run(step));
  REQUIRE(batcher.next(step));
  REQUIRE(step.departures.size() == 1);
  CHECK(step.departures[0] == Departure{0, DepartureReason::finished});
  batcher.update(engine.run(step));
  const Step before = step;
  CHECK_FALSE(batcher.next(step));
  CHECK(step == before);
  CHECK(batcher.idle());
  REQUIRE(batcher.departures_only(step));
  CHECK(step.index == 2);
  CHECK(step.rows.empty());
  CHECK(step.departures == std::vector<Departure>{{1, DepartureReason::finished}});
  CHECK_FALSE(batcher.departures_only(step));
}

TEST_CASE("cancelled requests leave with what they have") {
  BatcherOptions options;
  options.max_running = 1;
  Batcher batcher(options);
  fake::Engine engine(options, kVocab);
  batcher.submit(request_of(0, {1, 2}, 10));
  batcher.submit(request_of(1, {3, 4}, 10));
  batcher.submit(request_of(2, {5, 6}, 1));
  Step step;
  for (int i = 0; i < 3; ++i) {
    REQUIRE(batcher.next(step));
    batcher.update(engine.run(step));
  }
  CHECK(batcher.running() == 1);
  CHECK(batcher.cancel(0));
  CHECK(batcher.cancel(1));
  CHECK_FALSE(batcher.cancel(0));
  CHECK_FALSE(batcher.cancel(77));
  const auto done = batcher.take_finished();
  REQUIRE(done.size() == 2);
  CHECK(done[0].output.size() == 3);
  CHECK(done[0].end == RequestEnd::cancelled);
  CHECK(done[1].output.empty());
  REQUIRE(batcher.next(step));
  CHECK(step.departures == std::vector<Departure>{{0, DepartureReason::cancelled}});
  REQUIRE(step.rows.size() == 2);
  CHECK(step.rows[0].request == 2);
}

TEST_CASE("a sampled token outside the vocabulary fails its request only") {
  BatcherOptions options;
  options.vocab = kVocab;
  Batcher batcher(options);
  fake::Engine engine(options, kVocab);
  batcher.submit(request_of(0, {1, 2}, 3));
  batcher.submit(request_of(1, {3, 4}, 3));
  Step step;
  REQUIRE(batcher.next(step));
  StepOutput output = engine.run(step);
  output.rows[0].token = 1 << 20;
  batcher.update(output);
  REQUIRE(batcher.next(step));
  CHECK(step.departures == std::vector<Departure>{{0, DepartureReason::failed}});
  CHECK(step.rows.size() == 1);
  CHECK(batcher.take_finished().at(0).end == RequestEnd::failed);
}

TEST_CASE("options without meaning are refused") {
  const auto refused = [](auto&& change) {
    BatcherOptions options;
    change(options);
    try {
      Batcher batcher(options);
    } catch (const Error& error) {
      return error.code() == ErrorCode::usage;
    }
    return false;
  };
  CHECK(refused([](BatcherOptions& o) { o.page_size = 0; }));
  CHECK(refused([](BatcherOptions& o) { o.page_count = 1; }));
  CHECK(refused([](BatcherOptions& o) { o.page_size = o.page_count = 1u << 16; }));
  CHECK(refused([](BatcherOptions& o) { o.max_batch_rows = 0; }));
  CHECK(refused([](BatcherOptions& o) { o.max_seq_len = 1; }));
  CHECK(refused([](BatcherOptions& o) { o.buckets = {2, 2}; }));
  CHECK(refused([](BatcherOptions& o) { o.buckets = {0, 2}; }));
  CHECK(refused([](BatcherOptions& o) { o.buckets = {65}; }));
  CHECK_FALSE(refused([](BatcherOptions&) {}));
}

TEST_CASE("the header's settings hold every step") {
  BatcherOptions options;
  options.max_batch_rows = 8;
  options.prefill_chunk_rows = 32;
  options.buckets = {1, 8};
  const EngineSettings settings = engine_settings(options);
  CHECK(settings.max_batch_rows == 32);
  CHECK(settings.buckets == options.buckets);
  const BatcherOptions again = batcher_options(settings);
  CHECK(again.prefill_chunk_rows == 32);
  CHECK(engine_settings(again) == settings);
}
