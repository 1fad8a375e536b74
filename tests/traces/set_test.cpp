#include <catch2/catch_test_macros.hpp>

#include "tests/traces/random_values.h"
#include "tests/traces/temp_folder.h"
#include "traces/error.h"
#include "traces/trace_set.h"

namespace redecode {
namespace {

constexpr int kSteps = 60;

std::vector<Step> make_steps(uint64_t step_us = 1000) {
  std::vector<Step> steps;
  test::StepMaker maker(test::sample_trace_header(), 31);
  for (int i = 0; i < kSteps; ++i) {
    steps.push_back(maker.next());
    steps.back().time_us = 5 + step_us * static_cast<uint64_t>(i);
  }
  return steps;
}

WriterOptions small_chunks() {
  WriterOptions options;
  options.chunk_steps = 4;
  return options;
}

// Returns the trace's digest as the writer tells it.
Digest write_set(const std::filesystem::path& path, const RotateOptions& rotate,
                 const std::vector<Step>& steps, bool overwrite = false) {
  TraceSetWriter writer(path, test::sample_trace_header(), small_chunks(), rotate, overwrite);
  for (const Step& step : steps) {
    writer.write(step);
    writer.write(StepOutput{.step = step.index, .rows = {}, .ops = {}, .order = {}});
  }
  writer.close();
  return writer.trace_digest();
}

struct Outcome {
  std::vector<Step> steps;
  std::vector<Gap> gaps;
  FileSummary summary;
  Keyframe start;
};

Outcome read_all(const std::filesystem::path& path, bool salvage = false) {
  TraceReader reader(path, {.salvage = salvage});
  Outcome out;
  TraceRecord record;
  while (reader.next(record)) {
    if (record.step) out.steps.push_back(*record.step);
    if (record.gap) out.gaps.push_back(*record.gap);
  }
  out.summary = reader.summary();
  out.start = reader.start();
  return out;
}

std::string outcome(auto&& act) {
  try {
    act();
  } catch (const Error& e) {
    return std::string(error_name(e.code())) + ": " + e.message();
  }
  return "none";
}

std::string text_of(const std::filesystem::path& path) {
  const std::vector<uint8_t> bytes = test::read_bytes(path);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

TEST_CASE("set: files by size or by time read as the one trace that they are") {
  const test::TempFolder folder;
  const std::vector<Step> steps = make_steps();
  const Digest digest = write_set(folder / "one.rdt", {}, steps);
  for (const bool by_time : {false, true}) {
    const auto path = folder / (by_time ? "time" : "size");
    const RotateOptions rotate{.file_bytes = by_time ? 0u : 4000u, .file_us = by_time ? 7000u : 0u};
    CHECK(write_set(path, rotate, steps) == digest);
    const Manifest manifest = scan_set(path);
    REQUIRE(manifest.files.size() > 3);
    for (const auto& from : {path, path / "manifest.json"}) {
      const Outcome out = read_all(from);
      CHECK(out.steps == steps);
      CHECK(out.summary.trace_digest == digest);
      CHECK(out.summary.outputs == kSteps);
      CHECK(out.summary.end == FileEnd::clean);
      CHECK(out.gaps.empty());
    }
    // The manifest says what the files say.
    CHECK(text_of(path / "manifest.json") == to_json(manifest));
    uint64_t counted = 0;
    for (const SetFile& file : manifest.files) {
      CHECK(file.first_step == counted);
      counted += file.steps;
      if (by_time) CHECK(file.last_us - file.first_us < 7000);
      if (!by_time && &file != &manifest.files.back()) CHECK(file.size_bytes >= 4000);
    }
    CHECK(counted == kSteps);
  }
}

TEST_CASE("set: each file can be read alone, and starts where the one before ended") {
  const test::TempFolder folder;
  const std::vector<Step> steps = make_steps();
  write_set(folder / "s", {.file_us = 9000}, steps);
  TraceReader whole(folder / "s");
  TraceRecord record;
  for (const SetFile& file : scan_set(folder / "s").files) {
    TraceReader alone(folder / "s" / file.name);
    CHECK(alone.header().place.number == file.number);
    TraceRecord first;
    do REQUIRE(alone.next(first));
    while (!first.step);
    CHECK(*first.step == steps[file.first_step]);
    do REQUIRE(whole.next(record));
    while (!record.step || record.step->index != file.first_step);
    CHECK(alone.state().keyframe() == whole.state().keyframe());
  }
}

TEST_CASE("set: old files go, and what is left is a trace that starts later") {
  const test::TempFolder folder;
  const std::vector<Step> steps = make_steps();
  write_set(folder / "s", {.file_us = 5000, .keep_files = 3}, steps);
  const Manifest manifest = scan_set(folder / "s");
  REQUIRE(manifest.files.size() == 3);
  CHECK(manifest.files.front().number > 0);
  CHECK(text_of(folder / "s" / "manifest.json") == to_json(manifest));
  const Outcome out = read_all(folder / "s");
  CHECK(out.gaps.empty());
  CHECK(out.start.next_step == manifest.files.front().first_step);
  CHECK(std::equal(out.steps.begin(), out.steps.end(),
                   steps.end() - static_cast<ptrdiff_t>(out.steps.size())));
}

TEST_CASE("set: seek goes to the file that holds the step, and back") {
  const test::TempFolder folder;
  const std::vector<Step> steps = make_steps();
  write_set(folder / "s", {.file_us = 7000}, steps);
  TraceReader reader(folder / "s");
  for (const StepIndex to : {40u, 3u, 59u, 0u, 21u}) {
    REQUIRE(reader.seek(to));
    TraceRecord record;
    do REQUIRE(reader.next(record));
    while (!record.step || record.step->index < to);
    CHECK(*record.step == steps[to]);
  }
  CHECK_FALSE(reader.seek(kSteps));
}

TEST_CASE("set: a missing file is an error, and a gap with its cause when salvaging") {
  const test::TempFolder folder;
  const std::vector<Step> steps = make_steps();
  write_set(folder / "s", {.file_us = 7000}, steps);
  const Manifest manifest = scan_set(folder / "s");
  std::filesystem::remove(folder / "s" / manifest.files[2].name);
  CHECK(outcome([&] { read_all(folder / "s"); }).starts_with("missing: file number 2 of the set"));
  const Outcome out = read_all(folder / "s", true);
  REQUIRE(out.gaps.size() == 1);
  CHECK(out.gaps[0].first == manifest.files[2].first_step);
  CHECK(out.gaps[0].count == manifest.files[2].steps);
  CHECK((out.gaps[0].causes & kGapFileMissing) != 0);
  CHECK(out.steps.size() + out.gaps[0].count == kSteps);
}

TEST_CASE("set: files of another set are refused") {
  const test::TempFolder folder;
  const std::vector<Step> steps = make_steps();
  write_set(folder / "s", {.file_us = 7000}, steps);
  TraceHeader other = test::sample_trace_header();
  other.workload = "another recording";
  {
    TraceSetWriter writer(folder / "o", other, small_chunks(), {.file_us = 7000}, false);
    for (const Step& step : steps) writer.write(step);
    writer.close();
  }
  const auto over = std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy_file(folder / "o" / "00000002.rdt", folder / "s" / "00000002.rdt", over);
  CHECK(outcome([&] { read_all(folder / "s"); }).starts_with("corrupt: file belongs to another"));
  CHECK(
      outcome([&] { scan_set(folder / "s"); }).starts_with("corrupt: the folder holds files of 2"));
}

TEST_CASE("set: folders are not taken over by mistake") {
  const test::TempFolder folder;
  const std::vector<Step> steps = make_steps();
  const RotateOptions rotate{.file_us = 7000};
  {
    TraceSetWriter writer(folder / "s", test::sample_trace_header(), small_chunks(), rotate, false);
    writer.write(steps[0]);
    CHECK(outcome([&] {
            write_set(folder / "s", rotate, steps, true);
          }).starts_with("usage: another process is writing"));
    writer.close();
  }
  test::write_bytes(folder / "s" / "mine.rdt", std::vector<uint8_t>{1, 2, 3});
  CHECK(outcome([&] { write_set(folder / "s", rotate, steps); }).starts_with("usage"));
  CHECK(outcome([&] { write_set(folder / "s", rotate, steps, true); }) == "none");
  CHECK(std::filesystem::exists(folder / "s" / "mine.rdt"));
  CHECK(read_all(folder / "s").steps == steps);
  CHECK(outcome([&] { write_set(folder / "no" / "s", rotate, steps); }).starts_with("missing"));
  std::filesystem::create_directory(folder / "empty");
  CHECK(outcome([&] { read_all(folder / "empty"); }).starts_with("missing"));
}

TEST_CASE("set: a writer that dies leaves a set that reads up to its last whole chunk") {
  const test::TempFolder folder;
  const std::vector<Step> steps = make_steps();
  {
    TraceSetWriter writer(folder / "s", test::sample_trace_header(), small_chunks(),
                          {.file_us = 7000}, false);
    for (int i = 0; i < 40; ++i) writer.write(steps[static_cast<size_t>(i)]);
  }
  const auto last = folder / "s" / scan_set(folder / "s").files.back().name;
  std::filesystem::resize_file(last, std::filesystem::file_size(last) - 5);
  const Outcome out = read_all(folder / "s");
  CHECK(out.summary.end == FileEnd::cut);
  CHECK(out.steps.size() >= 35);
  CHECK(std::equal(out.steps.begin(), out.steps.end(), steps.begin()));
}

}  // namespace redecode
