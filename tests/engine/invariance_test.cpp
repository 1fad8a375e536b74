// A request's bits do not depend on who else is in the batch, on how its prompt is cut, on where
// its pages came from, or on how many threads and which instructions compute it.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "tests/engine/rig.h"

using namespace redecode;
using namespace redecode::rig;

namespace {

constexpr const char* kModels[] = {"llama-small", "dsv4-small"};

RigOptions options_for(const std::string& model, CaptureMode capture = CaptureMode::eager,
                       StreamMode streams = StreamMode::single) {
  RigOptions options;
  options.model = model;
  options.settings = settings_for(model);
  options.mode = mode_of(capture, streams);
  return options;
}

// Prompts of 5 to 154 tokens: within and beyond the window, a page and the sparse top-k.
Request request_of(RequestId id) { return make_request(id, 5 + (id * 37) % 150, 4 + id % 7); }

ListTraffic traffic_of(const std::vector<RequestId>& ids) {
  ListTraffic traffic;
  for (const RequestId id : ids) traffic.add(0, request_of(id));
  return traffic;
}

std::vector<RequestId> first_ids(uint32_t count) {
  std::vector<RequestId> ids(count);
  for (uint32_t i = 0; i < count; ++i) ids[i] = i;
  return ids;
}

ByPosition outputs_of(const RigOptions& options, const std::vector<RequestId>& ids) {
  ListTraffic traffic = traffic_of(ids);
  return by_position(record(options, traffic).trace.outputs);
}

ByPosition only(const ByPosition& all, RequestId id) {
  ByPosition out;
  for (const auto& [key, value] : all)
    if (key.first == id) out[key] = value;
  return out;
}

Recording record_with(const RigOptions& options, const std::vector<RequestId>& ids,
                      const std::function<void(BatcherOptions&)>& change) {
  Rig rig(options);
  BatcherOptions batching = batcher_options(options.settings);
  change(batching);
  ListTraffic traffic = traffic_of(ids);
  return record(rig, traffic, batching);
}

// The trace with logits asked for at every row.
Trace with_all_outputs(Trace trace) {
  for (Step& step : trace.steps)
    for (Row& row : step.rows) row.wants_output = true;
  return trace;
}

// The trace, whose prompts come one row a step, as if each such row were decoded.
Trace as_decode(Trace trace) {
  for (Step& step : trace.steps) {
    REQUIRE((step.phase == Phase::decode || step.rows.size() == 1));
    if (step.phase == Phase::decode) continue;
    step.phase = Phase::decode;
    step.bucket = 1;
  }
  return trace;
}

}  // namespace

TEST_CASE("a request alone gives the bits it gives among 63 others", "[invariance]") {
  for (const char* model : kModels) {
    const auto options = options_for(model, CaptureMode::graph, StreamMode::multi);
    const ByPosition together = outputs_of(options, first_ids(64));
    for (const RequestId id : {0u, 17u, 44u, 63u}) {
      INFO(model << ", request " << id);
      const ByPosition alone = outputs_of(options_for(model), {id});
      REQUIRE(alone.size() == request_of(id).max_tokens);
      CHECK(alone == only(together, id));
    }
  }
}

TEST_CASE("the order of arrival does not change a bit", "[invariance]") {
  for (const char* model : kModels) {
    INFO(model);
    std::vector<RequestId> ids = first_ids(24);
    const ByPosition forward = outputs_of(options_for(model), ids);
    std::ranges::reverse(ids);
    CHECK(outputs_of(options_for(model), ids) == forward);
    std::ranges::sort(ids, {}, [](RequestId id) { return (id * 11) % 24; });
    CHECK(outputs_of(options_for(model), ids) == forward);
  }
}

TEST_CASE("a prompt gives the same logits at every position however it is cut", "[invariance]") {
  for (const char* model : kModels) {
    const RigOptions options = options_for(model);
    const auto cut = [&](uint32_t chunk) {
      const Recording r = record_with(options, {20, 11, 5}, [&](BatcherOptions& batching) {
        batching.prefill_chunk_rows = chunk;
      });
      return with_all_outputs(r.trace);
    };
    const Trace rows_of_one = cut(1);
    const ByPosition whole = by_position(decode(options, cut(64)).outputs);
    REQUIRE(whole.size() > 200);
    INFO(model);
    CHECK(by_position(decode(options, cut(7)).outputs) == whole);
    CHECK(by_position(decode(options, rows_of_one).outputs) == whole);
    const Trace all_decode = as_decode(rows_of_one);
    CHECK(by_position(decode(options, all_decode).outputs) == whole);
    const Decoded graph =
        decode(options_for(model, CaptureMode::graph, StreamMode::multi), all_decode);
    CHECK(graph.graph_steps == all_decode.steps.size());
    CHECK(by_position(graph.outputs) == whole);
  }
}

TEST_CASE("mixed steps and unpadded steps give the same bits", "[invariance]") {
  for (const char* model : kModels) {
    INFO(model);
    const RigOptions options = options_for(model);
    const auto ids = first_ids(20);
    const Recording turns = record_with(options, ids, [](BatcherOptions&) {});
    const Recording mixed =
        record_with(options, ids, [](BatcherOptions& batching) { batching.mixed = true; });
    REQUIRE(std::ranges::any_of(mixed.trace.steps,
                                [](const Step& step) { return step.phase == Phase::mixed; }));
    CHECK(by_position(mixed.trace.outputs) == by_position(turns.trace.outputs));
    Trace unpadded = turns.trace;
    for (Step& step : unpadded.steps) step.bucket = 0;
    CHECK(difference(turns.trace.outputs, decode(options, unpadded).outputs).logits == 0);
  }
}

TEST_CASE("a warm prefix gives the bits of a cold one", "[invariance]") {
  for (const char* model : kModels) {
    INFO(model);
    const RigOptions options = options_for(model, CaptureMode::graph, StreamMode::multi);
    ListTraffic traffic[2];
    for (ListTraffic& t : traffic) {
      for (RequestId id = 0; id < 8; ++id) {
        Request request = make_request(id, 40 + id, 5);
        const Request shared = make_request(1000 + id % 2, 270, 1);
        request.prompt.insert(request.prompt.begin(), shared.prompt.begin(), shared.prompt.end());
        t.add(id * 9, std::move(request));
      }
    }
    const Recording warm = record(options, traffic[0]);
    Rig rig(options);
    BatcherOptions batching = batcher_options(options.settings);
    batching.prefix_sharing = false;
    const Recording cold = record(rig, traffic[1], batching);
    REQUIRE(warm.totals.cached_tokens >= 6 * 256);
    REQUIRE(cold.totals.cached_tokens == 0);
    CHECK(by_position(warm.trace.outputs) == by_position(cold.trace.outputs));
  }
}

TEST_CASE("preempted and resumed requests give the bits of undisturbed ones", "[invariance]") {
  for (const std::string model : kModels) {
    INFO(model);
    RigOptions options = options_for(model, CaptureMode::graph, StreamMode::multi);
    const auto run = [&](uint32_t page_count) {
      options.settings.page_count = page_count;
      ListTraffic traffic;
      for (RequestId id = 0; id < 8; ++id) traffic.add(0, make_request(id, 118 + id, 30));
      return record(options, traffic);
    };
    const Recording undisturbed = run(400);
    const Recording pressed = run(model == "dsv4-small" ? 10 : 65);
    REQUIRE(undisturbed.totals.preemptions == 0);
    REQUIRE(pressed.totals.preemptions >= 2);
    CHECK(by_position(pressed.trace.outputs) == by_position(undisturbed.trace.outputs));
  }
}

TEST_CASE("threads and instruction sets do not change a bit", "[invariance]") {
  for (const char* model : kModels) {
    RigOptions options = options_for(model);
    ListTraffic traffic = traffic_of({3, 11});
    const Trace trace = record(options, traffic).trace;
    const Digest golden = decode(options, trace).digest;
    for (const int threads : {2, 3}) {
      INFO(model << ", " << threads << " threads");
      options.threads = threads;
      CHECK(decode(options, trace).digest == golden);
    }
    options.threads = 1;
    for (const Isa isa : {Isa::plain, Isa::avx2, Isa::avx512}) {
      if (!isa_supported(isa)) continue;
      INFO(model << ", " << isa_name(isa));
      options.isa = isa;
      CHECK(decode(options, trace).digest == golden);
    }
  }
}
