#include <sys/resource.h>
#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <cstring>
#include <fstream>
#include <limits>
#include <thread>

#include "tests/recorder/abi_fixture.h"
#include "tests/traces/temp_folder.h"
#include "traces/inspect.h"
#include "traces/trace_set.h"

namespace redecode {
namespace {

using test::FakeEngine;

struct Recording {
  explicit Recording(const rr_options& options) {
    char message[256];
    recorder = rr_open(&options, message, sizeof message);
    INFO(message);
    REQUIRE(recorder != nullptr);
    lane = rr_lane_open(recorder);
    REQUIRE(lane != nullptr);
  }
  rr_stats close() {
    rr_stats stats;
    result = rr_close(recorder, &stats, sizeof stats);
    return stats;
  }
  rr_recorder* recorder = nullptr;
  rr_lane* lane = nullptr;
  int result = 0;
};

void wait_until(const auto& condition) {
  for (int i = 0; i < 5000 && !condition(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  REQUIRE(condition());
}

std::vector<uint8_t> record_some(const std::filesystem::path& path, int layout, uint64_t steps) {
  test::Options o(path);
  o.layout = layout;
  o.policy = RR_BLOCK;
  Recording r(o);
  FakeEngine engine(8);
  engine.arrive(r.lane);
  for (uint64_t i = 0; i < steps; ++i) REQUIRE(engine.step(r.lane, i) == RR_OK);
  const rr_stats stats = r.close();
  CHECK(r.result == RR_OK);
  CHECK(stats.steps_written == steps);
  CHECK(stats.steps_dropped == 0);
  return test::read_bytes(path);
}

}  // namespace

TEST_CASE("what is recorded through the C ABI is read back, in both layouts") {
  const test::TempFolder folder;
  for (const int layout : {RR_LAYOUT_ROWS, RR_LAYOUT_COLUMNS}) {
    const auto path = folder / (layout == RR_LAYOUT_ROWS ? "rows.rdt" : "columns.rdt");
    record_some(path, layout, 3000);
    const test::ReadBack back = test::read_back(path, FakeEngine(8));
    CHECK(back.steps.size() == 3000);
    CHECK(back.wrong == 0);
    CHECK(back.gaps.empty());
    CHECK(back.end == FileEnd::clean);
    const VerifyResult verified = verify_file(path);
    INFO(to_text(verified));
    CHECK(verified.sound);
  }
  CHECK(std::filesystem::file_size(folder / "columns.rdt") <
        std::filesystem::file_size(folder / "rows.rdt"));
}

TEST_CASE("both layouts say the same") {
  const test::TempFolder folder;
  record_some(folder / "r.rdt", RR_LAYOUT_ROWS, 500);
  record_some(folder / "c.rdt", RR_LAYOUT_COLUMNS, 500);
  CHECK(load_trace(folder / "r.rdt").digest == load_trace(folder / "c.rdt").digest);
  CHECK(load_trace(folder / "r.rdt").steps == load_trace(folder / "c.rdt").steps);
}

TEST_CASE("columns of any stride and width, and a step in parts") {
  const test::TempFolder folder;
  const test::Options o(folder / "t.rdt");
  Recording r(o);
  struct Interleaved {
    int64_t request, position;
    int32_t token, slot;
  };
  std::vector<Interleaved> rows;
  for (int32_t i = 0; i < 5; ++i) rows.push_back({7, i, 100 + i, 32 + i});
  const auto column = [&](const void* first, int32_t width) {
    return rr_column{first, sizeof(Interleaved), width};
  };
  rr_arrival a;
  rr_arrival_init(&a, sizeof a);
  a.request = 7;
  a.prompt_tokens = 5;
  a.temperature = 0.5f;
  a.seed = 99;
  CHECK(rr_arrive(r.lane, &a) == RR_OK);
  CHECK(rr_page(r.lane, 7, 0, 2, 1) == RR_OK);
  rr_step_info info;
  rr_step_info_init(&info, sizeof info);
  info.phase = RR_PHASE_PREFILL;
  info.rows = 5;
  CHECK(rr_step_begin(r.lane, &info) == RR_OK);
  const auto part = [&](uint32_t first, uint32_t count, const uint8_t* wants) {
    const rr_column request = column(&rows[first].request, 8);
    const rr_column position = column(&rows[first].position, 8);
    const rr_column token = column(&rows[first].token, 4), slot = column(&rows[first].slot, 4);
    return rr_step_rows(r.lane, count, &request, &position, &token, &slot, wants);
  };
  const uint8_t none[4] = {};
  CHECK(part(0, 4, none) == RR_OK);
  CHECK(rr_step_end(r.lane) == RR_ESTATE);
  CHECK(part(4, 1, nullptr) == RR_OK);
  CHECK(part(0, 1, nullptr) == RR_EINVAL);
  CHECK(rr_step_end(r.lane) == RR_OK);
  const int32_t sampled = 42;
  const float sum = 1.5f;
  rr_output_info out;
  rr_output_info_init(&out, sizeof out);
  out.rows = 1;
  const uint32_t row = 4;
  out.row = {&row, 0, 4};
  out.token = {&sampled, 0, 4};
  out.log_sum_exp = &sum;
  CHECK(rr_outputs(r.lane, &out) == RR_OK);
  CHECK(rr_event(r.lane, RR_EVENT_NOTE, RR_NO_REQUEST, 0, 0, "hello") == RR_OK);
  r.close();
  const Trace trace = load_trace(folder / "t.rdt");
  REQUIRE(trace.steps.size() == 1);
  const Step& step = trace.steps[0];
  CHECK(step.phase == Phase::prefill);
  REQUIRE(step.rows.size() == 5);
  CHECK(step.rows[4] == Row{7, 4, 104, 36, true});
  CHECK_FALSE(step.rows[0].wants_output);
  REQUIRE(step.arrivals.size() == 1);
  CHECK(step.arrivals[0].sampling.seed == 99);
  REQUIRE(step.page_changes.size() == 1);
  CHECK(step.page_changes[0].shared);
  REQUIRE(trace.outputs.size() == 1);
  CHECK(trace.outputs[0].rows[0].token == 42);
  CHECK(trace.outputs[0].rows[0].request == 7);
  CHECK(trace.outputs[0].rows[0].position == 4);
  CHECK(trace.outputs[0].rows[0].log_sum_exp == 1.5f);
  REQUIRE(trace.events.size() == 1);
  CHECK(trace.events[0].text == "hello");
}

TEST_CASE("a full ring drops, and the gaps say exactly what the producer counted") {
  const test::TempFolder folder;
  test::Options o((folder / "t.rdt"));
  o.ring_bytes = 1;  // the smallest there is
  Recording r(o);
  FakeEngine engine(64);
  engine.arrive(r.lane);
  uint64_t dropped = 0, first = UINT64_MAX;
  constexpr uint64_t kSteps = 30000;
  for (uint64_t i = 0; i < kSteps; ++i) {
    const int result = engine.step(r.lane, i);
    REQUIRE((result == RR_OK || result == RR_DROPPED));
    if (result == RR_DROPPED && first == UINT64_MAX) first = i;
    dropped += result == RR_DROPPED ? 1 : 0;
  }
  const rr_stats stats = r.close();
  CHECK(r.result == RR_OK);
  REQUIRE(dropped > 0);
  CHECK(stats.steps_seen == kSteps);
  CHECK(stats.steps_dropped == dropped);
  CHECK(stats.first_dropped_step == first);
  const test::ReadBack back = test::read_back(folder / "t.rdt", engine);
  CHECK(back.wrong == 0);
  CHECK(back.lost == dropped);
  CHECK(back.steps.size() == kSteps - dropped);
  for (const Gap& gap : back.gaps) CHECK((gap.causes & kGapRingFull) != 0);
  const VerifyResult verified = verify_file(folder / "t.rdt");
  INFO(to_text(verified));
  CHECK(verified.sound);
}

TEST_CASE("a blocking recorder loses nothing in the smallest ring") {
  const test::TempFolder folder;
  test::Options o((folder / "t.rdt"));
  o.ring_bytes = 1;
  o.policy = RR_BLOCK;
  Recording r(o);
  FakeEngine engine(64);
  engine.arrive(r.lane);
  for (uint64_t i = 0; i < 3000; ++i) REQUIRE(engine.step(r.lane, i) == RR_OK);
  CHECK(r.close().steps_dropped == 0);
  const test::ReadBack back = test::read_back(folder / "t.rdt", engine);
  CHECK(back.steps.size() == 3000);
  CHECK(back.wrong == 0);
}

TEST_CASE("keep-last writes the newest steps when it is triggered") {
  const test::TempFolder folder;
  for (const std::string trigger : {"", "token:7777", "nonfinite", "signal:12"}) {
    const std::string path = (folder / ("t" + trigger + ".rdt")).string();
    test::Options o(path);
    o.ring_bytes = 1;
    o.policy = RR_KEEP_LAST;
    o.trigger = trigger.c_str();
    Recording r(o);
    FakeEngine engine(16);
    engine.arrive(r.lane);
    for (uint64_t i = 0; i < 2000; ++i) REQUIRE(engine.step(r.lane, i) == RR_OK);
    const int32_t token = trigger == "token:7777" ? 7777 : 1;
    const float sum = trigger == "nonfinite" ? std::numeric_limits<float>::infinity() : 0.0f;
    rr_output_info out;
    rr_output_info_init(&out, sizeof out);
    out.rows = 1;
    out.token = {&token, 0, 4};
    out.log_sum_exp = &sum;
    REQUIRE(rr_outputs(r.lane, &out) == RR_OK);
    if (trigger.empty()) CHECK(rr_trigger(r.recorder) == RR_OK);
    if (trigger == "signal:12") std::raise(12);
    rr_stats stats;
    wait_until([&] {
      rr_stats_read(r.recorder, &stats, sizeof stats);
      return stats.triggers == 1 && stats.steps_written > 0;
    });
    rr_close(r.recorder, nullptr, 0);
    const test::ReadBack back = test::read_back(path, engine);
    CHECK(back.wrong == 0);
    REQUIRE_FALSE(back.steps.empty());
    CHECK(back.steps.back() == 1999);
    CHECK(back.steps.size() < 2000);
    REQUIRE(back.gaps.size() == 1);
    CHECK(back.gaps[0].first == 0);
    CHECK((back.gaps[0].causes & kGapOverwritten) != 0);
    CHECK(back.lost + back.steps.size() == 2000);
  }
}

TEST_CASE("sampling keeps what it says and counts the rest") {
  const test::TempFolder folder;
  const auto sampled = [&](const char* sampling) {
    const std::string path = (folder / "t.rdt").string();
    test::Options o(path);
    o.sampling = sampling;
    o.policy = RR_BLOCK;
    o.overwrite = 1;
    Recording r(o);
    FakeEngine engine(16);
    engine.arrive(r.lane);
    for (uint64_t i = 0; i < 64; ++i) REQUIRE(engine.step(r.lane, i) == RR_OK);
    r.close();
    const VerifyResult verified = verify_file(path);
    INFO(to_text(verified));
    CHECK(verified.sound);
    return load_trace(path);
  };
  const Trace named = sampled("requests:3,9");
  REQUIRE(named.steps.size() == 64);
  for (const Step& step : named.steps) {
    REQUIRE(step.rows.size() == 2);
    CHECK(step.rows[0].request == 3);
    CHECK(step.rows[1].request == 9);
    CHECK(step.rows_left_out == 14);
  }
  const Trace quarter = sampled("1/4");
  CHECK(quarter.steps[0].rows.size() < 16);
  CHECK(quarter.steps[0].rows.size() + quarter.steps[0].rows_left_out == 16);
  CHECK(sampled("sessions:5").steps[0].rows.size() == 1);
  const Trace window = sampled("steps:10..19");
  CHECK(window.steps.size() == 10);
  CHECK(window.steps.front().index == 10);
  REQUIRE_FALSE(window.gaps.empty());
  CHECK(window.gaps[0].causes == kGapNotSampled);
}

TEST_CASE("the first error is told, and what cannot be is refused") {
  const test::TempFolder folder;
  char message[256];
  const auto refuses = [&](const rr_options& o, const char* what) {
    CHECK(rr_open(&o, message, sizeof message) == nullptr);
    INFO(message);
    CHECK(std::strstr(message, what) != nullptr);
  };
  test::Options o(folder / "no" / "such.rdt");
  const std::string good = (folder / "t.rdt").string(), bad = (folder / "no/such.rdt").string();
  o.path = bad.c_str();
  refuses(o, "no such folder");
  o.path = good.c_str();
  o.sampling = "one in three";
  refuses(o, "sampling is");
  o.sampling = nullptr;
  o.trigger = "tokens:1";
  refuses(o, "a trigger is");
  o.trigger = nullptr;
  o.policy = 9;
  refuses(o, "policy");
  o.policy = RR_DROP;
  o.abi_version = 7;
  refuses(o, "ABI version");
  o.abi_version = RR_ABI_VERSION;
  o.size = 0;
  refuses(o, "rr_options_init");
  o.size = sizeof o;
  std::filesystem::remove(good);
  Recording r(o);
  o.overwrite = 1;
  refuses(o, "writ");
  rr_lane* other = rr_lane_open(r.recorder);
  FakeEngine engine(2);
  CHECK(engine.step(r.lane, 0) == RR_OK);
  CHECK(engine.step(other, 1) == RR_ESTATE);
  CHECK(rr_depart(r.lane, 1, 9) == RR_EINVAL);
  CHECK(rr_page(r.lane, 1, 0, 0, 0) == RR_EINVAL);
  CHECK(rr_event(r.lane, 77, 0, 0, 0, nullptr) == RR_EINVAL);
  CHECK(rr_request_id(r.recorder, "a") == rr_request_id(r.recorder, "a"));
  CHECK(rr_request_id(r.recorder, "a") != rr_request_id(r.recorder, "b"));
  const uint32_t first = rr_request_id(r.recorder, "a");
  CHECK(rr_depart(r.lane, first, RR_PREEMPTED) == RR_OK);
  CHECK(rr_request_id(r.recorder, "a") == first);
  CHECK(rr_depart(r.lane, first, RR_FINISHED) == RR_OK);
  CHECK(rr_request_id(r.recorder, "a") != first);
  for (int i = 0; i < 5000; ++i) {
    const uint32_t number = rr_request_id(r.recorder, std::to_string(i).c_str());
    CHECK(rr_depart(r.lane, number, RR_CANCELLED) >= 0);
    CHECK(rr_request_id(r.recorder, std::to_string(i).c_str()) != number);
  }
  CHECK(rr_flush(r.recorder, 5000, 1) == RR_OK);
  r.close();
}

TEST_CASE("rotation makes a set that reads as one trace") {
  const test::TempFolder folder;
  const std::string path = (folder / "set").string();
  test::Options o(path);
  o.rotate_bytes = 20000;
  o.chunk_steps = 64;
  o.policy = RR_BLOCK;
  Recording r(o);
  FakeEngine engine(32);
  engine.arrive(r.lane);
  for (uint64_t i = 0; i < 4000; ++i) REQUIRE(engine.step(r.lane, i) == RR_OK);
  const rr_stats stats = r.close();
  CHECK(stats.files > 2);
  const Manifest manifest = scan_set(path);
  CHECK(manifest.files.size() == stats.files);
  std::ifstream in(std::filesystem::path(path) / "manifest.json");
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  CHECK(text == to_json(manifest));
  const test::ReadBack back = test::read_back(path, engine);
  CHECK(back.steps.size() == 4000);
  CHECK(back.wrong == 0);
  CHECK(load_trace(path).steps.size() == 4000);
  // Each file by itself: it opens with a keyframe.
  const VerifyResult last = verify_file(std::filesystem::path(path) / manifest.files.back().name);
  INFO(to_text(last));
  CHECK(last.sound);
  // A file in the middle is lost: said as a gap when salvaging, an error otherwise.
  std::filesystem::remove(std::filesystem::path(path) / manifest.files[1].name);
  CHECK_THROWS_AS(load_trace(path), Error);
  TraceReader salvaging(path, {.salvage = true});
  TraceRecord record;
  test::ReadBack rest;
  while (salvaging.next(record)) test::see(record, engine, rest);
  CHECK(rest.wrong == 0);
  REQUIRE(rest.gaps.size() == 1);
  CHECK(rest.gaps[0].first == manifest.files[1].first_step);
  CHECK(rest.gaps[0].count == manifest.files[1].steps);
  CHECK((rest.gaps[0].causes & kGapFileMissing) != 0);
}

TEST_CASE("a file that may not grow fails the recording and stays readable") {
  const test::TempFolder folder;
  test::Options o((folder / "t.rdt"));
  o.chunk_steps = 64;
  o.policy = RR_BLOCK;
  struct rlimit before {};
  getrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_IGN);
  Recording r(o);
  FakeEngine engine(64);
  struct rlimit small = before;
  small.rlim_cur = 40000;
  setrlimit(RLIMIT_FSIZE, &small);
  engine.arrive(r.lane);
  uint64_t taken = 0, failed = 0;
  for (uint64_t i = 0; i < 20000; ++i) {
    const int result = engine.step(r.lane, i);
    taken += result == RR_OK ? 1 : 0;
    failed += result == RR_FAILED || result == RR_TIMEOUT ? 1 : 0;
  }
  const rr_stats stats = r.close();
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK(r.result == RR_FAILED);
  CHECK(stats.failed == 1);
  CHECK(failed > 0);
  CHECK(stats.steps_seen == 20000);
  CHECK(stats.steps_dropped == failed);
  const test::ReadBack back = test::read_back(folder / "t.rdt", engine);
  CHECK(back.end == FileEnd::cut);
  CHECK(back.wrong == 0);
  CHECK_FALSE(back.steps.empty());
  CHECK(back.steps.size() + failed <= 20000);
  CHECK(taken + failed == 20000);
}

TEST_CASE("a clock that goes backwards changes no step") {
  const test::TempFolder folder;
  const test::Options o(folder / "t.rdt");
  Recording r(o);
  FakeEngine engine(4);
  engine.arrive(r.lane);
  for (uint64_t i = 0; i < 100; ++i)
    REQUIRE(engine.step(r.lane, i, UINT64_C(1) << 62 >> i % 60) == RR_OK);
  r.close();
  const test::ReadBack back = test::read_back(folder / "t.rdt", engine);
  CHECK(back.steps.size() == 100);
  CHECK(back.wrong == 0);
}

}  // namespace redecode
