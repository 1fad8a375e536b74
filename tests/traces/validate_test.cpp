#include <catch2/catch_test_macros.hpp>

#include "tests/traces/random_values.h"
#include "traces/error.h"
#include "traces/validate.h"

namespace redecode {
namespace {

// Two decode steps in, one request running at a time when spoilt.
struct Fixture {
  TraceHeader header = test::sample_trace_header();
  std::vector<Step> steps;

  explicit Fixture(size_t count = 40) {
    test::StepMaker maker(header, 2);
    for (size_t i = 0; i < count; ++i) steps.push_back(maker.next());
  }

  std::string complaint() const {
    try {
      StepValidator validator(header.model, header.engine, "t.rdt");
      for (const Step& step : steps) validator.add(step);
    } catch (const Error& e) {
      CHECK(e.code() == ErrorCode::corrupt);
      CHECK(e.context().starts_with("t.rdt"));
      return e.what();
    }
    return "none";
  }

  Step& decode_step() {
    for (Step& step : steps)
      if (step.phase == Phase::decode && step.rows.size() > 2) return step;
    FAIL("no decode step");
    return steps.front();
  }
};

template <class Spoil>
std::string after(Spoil&& spoil) {
  Fixture fixture;
  spoil(fixture);
  return fixture.complaint();
}

bool says(const std::string& complaint, std::string_view words) {
  INFO(complaint);
  const bool found = complaint.find(words) != std::string::npos;
  CHECK(found);
  return found;
}

}  // namespace

TEST_CASE("steps of a batcher are valid") { CHECK(Fixture(2000).complaint() == "none"); }

TEST_CASE("each rule of a row is enforced, by name") {
  says(after([](Fixture& f) { ++f.decode_step().rows[1].slot; }), "row 1: slot");
  says(after([](Fixture& f) { ++f.decode_step().rows[1].position; }), "row 1: position");
  says(after([](Fixture& f) { f.decode_step().rows[2].token = 129280; }), "row 2: token 129280");
  says(after([](Fixture& f) { f.decode_step().rows[0].token = -1; }), "row 0: token -1");
  says(after([](Fixture& f) { f.decode_step().rows[0].request = 99; }),
       "request 99 is not running");
  says(after([](Fixture& f) {
         auto& rows = f.decode_step().rows;
         rows.insert(rows.begin() + 1, rows[0]);
         ++rows[1].position;
       }),
       "a second row");
  says(after([](Fixture& f) {
         Step& step = f.decode_step();
         step.phase = Phase::mixed;
         step.rows.push_back(step.rows[0]);
         ++step.rows.back().position;
       }),
       "stand together");
  says(after([](Fixture& f) { f.header.engine.max_seq_len = 8; }), "behind max_seq_len");
  says(after([](Fixture& f) {
         for (Step& step : f.steps)
           std::erase_if(step.page_changes, [](auto& c) { return c.index > 0; });
       }),
       "page table entry 1 is not set");
}

TEST_CASE("each rule of a step is enforced, by name") {
  says(after([](Fixture& f) { ++f.steps[5].index; }), "step 6: follows step 4");
  says(after([](Fixture& f) { f.decode_step().bucket = 7; }), "bucket 7 is none");
  says(after([](Fixture& f) { f.decode_step().bucket = 2; }), "rows in bucket 2");
  says(after([](Fixture& f) { f.header.engine.max_batch_rows = 2; }), "decode rows");
  says(after([](Fixture& f) { f.steps[3].departures.push_back({99, {}}); }), "request 99 departs");
  says(after([](Fixture& f) { f.steps[1].arrivals.push_back(f.steps[0].arrivals[0]); }),
       "is running already");
  says(after([](Fixture& f) { f.steps[0].arrivals[0].resumed = true; }), "was not preempted");
  says(after([](Fixture& f) { f.steps[0].arrivals[0].cached_tokens = 1000; }), "cached tokens");
  says(after([](Fixture& f) { f.steps[0].arrivals[0].sampling.top_p = 0.0f; }), "sampling values");
  says(after([](Fixture& f) { f.steps[0].page_changes[0].page = 0; }), "dummy page");
  says(after([](Fixture& f) { f.steps[0].page_changes[0].page = 512; }), "page 512 of 512");
  says(after([](Fixture& f) { f.steps[0].page_changes[0].request = 99; }),
       "request 99 gets a page");
  says(after([](Fixture& f) { f.header.engine.buckets = {4, 2}; }), "do not ascend");
}

TEST_CASE("a preempted request may come back, a finished one may not") {
  const TraceHeader header = test::sample_trace_header();
  const auto complaint = [&](DepartureReason reason, bool resumed) -> std::string {
    StepValidator validator(header.model, header.engine, "t");
    Step step;
    try {
      step.arrivals = {{7, 0, 0, 4, 0, 1, false, {}}};
      validator.add(step);
      step = Step();
      step.index = 1;
      step.departures = {{7, reason}};
      validator.add(step);
      step = Step();
      step.index = 2;
      step.arrivals = {{7, 0, 0, 4, 0, 1, resumed, {}}};
      validator.add(step);
    } catch (const Error& e) {
      return e.message();
    }
    return "none";
  };
  CHECK(complaint(DepartureReason::preempted, true) == "none");
  says(complaint(DepartureReason::preempted, false), "only preempted");
  says(complaint(DepartureReason::finished, true), "after it was done");
}

}  // namespace redecode
