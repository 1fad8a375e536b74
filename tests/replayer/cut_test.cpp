// What is cut out of a trace gives, replayed by itself, what the whole trace gave.
#include "traces/edit/cut.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>

#include "replayer/replay.h"
#include "tests/engine/rig.h"
#include "tests/traces/temp_folder.h"
#include "traces/edit/recover.h"
#include "traces/error.h"
#include "traces/inspect.h"
#include "traces/random.h"

using namespace redecode;
using namespace redecode::rig;

namespace {

// Agents that share prefixes and, for want of pages, get preempted.
Trace pressed_trace(const std::string& model) {
  RigOptions options;
  options.model = model;
  options.settings = settings_for(model);
  options.settings.page_count = model == "dsv4-small" ? 11 : 34;
  const Recording r = record_agents(
      options, "sessions=7 rounds=2 ctx=240 system_percent=90 new_min=8 new_max=20 max_tokens=20");
  REQUIRE(r.totals.preemptions > 0);
  return r.trace;
}

using Row = std::pair<StepIndex, RequestId>;
using Outputs = std::map<Row, std::pair<int32_t, Digest>>;

Outputs outputs_of(const Trace& trace) {
  Outputs out;
  for (const StepOutput& output : trace.outputs)
    for (const RowOutput& row : output.rows)
      out[{output.step, row.request}] = {row.token, row.logits_digest};
  return out;
}

Outputs replayed(const Trace& trace) {
  Outputs out;
  ReplayOptions options;
  options.inspect = false;
  options.output = [&](const StepOutput& output) {
    for (const RowOutput& row : output.rows)
      out[{output.step, row.request}] = {row.token, row.logits_digest};
  };
  replay(trace, options);
  return out;
}

Trace saved_and_loaded(const Trace& trace) {
  const test::TempFolder folder;
  save_trace(trace, folder / "t.rdt", false);
  const VerifyResult verified = verify_file(folder / "t.rdt");
  INFO(to_text(verified));
  CHECK(verified.sound);
  return load_trace(folder / "t.rdt");
}

// Every output of the cut, replayed, is the whole trace's; none of `expected` is missing.
void check_cut(const Trace& whole, const CutOptions& options, size_t at_least) {
  const CutResult result = cut(whole, options);
  CHECK(result.broken.empty());
  const Trace part = saved_and_loaded(result.trace);
  const Outputs all = outputs_of(whole), recorded = outputs_of(part), again = replayed(part);
  CHECK(recorded.size() >= at_least);
  CHECK(again == recorded);
  for (const auto& [row, value] : again) REQUIRE(all.at(row) == value);
}

}  // namespace

TEST_CASE("a cut by steps replays bit for bit") {
  for (const std::string model : {"llama-small", "dsv4-small"}) {
    const Trace whole = pressed_trace(model);
    const StepIndex last = whole.steps.back().index;
    for (const StepIndex first : {StepIndex{0}, last / 3, last / 2, last - 3})
      check_cut(whole, {.first = first, .last = std::min(last, first + 9)}, 1);
  }
}

TEST_CASE("a cut by sessions or requests replays bit for bit") {
  const Trace whole = pressed_trace("dsv4-small");
  check_cut(whole, {.sessions = {2, 5}}, 60);
  check_cut(whole, {.requests = {1}}, 10);
  CHECK_THROWS_AS(cut(whole, {.first = 1u << 30}), Error);
  CHECK_THROWS_AS(cut(whole, {.first_us = 5}), Error);
}

TEST_CASE("a replay does not cross a gap, and a cut leaves out what it broke") {
  Trace trace = pressed_trace("llama-small");
  const StepIndex at = trace.steps.size() / 2;
  const Gap gap{.first = at, .last = at + 2, .count = 3, .bytes = 0, .causes = kGapRingFull};
  const auto in_gap = [&](const auto& item) {
    if constexpr (requires { item.index; })
      return item.index >= gap.first && item.index <= gap.last;
    else
      return item.step >= gap.first && item.step <= gap.last;
  };
  std::erase_if(trace.steps, in_gap);
  std::erase_if(trace.outputs, in_gap);
  trace.gaps.push_back(gap);
  CHECK_THROWS_AS(replayed(trace), Error);
  ReplayOptions before;
  before.range.last = gap.first - 1;
  CHECK(replay(trace, before).steps == gap.first);
  const CutResult result = cut(trace, {.first = gap.last + 1});
  CHECK_FALSE(result.broken.empty());
}

TEST_CASE("parts of a trace make the whole again") {
  const test::TempFolder folder;
  const Trace whole = pressed_trace("llama-small");
  const size_t half = whole.steps.size() / 2;
  Trace first = whole, second = whole;
  first.steps.resize(half + 5);
  first.outputs.resize(half + 5);
  second.steps.erase(second.steps.begin(), second.steps.begin() + static_cast<ptrdiff_t>(half));
  second.outputs.erase(second.outputs.begin(),
                       second.outputs.begin() + static_cast<ptrdiff_t>(half));
  ScheduleState state(whole.header.engine.page_size);
  for (size_t i = 0; i < half; ++i) state.apply(whole.steps[i]);
  second.start = state.keyframe();
  save_trace(first, folder / "a.rdt", false);
  save_trace(second, folder / "b.rdt", false);
  const std::vector<std::filesystem::path> parts = {folder / "b.rdt", folder / "a.rdt"};
  const MergeResult merged = merge(parts, folder / "m.rdt", false);
  CHECK(merged.overlapping == 5);
  CHECK(merged.gaps.empty());
  const Trace again = load_trace(folder / "m.rdt");
  CHECK(again.steps == whole.steps);
  CHECK(again.digest == whole.digest);
  CHECK(outputs_of(again) == outputs_of(whole));

  first.steps[half + 1].rows.back().token ^= 1;
  save_trace(first, folder / "a.rdt", true);
  CHECK_THROWS_AS(merge(parts, folder / "m.rdt", true), Error);
  first.steps.resize(half - 4);
  first.outputs.resize(half - 4);
  save_trace(first, folder / "a.rdt", true);
  const MergeResult holed = merge(parts, folder / "m.rdt", true);
  REQUIRE(holed.gaps.size() == 1);
  CHECK(holed.gaps[0].first == half - 4);
  CHECK(holed.gaps[0].count == 4);
}

TEST_CASE("recover states what damage took and keeps every other step") {
  const test::TempFolder folder;
  const Trace whole = pressed_trace("llama-small");
  {
    TraceWriter writer(folder / "t.rdt", whole.header, {.chunk_steps = 8});
    for (size_t i = 0; i < whole.steps.size(); ++i) {
      writer.write(whole.steps[i]);
      writer.write(whole.outputs[i]);
    }
    writer.close();
  }
  const std::vector<uint8_t> good = test::read_bytes(folder / "t.rdt");
  RandomSequence random(21);
  for (int round = 0; round < 60; ++round) {
    std::vector<uint8_t> bytes = good;
    for (uint64_t flips = 1 + random.below(3); flips > 0; --flips)
      bytes[4096 + random.below(bytes.size() - 4096)] ^=
          static_cast<uint8_t>(1u << random.below(8));
    if (round % 3 == 0)
      bytes.erase(bytes.end() - static_cast<ptrdiff_t>(random.below(bytes.size() / 2)),
                  bytes.end());
    test::write_bytes(folder / "bad.rdt", bytes);
    RecoverResult result;
    try {
      result = recover(folder / "bad.rdt", folder / "out.rdt", true);
    } catch (const Error& error) {
      FAIL_CHECK(error.what());
      continue;
    }
    const Trace out = load_trace(folder / "out.rdt");
    CHECK(out.steps.size() == result.steps);
    StepIndex next = 0;
    size_t gap = 0;
    for (const Step& step : out.steps) {
      if (step.index != next) {
        REQUIRE(gap < out.gaps.size());
        CHECK(out.gaps[gap].first == next);
        CHECK(out.gaps[gap].last == step.index - 1);
        CHECK(out.gaps[gap].count == step.index - next);
        ++gap;
      }
      Step expected = whole.steps[step.index];
      CHECK(step == expected);
      next = step.index + 1;
    }
    if (gap + 1 == out.gaps.size()) {  // the end record tells what is missing behind the last step
      CHECK(out.gaps[gap].first == next);
      CHECK(out.gaps[gap].last < whole.steps.size());
      ++gap;
    }
    CHECK(gap == out.gaps.size());
  }
}
