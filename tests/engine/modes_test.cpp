// Every mode gives the golden's bits: capture x streams x order, index-key types, top-k versions,
// buckets.
#include <catch2/catch_test_macros.hpp>
#include <set>

#include "tests/engine/rig.h"

using namespace redecode;
using namespace redecode::rig;

namespace {

RigOptions options_for(const std::string& model) {
  RigOptions options;
  options.model = model;
  options.settings = settings_for(model);
  return options;
}

std::set<uint32_t> decode_buckets(const Trace& trace) {
  std::set<uint32_t> out;
  for (const Step& step : trace.steps)
    if (step.phase == Phase::decode) out.insert(step.bucket);
  return out;
}

void require_every_bucket(const Trace& trace) {
  const auto& buckets = trace.header.engine.buckets;
  REQUIRE(buckets.front() == 1);
  REQUIRE(buckets.back() == 64);
  REQUIRE(decode_buckets(trace) == std::set<uint32_t>(buckets.begin(), buckets.end()));
}

uint64_t bucketed_steps(const Trace& trace) {
  uint64_t count = 0;
  for (const Step& step : trace.steps) count += step.bucket != 0 ? 1 : 0;
  return count;
}

// Decodes the trace in each mode and compares with the golden of `key`: eager, single stream, fifo,
// top-k v2. Returns the rows compared.
uint64_t compare_modes(const RigOptions& base, const Trace& trace, IndexKeyType key,
                       std::vector<Mode> modes) {
  RigOptions options = base;
  options.mode = Mode{};
  options.mode.index_key = key;
  const Decoded golden = decode(options, trace);
  REQUIRE(golden.graph_steps == 0);
  uint64_t rows = 0;
  for (Mode& mode : modes) {
    mode.index_key = key;
    INFO(base.model << ", " << describe(mode));
    options.mode = mode;
    const Decoded candidate = decode(options, trace);
    const bool graph = mode.capture == CaptureMode::graph;
    CHECK(candidate.graph_steps == (graph ? bucketed_steps(trace) : 0));
    const Difference d = difference(golden.outputs, candidate.outputs);
    CHECK(d.logits == 0);
    CHECK(d.tokens == 0);
    CHECK(candidate.digest == golden.digest);
    rows += d.rows;
  }
  return rows;
}

std::vector<Mode> with_topk(std::vector<Mode> modes, TopkVersion version) {
  for (Mode& mode : modes) mode.topk = version;
  return modes;
}

// The three that leave most to chance.
std::vector<Mode> wild_modes() {
  return {mode_of(CaptureMode::eager, StreamMode::multi, "seed:11"),
          mode_of(CaptureMode::graph, StreamMode::single, "fifo"),
          mode_of(CaptureMode::graph, StreamMode::multi, "seed:12")};
}

constexpr IndexKeyType kKeys[] = {IndexKeyType::bf16, IndexKeyType::fp8, IndexKeyType::fp4};

}  // namespace

TEST_CASE("llama: all modes equal the golden at every bucket", "[modes]") {
  const RigOptions options = options_for("llama-small");
  ListTraffic traffic = every_bucket_traffic(64, 4);
  const Trace trace = record(options, traffic).trace;
  require_every_bucket(trace);
  REQUIRE(compare_modes(options, trace, IndexKeyType::bf16, all_modes()) > 20000);
}

TEST_CASE("dsv4: all modes equal the golden at every bucket", "[modes]") {
  const RigOptions options = options_for("dsv4-small");
  ListTraffic traffic = every_bucket_traffic(64, 2);
  const Trace trace = record(options, traffic).trace;
  require_every_bucket(trace);
  REQUIRE(compare_modes(options, trace, IndexKeyType::bf16, all_modes()) > 20000);
}

TEST_CASE("dsv4: each index-key type and top-k version equals its golden", "[modes][slow]") {
  const RigOptions options = options_for("dsv4-small");
  const Trace trace = record_agents(options, "sessions=5 rounds=1 ctx=110 max_tokens=7").trace;
  std::set<Digest> goldens;
  for (const IndexKeyType key : kKeys) {
    compare_modes(options, trace, key, with_topk(wild_modes(), TopkVersion::v1));
    compare_modes(options, trace, key, with_topk(wild_modes(), TopkVersion::v2));
    RigOptions golden = options;
    golden.mode.index_key = key;
    goldens.insert(decode(golden, trace).digest);
  }
  CHECK(goldens.size() == 3);  // the type takes part in the arithmetic
}

TEST_CASE("freed memory may be poisoned without changing a bit", "[modes]") {
  for (const char* model : {"llama-small", "dsv4-small"}) {
    const RigOptions options = options_for(model);
    const Trace trace = record_agents(options, "sessions=4 rounds=1 ctx=90 max_tokens=6").trace;
    std::vector<Mode> modes = wild_modes();
    for (Mode& mode : modes) mode.poison = true;
    compare_modes(options, trace, IndexKeyType::bf16, modes);
  }
}

TEST_CASE("a batch above the largest bucket runs eager in every mode and equals", "[modes][slow]") {
  for (const std::string model : {"llama-small", "dsv4-small"}) {
    RigOptions options;
    options.model = model;
    SettingsRequest request;
    request.max_batch_rows = 96;
    options.settings = default_settings(model, request);
    REQUIRE(options.settings.buckets.back() == 64);
    ListTraffic traffic = every_bucket_traffic(76, 8);
    const Trace trace = record(options, traffic).trace;
    uint64_t unpadded = 0, largest = 0;
    for (const Step& step : trace.steps) {
      if (step.phase != Phase::decode || step.bucket != 0) continue;
      ++unpadded;
      largest = std::max<uint64_t>(largest, step.rows.size());
    }
    REQUIRE(unpadded > 5);
    REQUIRE(largest > 64);
    REQUIRE(bucketed_steps(trace) > 5);
    compare_modes(options, trace, IndexKeyType::bf16,
                  {mode_of(CaptureMode::eager, StreamMode::multi, "seed:3"),
                   mode_of(CaptureMode::graph, StreamMode::multi, "seed:3")});
  }
}

TEST_CASE("all modes, key types and top-k versions: over 100,000 rows without a differing bit",
          "[modes][slow]") {
  uint64_t rows = 0;
  {
    const RigOptions options = options_for("llama-small");
    ListTraffic traffic = every_bucket_traffic(64, 30);
    const Trace trace = record(options, traffic).trace;
    require_every_bucket(trace);
    rows += compare_modes(options, trace, IndexKeyType::bf16, all_modes());
  }
  const RigOptions options = options_for("dsv4-small");
  ListTraffic traffic = every_bucket_traffic(64, 30);
  const Trace buckets = record(options, traffic).trace;
  require_every_bucket(buckets);
  const Trace agents = record_agents(options, "sessions=16 rounds=3 ctx=200 max_tokens=24").trace;
  for (const IndexKeyType key : kKeys) {
    for (const TopkVersion version : {TopkVersion::v1, TopkVersion::v2}) {
      rows += compare_modes(options, buckets, key, with_topk(all_modes(), version));
      rows += compare_modes(options, agents, key, with_topk(wild_modes(), version));
    }
  }
  REQUIRE(rows >= 100000);
}
