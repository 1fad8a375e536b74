#include "recorder/tap.h"

#include <unistd.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "traces/random.h"
#include "traces/trace_file.h"

using namespace redecode;

namespace {

// What a target was told, alive after the tap has let go of it.
struct Log {
  std::vector<Step> steps;
  std::vector<StepOutput> outputs;
  std::vector<Gap> gaps;
  std::vector<StepIndex> order;  // step * 2, + 1 for outputs
  int flushes = 0, closes = 0, destroyed = 0;
  std::atomic<bool> hold{false};     // writes wait while set
  std::atomic<bool> entered{false};  // a write has begun
  std::atomic<int64_t> fail_at{-1};  // the write of this number throws
  std::atomic<bool> fail_on_close{false};
  bool foreign_exception = false;
};

class LogTarget final : public TapTarget {
 public:
  explicit LogTarget(Log& log) : log_(log) {}
  ~LogTarget() override { ++log_.destroyed; }
  void write(const Step& step) override {
    before_write();
    log_.steps.push_back(step);
    log_.order.push_back(step.index * 2);
  }
  void write(const StepOutput& output) override {
    before_write();
    log_.outputs.push_back(output);
    log_.order.push_back(output.step * 2 + 1);
  }
  void write(const Gap& gap) override { log_.gaps.push_back(gap); }
  void flush() override { ++log_.flushes; }
  void close() override {
    if (log_.fail_on_close) throw Error(ErrorCode::environment, "disk full at close");
    ++log_.closes;
  }

 private:
  void before_write() {
    log_.entered = true;
    while (log_.hold) std::this_thread::yield();
    if (writes_++ == log_.fail_at) {
      if (log_.foreign_exception) throw std::runtime_error("odd");
      throw Error(ErrorCode::environment, "disk full");
    }
  }
  Log& log_;
  int64_t writes_ = 0;
};

Step step_of(StepIndex index) {
  RandomSequence draws(index, 4);
  Step step;
  step.index = index;
  step.bucket = static_cast<uint32_t>(draws.below(9));
  step.rows.resize(1 + draws.below(20));
  for (Row& row : step.rows) row = {static_cast<RequestId>(draws.below(99)), 1, 2, 3, true};
  if (draws.below(2) != 0) step.departures.push_back({4, DepartureReason::preempted});
  return step;
}

StepOutput output_of(StepIndex index) {
  RandomSequence draws(index, 5);
  StepOutput output;
  output.step = index;
  output.rows.resize(draws.below(10));
  for (RowOutput& row : output.rows) {
    row.token = static_cast<int32_t>(draws.below(1000));
    row.top.resize(draws.below(5));
  }
  output.order = std::string(draws.below(40), 'x');
  return output;
}

std::unique_ptr<TapTarget> target(Log& log) { return std::make_unique<LogTarget>(log); }

// The error that `act` throws, or "".
template <class Act>
std::string error_of(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

}  // namespace

TEST_CASE("a tap passes every record on, in order and unchanged") {
  for (const uint32_t capacity : {0u, 2u, 7u, 256u}) {
    // A ring of a few records makes the two threads take turns: fewer rounds show it.
    const StepIndex count = capacity < 100 ? 300 : 3000;
    Log log;
    TapOptions options;
    options.ring_records = capacity;
    Tap tap(target(log), options);
    for (StepIndex i = 0; i < count; ++i) {
      tap.scheduled(step_of(i));
      tap.produced(output_of(i));
    }
    tap.close();
    CHECK(log.closes == 1);
    CHECK(log.destroyed == 1);
    REQUIRE(log.steps.size() == count);
    REQUIRE(log.outputs.size() == count);
    for (StepIndex i = 0; i < count; ++i) {
      REQUIRE(log.steps[i] == step_of(i));
      REQUIRE(log.outputs[i] == output_of(i));
      REQUIRE(log.order[2 * i] == 2 * i);
      REQUIRE(log.order[2 * i + 1] == 2 * i + 1);
    }
    CHECK(tap.counters().steps_written == count);
    CHECK(tap.counters().outputs_written == count);
    CHECK(tap.counters().steps_dropped == 0);
    CHECK(tap.counters().first_dropped == UINT64_MAX);
    tap.close();
    CHECK(log.closes == 1);
  }
}

TEST_CASE("a full ring blocks by default and loses nothing") {
  Log log;
  log.hold = true;
  TapOptions options;
  options.ring_records = 4;
  Tap tap(target(log), options);
  std::atomic<StepIndex> sent{0};
  std::thread engine([&] {
    for (StepIndex i = 0; i < 50; ++i) {
      tap.scheduled(step_of(i));
      ++sent;
    }
  });
  while (!log.entered) std::this_thread::yield();
  while (sent < 4) std::this_thread::yield();
  CHECK(sent == 4);  // the fifth does not fit while the writer holds the first
  log.hold = false;
  engine.join();
  tap.close();
  CHECK(log.steps.size() == 50);
}

TEST_CASE("a tap that may drop leaves out whole steps and counts them") {
  Log log;
  log.hold = true;
  TapOptions options;
  options.ring_records = 4;
  options.when_full = WhenFull::drop;
  Tap tap(target(log), options);
  for (StepIndex i = 0; i < 10; ++i) {
    tap.scheduled(step_of(i));
    tap.produced(output_of(i));
  }
  CHECK(tap.counters().steps_dropped == 8);
  CHECK(tap.counters().outputs_dropped == 8);
  CHECK(tap.counters().first_dropped == 2);
  log.hold = false;
  while (tap.counters().outputs_written < 2) std::this_thread::yield();
  tap.scheduled(step_of(10));
  tap.produced(output_of(10));
  tap.close();
  CHECK(log.order == std::vector<StepIndex>{0, 1, 2, 3, 20, 21});
  CHECK(tap.counters().steps_written + tap.counters().steps_dropped == 11);
  REQUIRE(log.gaps.size() == 1);
  CHECK(log.gaps[0].first == 2);
  CHECK(log.gaps[0].last == 9);
  CHECK(log.gaps[0].count == 8);
  CHECK(log.gaps[0].bytes > 8 * sizeof(Row));
  CHECK(log.gaps[0].causes == kGapRingFull);
  CHECK(tap.counters().gaps_written == 1);
  CHECK(tap.counters().steps_in_gaps == 8);
}

TEST_CASE("what was dropped last is said when the tap closes") {
  Log log;
  log.hold = true;
  TapOptions options;
  options.ring_records = 4;
  options.when_full = WhenFull::drop;
  Tap tap(target(log), options);
  for (StepIndex i = 0; i < 7; ++i) {
    tap.scheduled(step_of(i));
    tap.produced(output_of(i));
  }
  log.hold = false;
  tap.close();
  REQUIRE(log.gaps.size() == 1);
  CHECK(log.gaps[0].first == 2);
  CHECK(log.gaps[0].last == 6);
  CHECK(log.gaps[0].count == 5);
}

TEST_CASE("a step is taken only where its output fits, so none stands without it") {
  Log log;
  log.hold = true;
  TapOptions options;
  options.ring_records = 8;
  options.when_full = WhenFull::drop;
  Tap tap(target(log), options);
  for (StepIndex i = 0; i < 6; ++i) tap.scheduled(step_of(i));  // outputs come late
  for (StepIndex i = 0; i < 4; ++i) tap.produced(output_of(i));
  log.hold = false;
  tap.close();
  CHECK(log.order == std::vector<StepIndex>{0, 2, 4, 6, 1, 3, 5, 7});
  CHECK(tap.counters().outputs_dropped == 0);
  CHECK(tap.counters().steps_dropped == 2);
}

TEST_CASE("the output of a dropped step is dropped even when there is room again") {
  Log log;
  log.hold = true;
  TapOptions options;
  options.ring_records = 4;
  options.when_full = WhenFull::drop;
  Tap tap(target(log), options);
  for (StepIndex i = 0; i < 3; ++i) tap.scheduled(step_of(i));
  log.hold = false;
  while (tap.counters().steps_written < 2) std::this_thread::yield();
  tap.produced(output_of(2));
  tap.close();
  CHECK(log.order == std::vector<StepIndex>{0, 2});
  CHECK(tap.counters().outputs_dropped == 1);
}

TEST_CASE("the first error of the writer is reported on the next call and on close") {
  for (const bool foreign : {false, true}) {
    Log log;
    log.fail_at = 3;
    log.foreign_exception = foreign;
    const std::string expected = foreign ? "The recorder failed: odd" : "disk full";
    TapOptions options;
    options.ring_records = 4;
    Tap tap(target(log), options);
    StepIndex sent = 0;
    std::string error;
    while (error.empty()) {
      error = error_of([&] { tap.scheduled(step_of(sent)); });
      ++sent;
      REQUIRE(sent < 1000000);
    }
    CHECK(error == expected);
    CHECK(error_of([&] { tap.produced(output_of(0)); }) == expected);
    CHECK(error_of([&] { tap.close(); }) == expected);
    CHECK(error_of([&] { tap.close(); }) == expected);
    CHECK(log.steps.size() == 3);
    CHECK(log.closes == 0);
    CHECK(log.destroyed == 1);
    CHECK(tap.counters().steps_written == 3);
    CHECK(tap.counters().steps_dropped == sent - 3);
    CHECK(tap.counters().first_dropped == 3);
    CHECK(tap.counters().outputs_dropped == 1);
  }
}

TEST_CASE("a full ring does not hang when the writer has failed") {
  Log log;
  log.fail_at = 0;
  log.hold = true;
  TapOptions options;
  options.ring_records = 2;
  Tap tap(target(log), options);
  tap.scheduled(step_of(0));
  tap.scheduled(step_of(1));
  log.hold = false;
  CHECK(error_of([&] { tap.close(); }) == "disk full");
  CHECK(tap.counters().steps_dropped == 2);
}

TEST_CASE("an error of closing is reported by close") {
  Log log;
  log.fail_on_close = true;
  Tap tap(target(log));
  tap.scheduled(step_of(0));
  CHECK(error_of([&] { tap.close(); }) == "disk full at close");
  CHECK(log.steps.size() == 1);
}

TEST_CASE("the destructor drains and closes") {
  Log log;
  {
    Tap tap(target(log));
    for (StepIndex i = 0; i < 100; ++i) tap.scheduled(step_of(i));
  }
  CHECK(log.steps.size() == 100);
  CHECK(log.closes == 1);
}

TEST_CASE("options: outputs left out, flushes counted, rings bounded") {
  for (const bool outputs : {false, true}) {
    Log log;
    TapOptions options;
    options.outputs = outputs;
    options.flush_every_steps = 10;
    Tap tap(target(log), options);
    for (StepIndex i = 0; i < 35; ++i) {
      tap.scheduled(step_of(i));
      tap.produced(output_of(i));
    }
    tap.close();
    CHECK(log.flushes == 3);
    CHECK(log.outputs.size() == (outputs ? 35 : 0));
  }
  Log log;
  TapOptions options;
  options.ring_records = (1u << 20) + 1;
  CHECK_FALSE(error_of([&] { Tap tap(target(log), options); }).empty());
}

TEST_CASE("a recorded trace is read back whole") {
  const auto path = std::filesystem::temp_directory_path() /
                    ("redecode_tap_" + std::to_string(getpid()) + ".rdt");
  TraceHeader header;
  header.writer = "test";
  header.engine = {
      .page_size = 4, .page_count = 8, .max_batch_rows = 32, .max_seq_len = 16, .buckets = {}};
  header.model.vocab = 1000;
  {
    Tap tap(TraceWriter(path, header, {}, true));
    for (StepIndex i = 0; i < 200; ++i) {
      tap.scheduled(step_of(i));
      tap.produced(output_of(i));
    }
    tap.close();
  }
  TraceReader reader(path);
  CHECK(reader.header() == header);
  TraceRecord record;
  StepIndex steps = 0, outputs = 0;
  while (reader.next(record)) {
    if (record.step) REQUIRE(*record.step == step_of(steps++));
    if (record.output) REQUIRE(*record.output == output_of(outputs++));
  }
  CHECK(steps == 200);
  CHECK(outputs == 200);
  CHECK(reader.summary().end == FileEnd::clean);
  std::filesystem::remove(path);
}

TEST_CASE("a trace with drops states exactly what its producer knows to be lost") {
  const auto path = std::filesystem::temp_directory_path() /
                    ("redecode_tap_drop_" + std::to_string(getpid()) + ".rdt");
  TraceHeader header;
  header.engine = {
      .page_size = 4, .page_count = 8, .max_batch_rows = 32, .max_seq_len = 16, .buckets = {}};
  header.model.vocab = 1000;
  constexpr StepIndex kSteps = 20000;
  TapOptions options;
  options.ring_records = 8;
  options.when_full = WhenFull::drop;
  options.flush_every_steps = 16;
  TapCounters counters;
  {
    Tap tap(TraceWriter(path, header, {}, true), options);
    for (StepIndex i = 0; i < kSteps; ++i) {
      tap.scheduled(step_of(i));
      tap.produced(output_of(i));
    }
    tap.close();
    counters = tap.counters();
  }
  TraceReader reader(path);
  TraceRecord record;
  StepIndex next = 0, last_taken = 0;
  uint64_t steps = 0, outputs = 0, lost = 0;
  while (reader.next(record)) {
    if (record.gap) {
      REQUIRE(record.gap->first == next);
      REQUIRE(record.gap->count == record.gap->last - record.gap->first + 1);
      REQUIRE(record.gap->causes == kGapRingFull);
      next = record.gap->last + 1;
      lost += record.gap->count;
    }
    if (record.step) {
      REQUIRE(*record.step == step_of(next));
      last_taken = next++;
      ++steps;
    }
    if (record.output) {
      REQUIRE(*record.output == output_of(last_taken));
      ++outputs;
    }
  }
  CHECK(next == kSteps);
  CHECK(steps + lost == kSteps);
  CHECK(lost == counters.steps_dropped);
  CHECK(lost == counters.steps_in_gaps);
  CHECK(outputs == steps);
  CHECK(reader.summary().steps_lost == lost);
  CHECK(reader.summary().gaps == counters.gaps_written);
  CHECK(reader.summary().end == FileEnd::clean);
  CHECK(lost > 0);  // a ring of 8 beside a file: the machine that keeps up would be news
  std::filesystem::remove(path);
}
