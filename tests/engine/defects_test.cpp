// Every defect is found by the check that it names, at the step where it first can appear, and
// changes results in exactly the modes that it says; without a defect nothing is found anywhere.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <functional>

#include "engine/decoder/defects.h"
#include "tests/engine/rig.h"
#include "traces/error.h"

using namespace redecode;
using namespace redecode::rig;

namespace {

bool any_mode(const Mode&) { return true; }
bool multi_stream(const Mode& mode) { return mode.streams == StreamMode::multi; }
bool from_graph(const Mode& mode) { return mode.capture == CaptureMode::graph; }

StepIndex first_where(const Trace& trace, const std::function<bool(const Step&)>& holds) {
  const auto at = std::ranges::find_if(trace.steps, holds);
  REQUIRE(at != trace.steps.end());
  return at->index;
}

// The defect is in every program of the mode, so in that of the first step.
StepIndex at_first_step(const Trace& trace) { return trace.steps.front().index; }

// A padding row whose place last held a row with a slot outside the dummy page.
StepIndex at_stale_padding(const Trace& trace) {
  std::vector<uint32_t> slots(trace.header.engine.max_batch_rows, 0);
  const uint32_t page_size = trace.header.engine.page_size;
  return first_where(trace, [&](const Step& step) {
    for (size_t r = 0; r < step.rows.size(); ++r) slots[r] = step.rows[r].slot;
    for (size_t r = step.rows.size(); r < step.bucket; ++r)
      if (slots[r] / page_size != 0) return true;
    return false;
  });
}

// A graph was captured at position 0: the first step that runs from one anywhere else.
StepIndex at_first_graph(const Trace& trace) {
  return first_where(
      trace, [](const Step& step) { return step.bucket != 0 && step.rows.front().position != 0; });
}

// The checker knows how a batch of one row is cut.
StepIndex at_other_split(const Trace& trace) {
  return first_where(trace, [](const Step& step) { return step.padded_rows() >= 16; });
}

struct Expectation {
  std::string_view defect;
  StepIndex (*first_step)(const Trace&);
  bool (*found_in)(const Mode&);     // by structure, whatever the order
  bool (*diverges_in)(const Mode&);  // in value, when the order is random
  bool order_matters;                // in value, only when the order is random
  std::string_view op, other_op;     // of one of the findings at that step
};

bool no_mode(const Mode&) { return false; }

// Findings of other kinds may follow from it.
bool has_consequences(std::string_view defect) { return defect == "moved-workspace"; }

constexpr Expectation kDsv4[] = {
    {"early-free", at_first_step, multi_stream, multi_stream, true, "indexer.logits", "wq_b"},
    {"dropped-join", at_first_step, multi_stream, multi_stream, true, "indexer.topk", "attention"},
    {"dropped-fork", at_first_step, multi_stream, multi_stream, true, "q_norm", "indexer.wq_b"},
    {"rerecorded-event", at_first_step, multi_stream, multi_stream, true, "indexer.topk",
     "attention"},
    {"baked-position", at_first_graph, from_graph, from_graph, false, "q_rope", ""},
    {"baked-branch", at_first_graph, from_graph, from_graph, false, "attention", ""},
    {"stale-pad-tail", at_stale_padding, any_mode, any_mode, false, "kv.store", ""},
    {"moved-workspace", at_first_step, any_mode, any_mode, false, "attn_norm", ""},
    {"page-size-other-dtype", at_first_step, any_mode, any_mode, false, "indexer.logits", ""},
    {"block-freed-in-flight", at_first_step, multi_stream, multi_stream, true, "shared.gate_up",
     "moe.zero"},
    {"reused-pinned", at_first_step, any_mode, any_mode, false, "inputs.upload", "inputs.write"},
    {"missing-pdl-wait", at_first_step, any_mode, any_mode, true, "embed", "attn_norm"},
    {"frozen-sampler-offset", at_first_graph, from_graph, no_mode, false, "sample", ""},
    {"split-by-batch", at_other_split, any_mode, any_mode, false, "attention", ""},
    {"racy-topk-ties", at_other_split, any_mode, any_mode, false, "indexer.topk", ""},
    {"unwritten-scratch", at_first_step, any_mode, any_mode, false, "moe.add_routed", ""},
    {"overlapping-graphs", at_first_step, multi_stream, multi_stream, true, "wq_b", "q_lora"},
    {"late-kv-handover", at_first_step, multi_stream, multi_stream, true, "kv.store", "attention"},
};
constexpr Expectation kLlama[] = {
    {"dropped-join", at_first_step, multi_stream, multi_stream, true, "kv_store", "attention"},
    {"dropped-fork", at_first_step, multi_stream, multi_stream, true, "attn_norm", "kv_proj"},
    {"rerecorded-event", at_first_step, multi_stream, multi_stream, true, "kv_store", "attention"},
    {"stale-pad-tail", at_stale_padding, any_mode, any_mode, false, "kv_store", ""},
    {"baked-position", at_first_graph, from_graph, from_graph, false, "q_rope", ""},
    {"moved-workspace", at_first_step, any_mode, any_mode, false, "attn_norm", ""},
    {"reused-pinned", at_first_step, any_mode, any_mode, false, "inputs.upload", "inputs.write"},
    {"missing-pdl-wait", at_first_step, any_mode, any_mode, true, "embed", "attn_norm"},
    {"frozen-sampler-offset", at_first_graph, from_graph, no_mode, false, "sample", ""},
    {"split-by-batch", at_other_split, any_mode, any_mode, false, "attention", ""},
    {"overlapping-graphs", at_first_step, multi_stream, multi_stream, true, "q_proj", "attn_x"},
    {"late-kv-handover", at_first_step, multi_stream, multi_stream, true, "kv_store", "attention"},
};

std::vector<Mode> four_modes(const std::string& order) {
  std::vector<Mode> out;
  for (const auto capture : {CaptureMode::eager, CaptureMode::graph})
    for (const auto streams : {StreamMode::single, StreamMode::multi})
      out.push_back(mode_of(capture, streams, order));
  return out;
}

void check_findings(const Expectation& expected, const Trace& trace, const Mode& mode,
                    const Decoded& run) {
  if (!expected.found_in(mode)) {
    CHECK(run.findings.empty());
    return;
  }
  REQUIRE_FALSE(run.findings.empty());
  const FindingKind kind = find_defect(expected.defect)->found_by;
  const StepIndex first_step = expected.first_step(trace);
  for (const Finding& f : run.findings) {
    INFO(sentence(f));
    if (!has_consequences(expected.defect)) CHECK(f.kind == kind);
    CHECK(f.step >= first_step);
  }
  CHECK(run.findings.front().step == first_step);
  CHECK(run.findings.front().kind == kind);
  CHECK(std::ranges::any_of(run.findings, [&](const Finding& f) {
    return f.check == find_defect(expected.defect)->check;
  }));
  std::string pairs;
  for (const Finding& f : run.findings) pairs += f.first.op + " / " + f.second.op + "; ";
  INFO(pairs);
  const bool named = std::ranges::any_of(run.findings, [&](const Finding& f) {
    return f.step == first_step && f.first.op == expected.op && f.second.op == expected.other_op;
  });
  CHECK(named);
}

void check_values(const Expectation& expected, const Trace& trace, const Mode& mode,
                  const std::vector<StepOutput>& golden, const Decoded& run) {
  const Difference d = difference(golden, run.outputs);
  const bool diverges =
      expected.diverges_in(mode) && !(expected.order_matters && mode.order == "fifo");
  CHECK((d.logits != 0) == diverges);
  if (diverges) CHECK(d.first_step >= expected.first_step(trace));
}

void check_defect(const Expectation& expected, const RigOptions& base, const Trace& trace,
                  const std::vector<StepOutput>& golden) {
  std::vector<Mode> modes = four_modes("seed:1");
  if (expected.order_matters)
    for (const auto capture : {CaptureMode::eager, CaptureMode::graph})
      modes.push_back(mode_of(capture, StreamMode::multi, "fifo"));
  for (const Mode& mode : modes) {
    RigOptions options = base;
    options.mode = mode;
    options.mode.index_key = base.mode.index_key;
    options.mode.inject = {std::string(expected.defect)};
    options.inspect = true;
    INFO(base.model << ", " << expected.defect << ", " << describe(options.mode));
    const Decoded run = decode(options, trace);
    check_findings(expected, trace, mode, run);
    check_values(expected, trace, mode, golden, run);
  }
}

RigOptions options_for(const std::string& model, IndexKeyType key = IndexKeyType::bf16) {
  RigOptions options;
  options.model = model;
  options.settings = settings_for(model);
  options.mode.index_key = key;
  return options;
}

Trace small_trace(const RigOptions& options) {
  return record_agents(options, "sessions=5 rounds=1 ctx=100 max_tokens=8").trace;
}

// No finding and no differing bit in the four modes.
void check_clean(RigOptions options, const Trace& trace, const std::string& order,
                 const std::vector<std::string>& inject = {}) {
  const IndexKeyType key = options.mode.index_key;
  options.mode = Mode{};
  options.mode.index_key = key;
  const Decoded golden = decode(options, trace);
  for (const Mode& mode : four_modes(order)) {
    options.mode = mode;
    options.mode.index_key = key;
    options.mode.inject = inject;
    options.inspect = true;
    INFO(options.model << ", " << describe(options.mode));
    const Decoded run = decode(options, trace);
    for (const Finding& f : run.findings) FAIL_CHECK(sentence(f));
    CHECK(run.digest == golden.digest);
  }
}

constexpr IndexKeyType kKeys[] = {IndexKeyType::bf16, IndexKeyType::fp8, IndexKeyType::fp4};

}  // namespace

TEST_CASE("dsv4: each defect is found by its check, at its first step, in its modes", "[defects]") {
  const RigOptions options = options_for("dsv4-small");
  const Trace trace = small_trace(options);
  const auto golden = decode(options, trace).outputs;
  REQUIRE(std::size(kDsv4) == all_defects().size());
  for (const Expectation& expected : kDsv4) check_defect(expected, options, trace, golden);
}

TEST_CASE("llama: each defect is found by its check, at its first step, in its modes",
          "[defects]") {
  const RigOptions options = options_for("llama-small");
  const Trace trace = small_trace(options);
  const auto golden = decode(options, trace).outputs;
  for (const Defect& defect : all_defects()) {
    const bool listed =
        std::ranges::find(kLlama, defect.name, &Expectation::defect) != std::end(kLlama);
    CHECK(listed == defect.family.empty());
  }
  for (const Expectation& expected : kLlama) check_defect(expected, options, trace, golden);
}

TEST_CASE("early-free is harmless where the query is too small for its block to be taken",
          "[defects]") {
  for (const IndexKeyType key : {IndexKeyType::fp8, IndexKeyType::fp4}) {
    const RigOptions options = options_for("dsv4-small", key);
    check_clean(options, small_trace(options), "seed:1", {"early-free"});
  }
}

TEST_CASE("a defect without occasion changes nothing and is not found", "[defects]") {
  const RigOptions options = options_for("dsv4-small");
  ListTraffic traffic;
  traffic.add(0, make_request(0, 12, 8));
  const Trace trace = record(options, traffic).trace;  // no padding row, no step of 16 rows
  check_clean(options, trace, "seed:1", {"stale-pad-tail"});
  check_clean(options, trace, "seed:1", {"split-by-batch"});
}

TEST_CASE("the other defects are found with every index-key type", "[defects][slow]") {
  for (const IndexKeyType key : {IndexKeyType::fp8, IndexKeyType::fp4}) {
    const RigOptions options = options_for("dsv4-small", key);
    const Trace trace = small_trace(options);
    const auto golden = decode(options, trace).outputs;
    for (const Expectation& expected : kDsv4) {
      if (expected.defect == "early-free") continue;
      if (expected.defect == "page-size-other-dtype" && key == IndexKeyType::fp4) continue;
      check_defect(expected, options, trace, golden);
    }
  }
}

TEST_CASE("two defects at once are both found", "[defects]") {
  RigOptions options = options_for("dsv4-small");
  const Trace trace = small_trace(options);
  options.mode = mode_of(CaptureMode::graph, StreamMode::multi);
  options.mode.inject = {"dropped-fork", "unwritten-scratch"};
  options.inspect = true;
  const Decoded run = decode(options, trace);
  for (const FindingKind kind : {FindingKind::race, FindingKind::unwritten})
    CHECK(std::ranges::any_of(run.findings, [&](const Finding& f) { return f.kind == kind; }));
}

TEST_CASE("a padding row that writes a request's page is said to leave its own", "[defects]") {
  RigOptions options = options_for("dsv4-small");
  const Trace trace = small_trace(options);
  options.mode.inject = {"stale-pad-tail"};
  options.inspect = true;
  const Decoded run = decode(options, trace);
  REQUIRE_FALSE(run.findings.empty());
  const Finding& f = run.findings.front();
  CHECK(f.request == kNoRequest);
  CHECK(f.advice.find("A padding row writes page") != std::string::npos);
  CHECK(f.advice.find(", which request ") != std::string::npos);
}

TEST_CASE("a defect that does not exist or does not fit is a usage error", "[defects]") {
  const auto code_of = [](const std::string& model, IndexKeyType key, const std::string& defect) {
    RigOptions options = options_for(model, key);
    options.mode.inject = {defect};
    try {
      Rig rig(options);
    } catch (const Error& e) {
      CHECK(e.context().find(defect) != std::string::npos);
      return e.code();
    }
    FAIL("accepted: " << defect);
    return ErrorCode::environment;
  };
  CHECK(code_of("dsv4-small", IndexKeyType::bf16, "late-free") == ErrorCode::usage);
  CHECK(code_of("llama-small", IndexKeyType::bf16, "early-free") == ErrorCode::usage);
  CHECK(code_of("dsv4-small", IndexKeyType::fp4, "page-size-other-dtype") == ErrorCode::usage);
}

TEST_CASE("40 clean sessions: nothing found in any mode or key type", "[clean]") {
  for (const IndexKeyType key : kKeys) {
    const RigOptions options = options_for("dsv4-small", key);
    const Recording r = record_agents(options, "sessions=40 rounds=1 ctx=14 max_tokens=5");
    REQUIRE(r.totals.requests_finished == 40);
    check_clean(options, r.trace, "seed:4");
  }
  const RigOptions options = options_for("llama-small");
  check_clean(options, record_agents(options, "sessions=40 rounds=1 ctx=20 max_tokens=5").trace,
              "seed:4");
}

TEST_CASE("300 clean sessions: nothing found in any mode or key type", "[clean][slow]") {
  const std::string keys =
      "sessions=300 rounds=2 ctx=40 system_percent=40 new_min=4 new_max=12 max_tokens=12";
  for (const IndexKeyType key : kKeys) {
    RigOptions options = options_for("dsv4-small", key);
    options.settings.page_count = 60;  // fewer than 64 running requests want: they are preempted
    const Recording r = record_agents(options, keys);
    REQUIRE(r.totals.requests_finished == 600);
    check_clean(options, r.trace, "seed:5");
    check_clean(options, r.trace, "paced:5");
  }
  RigOptions options = options_for("llama-small");
  options.settings.page_count = 200;
  const Recording r = record_agents(options, keys);
  REQUIRE(r.totals.requests_finished == 600);
  REQUIRE(r.totals.cached_tokens > 0);
  check_clean(options, r.trace, "seed:5");
}
