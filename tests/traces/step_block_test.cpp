#include <catch2/catch_test_macros.hpp>

#include "tests/traces/random_values.h"
#include "tests/traces/temp_folder.h"
#include "traces/random.h"
#include "traces/trace_file.h"

namespace redecode {
namespace {

struct Written {
  std::vector<Step> steps;
  std::vector<StepOutput> outputs;
  std::vector<Gap> gaps;
  std::vector<Event> events;
};

Event event_at(StepIndex step) {
  return {.before_step = step,
          .time_us = step * 7,
          .kind = EventKind::environment,
          .request = kNoRequest,
          .a = 1,
          .b = 2,
          .text = "A=" + std::to_string(step)};
}

Written write_trace(const std::filesystem::path& path, StepLayout layout, uint64_t seed,
                    int steps) {
  Written out;
  RandomSequence random(seed);
  TraceWriter writer(path, test::sample_trace_header(), {.chunk_steps = 7, .layout = layout});
  test::StepMaker maker(test::sample_trace_header(), seed);
  for (int i = 0; i < steps; ++i) {
    Step step = maker.next();
    step.time_us = random.below(1u << 30);
    step.rows_left_out = static_cast<uint32_t>(random.below(3) == 0 ? random.below(5) : 0);
    if (random.below(5) == 0) {
      out.events.push_back(event_at(step.index));
      writer.write(out.events.back());
    }
    writer.write(step);
    out.steps.push_back(step);
    if (random.below(3) == 0) {
      StepOutput output;
      output.step = step.index;
      output.rows.resize(1);
      output.rows[0].token = i;
      writer.write(output);
      out.outputs.push_back(output);
    }
    if (random.below(11) == 0) writer.flush();
  }
  writer.close();
  return out;
}

Written read_trace(const std::filesystem::path& path) {
  Written out;
  TraceReader reader(path);
  TraceRecord record;
  while (reader.next(record)) {
    if (record.step) out.steps.push_back(*record.step);
    if (record.output) out.outputs.push_back(*record.output);
    if (record.gap) out.gaps.push_back(*record.gap);
    if (record.event) out.events.push_back(*record.event);
  }
  CHECK(reader.summary().end == FileEnd::clean);
  return out;
}

}  // namespace

TEST_CASE("both layouts bring back every step, output and event") {
  const test::TempFolder folder;
  for (uint64_t seed = 1; seed <= 20; ++seed)
    for (const StepLayout layout : {StepLayout::rows, StepLayout::columns}) {
      const auto path = folder / (std::to_string(seed) + (layout == StepLayout::rows ? "r" : "c"));
      const Written written = write_trace(path, layout, seed, 60);
      const Written read = read_trace(path);
      REQUIRE(read.steps == written.steps);
      REQUIRE(read.outputs == written.outputs);
      REQUIRE(read.events == written.events);
    }
}

TEST_CASE("columns hold steps that nothing predicts") {
  const test::TempFolder folder;
  RandomSequence random(5);
  std::vector<Step> steps;
  TraceWriter writer(folder / "t.rdt", test::sample_trace_header(),
                     {.chunk_steps = 16, .layout = StepLayout::columns});
  for (StepIndex i = 0; i < 200; ++i) {
    Step step;
    step.index = i;
    step.phase = static_cast<Phase>(random.below(3));
    step.bucket = static_cast<uint32_t>(random.next());
    step.time_us = random.next();
    for (uint64_t k = random.below(4); k > 0; --k)
      step.departures.push_back({static_cast<RequestId>(random.below(12)),
                                 static_cast<DepartureReason>(random.below(4))});
    for (uint64_t k = random.below(3); k > 0; --k) {
      Arrival a;
      a.request = static_cast<RequestId>(random.below(12));
      a.cached_tokens = static_cast<uint32_t>(random.next());
      step.arrivals.push_back(a);
    }
    for (uint64_t k = random.below(6); k > 0; --k)
      step.page_changes.push_back({static_cast<RequestId>(random.below(12)),
                                   static_cast<uint32_t>(random.next() >> random.below(32)),
                                   static_cast<PageId>(random.next()), random.below(2) == 0});
    for (uint64_t k = random.below(20); k > 0; --k)
      step.rows.push_back({static_cast<RequestId>(random.below(12)),
                           static_cast<uint32_t>(random.next() >> random.below(32)),
                           static_cast<int32_t>(random.next()),
                           static_cast<uint32_t>(random.next() >> random.below(32)),
                           random.below(2) == 0});
    writer.write(step);
    steps.push_back(std::move(step));
  }
  writer.close();
  CHECK(read_trace(folder / "t.rdt").steps == steps);
}

TEST_CASE("steps go on behind gaps, however far, with page tables of any size") {
  const test::TempFolder folder;
  for (const StepLayout layout : {StepLayout::rows, StepLayout::columns}) {
    const auto path = folder / (layout == StepLayout::rows ? "r.rdt" : "c.rdt");
    TraceHeader header = test::sample_trace_header();
    header.engine.page_size = 16;
    std::vector<Step> steps;
    std::vector<Gap> gaps;
    {
      TraceWriter writer(path, header, {.chunk_bytes = 4096, .chunk_steps = 50, .layout = layout});
      StepIndex index = 0;
      for (uint32_t part = 0; part < 12; ++part) {
        for (int k = 0; k < 60; ++k, ++index) {
          Step step;
          step.index = index;
          for (uint32_t i = 0; i < 8; ++i) {
            const uint32_t page = 1 + i + 8 * static_cast<uint32_t>(index / 16);
            if (index % 16 == 0)
              step.page_changes.push_back({i, static_cast<uint32_t>(index / 16), page, false});
            step.rows.push_back({i, static_cast<uint32_t>(index), static_cast<int32_t>(index % 99),
                                 page * 16 + static_cast<uint32_t>(index % 16), true});
          }
          writer.write(step);
          steps.push_back(std::move(step));
        }
        const uint64_t missing = 3000 + part * 9000;
        gaps.push_back({.first = index,
                        .last = index + missing - 1,
                        .count = missing,
                        .bytes = part,
                        .causes = kGapRingFull});
        writer.write(gaps.back());
        index += missing;
      }
      writer.close();
    }
    const Written read = read_trace(path);
    CHECK(read.steps == steps);
    CHECK(read.gaps == gaps);
  }
}

TEST_CASE("a seek finds every step, by the index and without it, and knows what runs there") {
  const test::TempFolder folder;
  for (const bool index : {true, false}) {
    const auto path = folder / (index ? "i.rdt" : "n.rdt");
    TraceWriter writer(path, test::sample_trace_header(),
                       {.chunk_steps = 5, .layout = StepLayout::columns, .index = index});
    test::StepMaker maker(test::sample_trace_header(), 3);
    std::vector<Step> steps;
    std::vector<Keyframe> states;
    ScheduleState state(test::sample_trace_header().engine.page_size);
    for (int i = 0; i < 43; ++i) {
      steps.push_back(maker.next());
      states.push_back(state.keyframe());
      state.apply(steps.back());
      writer.write(steps.back());
    }
    writer.close();
    for (const Step& wanted : steps) {
      TraceReader reader(path);
      REQUIRE(reader.seek(wanted.index));
      TraceRecord record;
      REQUIRE(reader.next(record));
      REQUIRE(record.step);
      CHECK(record.step->index <= wanted.index);
      CHECK(record.step->index + 5 > wanted.index);
      CHECK(reader.start() == states[record.step->index - steps.front().index]);
      while (record.step->index < wanted.index) REQUIRE(reader.next(record));
      CHECK(*record.step == wanted);
    }
    TraceReader reader(path);
    CHECK_FALSE(reader.seek(steps.back().index + 1));
  }
}

}  // namespace redecode
