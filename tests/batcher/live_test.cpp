#include <catch2/catch_test_macros.hpp>
#include <map>
#include <set>
#include <vector>

#include "engine/batcher/live.h"
#include "recorder/workload.h"
#include "tests/batcher/fake_engine.h"
#include "traces/error.h"

using namespace redecode;

namespace {

constexpr uint32_t kVocab = 211;

// Passes everything on and keeps what it saw.
class Observed final : public TrafficSource {
 public:
  struct Ended {
    Request request;
    std::vector<int32_t> output;
    RequestEnd end;
    StepIndex now;
  };
  explicit Observed(TrafficSource& inner) : inner_(inner) {}
  void poll(StepIndex now, std::vector<Request>& out) override {
    inner_.poll(now, out);
    for (const Request& request : out) sent[request.id] = now;
  }
  void finished(const Request& request, const std::vector<int32_t>& output, RequestEnd end,
                StepIndex now) override {
    ended.push_back({request, output, end, now});
    inner_.finished(request, output, end, now);
  }
  StepIndex next_arrival() const override { return inner_.next_arrival(); }
  bool exhausted() const override { return inner_.exhausted(); }

  std::map<RequestId, StepIndex> sent;
  std::vector<Ended> ended;

 private:
  TrafficSource& inner_;
};

class CountingSink final : public StepSink {
 public:
  void scheduled(const Step& step) override { scheduled_steps.push_back(step); }
  void produced(const StepOutput& output) override { produced_steps.push_back(output.step); }
  std::vector<Step> scheduled_steps;
  std::vector<StepIndex> produced_steps;
};

BatcherOptions small_options() {
  BatcherOptions options;
  options.page_size = 8;
  options.page_count = 400;
  options.max_batch_rows = 16;
  options.prefill_chunk_rows = 64;
  options.max_seq_len = 600;
  options.buckets = {1, 2, 4, 8, 16};
  options.vocab = kVocab;
  return options;
}

AgentOptions small_agent() {
  AgentOptions options;
  options.sessions = 12;
  options.rounds = 4;
  options.context_tokens = 80;
  options.new_tokens_min = 3;
  options.new_tokens_max = 20;
  options.max_tokens = 12;
  options.concurrency = 5;
  options.vocab = kVocab;
  options.seed = 9;
  return options;
}

struct Served {
  LiveResult result;
  std::vector<Observed::Ended> ended;
  std::map<RequestId, StepIndex> sent;
  Digest digest = 0;
  std::vector<Arrival> arrivals;
  BatcherCounters counters;
};

Served serve(TrafficSource& source, const BatcherOptions& options, const LiveOptions& live = {}) {
  Observed traffic(source);
  Batcher batcher(options);
  fake::Engine engine(options, kVocab);
  CountingSink sink;
  StepSink* const sinks[] = {&sink};
  Served served;
  served.result = run_live(
      traffic, batcher, [&](const Step& step) { return engine.run(step); }, sinks, live);
  REQUIRE(sink.produced_steps.size() == engine.steps());
  REQUIRE(sink.scheduled_steps.size() == engine.steps() + live.final_departures);
  StepValidator validator(fake::Engine::model(kVocab), engine_settings(options), "");
  for (const Step& step : sink.scheduled_steps) validator.add(step);
  served.ended = std::move(traffic.ended);
  served.sent = std::move(traffic.sent);
  served.digest = engine.digest();
  served.arrivals = engine.arrivals();
  served.counters = batcher.counters();
  if (served.result.end == LiveEnd::exhausted) REQUIRE(batcher.pages().held_pages() == 0);
  return served;
}

class Stuck final : public TrafficSource {
 public:
  explicit Stuck(StepIndex next) : next_(next) {}
  void poll(StepIndex, std::vector<Request>&) override {}
  void finished(const Request&, const std::vector<int32_t>&, RequestEnd, StepIndex) override {}
  StepIndex next_arrival() const override { return next_; }
  bool exhausted() const override { return false; }

 private:
  StepIndex next_;
};

}  // namespace

TEST_CASE("agent sessions run to the end, each round extending the one before") {
  AgentWorkload workload(small_agent());
  const Served served = serve(workload, small_options());
  CHECK(served.result.end == LiveEnd::exhausted);
  CHECK(served.result.totals.requests_finished == 48);
  CHECK(served.result.totals.output_tokens == 48 * 12);
  CHECK(served.result.requests_left == 0);
  CHECK(workload.counters().sessions_completed == 12);

  std::map<RequestId, Observed::Ended> by_id;
  for (const auto& done : served.ended) by_id.emplace(done.request.id, done);
  REQUIRE(by_id.size() == 48);
  for (const auto& [id, done] : by_id) {
    CHECK(done.output == fake::expected_output(done.request, kVocab, 600));
    if (done.request.round == 0) continue;
    auto before = by_id.at(id - 1).request.prompt;
    const auto& output = by_id.at(id - 1).output;
    before.insert(before.end(), output.begin(), output.end());
    REQUIRE(done.request.prompt.size() >= before.size() + 3);
    REQUIRE(done.request.prompt.size() <= before.size() + 20);
    REQUIRE(std::equal(before.begin(), before.end(), done.request.prompt.begin()));
  }
}

TEST_CASE("agent rounds find their earlier rounds and the system prompt in the cache") {
  AgentWorkload workload(small_agent());
  const Served served = serve(workload, small_options());
  for (const Arrival& arrival : served.arrivals)
    if (arrival.round > 0) CHECK(arrival.cached_tokens >= 80);
  uint32_t first_rounds_with_hits = 0;
  for (const Arrival& arrival : served.arrivals)
    first_rounds_with_hits += arrival.round == 0 && arrival.cached_tokens >= 16;
  CHECK(first_rounds_with_hits >= 7);  // all but those of the first batch
}

TEST_CASE("sharing, chunking, mixing and page counts do not change an agent's tokens") {
  std::map<RequestId, std::vector<int32_t>> reference;
  std::set<Digest> schedules;
  for (int variant = 0; variant < 6; ++variant) {
    BatcherOptions options = small_options();
    if (variant == 1) options.prefix_sharing = false;
    if (variant == 2) options.prefill_chunk_rows = 5;
    if (variant == 3) options.mixed = true;
    if (variant == 4) options.page_count = 45;
    if (variant == 5) options.page_size = 3;
    AgentWorkload workload(small_agent());
    const Served served = serve(workload, options);
    schedules.insert(served.digest);
    if (variant == 4) CHECK(served.counters.preemptions > 0);
    std::map<RequestId, std::vector<int32_t>> outputs;
    for (const auto& done : served.ended) outputs[done.request.id] = done.output;
    if (variant == 0) reference = outputs;
    CHECK(outputs == reference);
  }
  CHECK(schedules.size() == 6);
}

TEST_CASE("the same workload twice gives the same steps; another seed others") {
  const auto digest_of = [](uint64_t seed) {
    AgentOptions options = small_agent();
    options.seed = seed;
    AgentWorkload workload(options);
    return serve(workload, small_options()).digest;
  };
  CHECK(digest_of(1) == digest_of(1));
  CHECK(digest_of(1) != digest_of(2));
}

TEST_CASE("at most `concurrency` sessions are open at once") {
  AgentOptions options = small_agent();
  options.concurrency = 3;
  AgentWorkload workload(options);
  const Served served = serve(workload, small_options());
  std::map<SessionId, std::pair<StepIndex, StepIndex>> spans;
  for (const auto& done : served.ended) {
    auto [it, fresh] = spans.try_emplace(done.request.session, served.sent.at(done.request.id), 0);
    it->second.first = std::min(it->second.first, served.sent.at(done.request.id));
    it->second.second = std::max(it->second.second, done.now);
  }
  REQUIRE(spans.size() == 12);
  size_t most = 0;
  for (const auto& [session, span] : spans) {
    size_t open = 0;
    for (const auto& [other, other_span] : spans)
      open += other_span.first <= span.first && span.first < other_span.second;
    most = std::max(most, open);
  }
  CHECK(most == 3);
}

TEST_CASE("an idle engine skips ahead to the next arrival") {
  AgentOptions options = small_agent();
  options.sessions = 3;
  options.rounds = 1;
  options.arrivals = {10, 1000000, 2000000};
  AgentWorkload workload(options);
  const Served served = serve(workload, small_options());
  CHECK(served.sent.at(0) == 10);
  CHECK(served.sent.at(1) == 1000000);
  CHECK(served.sent.at(2) == 2000000);
  CHECK(served.result.totals.steps < 100);
  CHECK(served.result.totals.now >= 2000000);
}

TEST_CASE("a session whose prompt outgrows the engine is cut and reported") {
  AgentWorkload workload(small_agent());
  BatcherOptions options = small_options();
  options.max_seq_len = 110;
  const Served served = serve(workload, options);
  CHECK(served.result.end == LiveEnd::exhausted);
  const auto& counters = workload.counters();
  CHECK(counters.sessions_cut > 0);
  CHECK(counters.sessions_cut + counters.sessions_completed == 12);
  CHECK(served.result.totals.ends[static_cast<size_t>(RequestEnd::too_long)] ==
        counters.sessions_cut);
}

TEST_CASE("limits and stop leave the rest in the batcher and say so") {
  AgentWorkload workload(small_agent());
  LiveOptions live;
  live.max_steps = 7;
  std::vector<uint64_t> seen;
  live.progress_every_steps = 3;
  live.progress = [&](const LiveProgress& progress) { seen.push_back(progress.steps); };
  Served served = serve(workload, small_options(), live);
  CHECK(served.result.end == LiveEnd::max_steps);
  CHECK(served.result.totals.steps == 7);
  CHECK(served.result.requests_left > 0);
  CHECK(seen == std::vector<uint64_t>{3, 6, 7});

  AgentWorkload another(small_agent());
  live = {};
  int asked = 0;
  live.stop = [&] { return ++asked > 4; };
  served = serve(another, small_options(), live);
  CHECK(served.result.end == LiveEnd::stopped);
  CHECK(served.result.totals.steps == 4);
}

TEST_CASE("final departures are shown in a step without rows") {
  AgentWorkload workload(small_agent());
  LiveOptions live;
  live.final_departures = true;
  CHECK(serve(workload, small_options(), live).result.end == LiveEnd::exhausted);
}

TEST_CASE("a source that is stuck is an error, not an endless loop") {
  for (const StepIndex next : {StepIndex{UINT64_MAX}, StepIndex{0}}) {
    Stuck source(next);
    Batcher batcher(small_options());
    try {
      run_live(source, batcher, [](const Step&) { return StepOutput{}; }, {});
      FAIL("it returned");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::usage);
      CHECK(error.message().find("stuck") != std::string::npos);
    }
  }
}

TEST_CASE("equal leading block ids of an arrival trace become prefix hits") {
  std::vector<ArrivalRow> rows = {{0, 1300, 100, {7, 8, 9}},
                                  {5'000'000, 1400, 50, {7, 8, 10}},
                                  {5'000'000, 900, 50, {11, 12}},
                                  {9'000'000, 1536, 60, {7, 8, 9}}};
  ArrivalOptions options;
  options.scale = 16;
  options.vocab = kVocab;
  ArrivalWorkload workload(rows, options);
  const Served served = serve(workload, small_options());
  CHECK(served.result.end == LiveEnd::exhausted);
  REQUIRE(served.arrivals.size() == 4);
  CHECK(served.arrivals[0].prompt_tokens == 81);
  CHECK(served.arrivals[0].max_tokens == 6);
  CHECK(served.arrivals[0].cached_tokens == 0);
  CHECK(served.arrivals[1].cached_tokens == 64);  // two blocks of 32 tokens
  CHECK(served.arrivals[2].cached_tokens == 0);
  CHECK(served.arrivals[3].cached_tokens == 80);  // and the third, as far as it was filled
  CHECK(served.sent.at(1) == 5'000'000 / 30000);
}

TEST_CASE("the built-in arrival traces are served whole") {
  for (const auto kind : {WorkloadKind::mooncake, WorkloadKind::azure}) {
    WorkloadSpec spec;
    spec.kind = kind;
    spec.set_vocab(kVocab);
    spec.arrival.scale = 64;
    spec.arrival.rows = 80;
    spec.arrival.prompt_cap = 500;
    const auto source = make_workload(spec, load_rows(kind));
    const Served served = serve(*source, small_options());
    CHECK(served.result.end == LiveEnd::exhausted);
    CHECK(served.result.totals.requests_finished == 80);
    CHECK(served.result.totals.ends[static_cast<size_t>(RequestEnd::length)] == 80);
    for (const auto& done : served.ended)
      REQUIRE(done.output == fake::expected_output(done.request, kVocab, 600));
    CHECK((served.counters.cached_tokens > 0) == (kind == WorkloadKind::mooncake));
  }
}
