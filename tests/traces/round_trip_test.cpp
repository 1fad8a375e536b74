#include <catch2/catch_test_macros.hpp>

#include "tests/traces/random_values.h"
#include "tests/traces/temp_folder.h"
#include "traces/byte_source.h"
#include "traces/error.h"
#include "traces/limits.h"
#include "traces/program_codec.h"
#include "traces/run_file.h"
#include "traces/trace_file.h"

namespace redecode {
namespace {

using test::TempFolder;

WriterOptions small_chunks() {
  WriterOptions options;
  options.chunk_bytes = 2000;
  options.chunk_steps = 7;
  return options;
}

struct Record {
  std::optional<Step> step;
  std::optional<StepOutput> output;
};

std::vector<Record> arbitrary_records(uint64_t seed, size_t count) {
  RandomSequence random(seed);
  std::vector<Record> records;
  for (size_t i = 0; i < count; ++i) {
    records.push_back({test::arbitrary_step(random, i), std::nullopt});
    if (random.below(2) != 0) records.push_back({std::nullopt, test::arbitrary_output(random, i)});
  }
  return records;
}

Digest write_trace(const std::filesystem::path& path, const std::vector<Record>& records) {
  TraceWriter writer(path, test::sample_trace_header(), small_chunks());
  for (const Record& record : records) {
    if (record.step) writer.write(*record.step);
    if (record.output) writer.write(*record.output);
  }
  writer.close();
  return writer.trace_digest();
}

}  // namespace

TEST_CASE("a trace of arbitrary values reads back equal") {
  const TempFolder folder;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const auto path = folder / ("t" + std::to_string(seed) + ".rdt");
    const std::vector<Record> records = arbitrary_records(seed, 100);
    const Digest digest = write_trace(path, records);

    TraceReader reader(path);
    CHECK(reader.header() == test::sample_trace_header());
    TraceRecord record;
    size_t at = 0;
    while (reader.next(record)) {
      REQUIRE(at < records.size());
      REQUIRE(record.step == records[at].step);
      REQUIRE(record.output == records[at].output);
      ++at;
    }
    CHECK(at == records.size());
    CHECK(reader.summary().end == FileEnd::clean);
    CHECK(reader.summary().cut_offset_bytes == std::filesystem::file_size(path));
    CHECK(reader.summary().trace_digest == digest);
    CHECK(reader.summary().steps == 100);
    CHECK(reader.summary().chunks > 10);
    CHECK_FALSE(reader.next(record));
  }
}

TEST_CASE("equal input gives equal bytes, other input does not") {
  const TempFolder folder;
  const auto write = [&](const std::string& name, uint64_t seed) {
    write_trace(folder / name, arbitrary_records(seed, 60));
    return test::read_bytes(folder / name);
  };
  const auto first = write("a.rdt", 5);
  CHECK(first == write("b.rdt", 5));
  CHECK(first != write("c.rdt", 6));
  CHECK(first.size() % 8 == 0);
}

TEST_CASE("a run of arbitrary values reads back equal") {
  const TempFolder folder;
  const auto path = folder / "r.rdr";
  RandomSequence random(3);
  std::vector<StepOutput> outputs;
  std::vector<Finding> findings;
  {
    RunWriter writer(path, test::sample_run_header(), small_chunks());
    for (StepIndex i = 0; i < 120; ++i) {
      outputs.push_back(test::arbitrary_output(random, i));
      findings.push_back(test::arbitrary_finding(random));
      writer.write(outputs.back());
      writer.write(findings.back());
    }
    writer.close();
  }
  RunReader reader(path);
  CHECK(reader.header() == test::sample_run_header());
  RunRecord record;
  std::vector<StepOutput> outputs_read;
  std::vector<Finding> findings_read;
  while (reader.next(record)) {
    REQUIRE(record.output.has_value() != record.finding.has_value());
    if (record.output) outputs_read.push_back(*record.output);
    if (record.finding) findings_read.push_back(*record.finding);
  }
  CHECK(outputs_read == outputs);
  CHECK(findings_read == findings);
  CHECK(reader.summary().end == FileEnd::clean);
  CHECK(reader.summary().findings == 120);
  CHECK(reader.summary().trace_digest == 77);
}

TEST_CASE("load_trace gives steps, their outputs beside them, and the digest") {
  const TempFolder folder;
  const auto path = folder / "t.rdt";
  const TraceHeader header = test::sample_trace_header();
  test::StepMaker maker(header, 4);
  std::vector<Step> steps;
  {
    TraceWriter writer(path, header, small_chunks());
    for (StepIndex i = 0; i < 200; ++i) {
      steps.push_back(maker.next());
      writer.write(steps.back());
      StepOutput output;
      output.step = i;
      output.order = std::to_string(i);
      if (i != 3 && i < 150) writer.write(output);
    }
    writer.close();
  }
  const Trace trace = load_trace(path);
  CHECK(trace.steps == steps);
  REQUIRE(trace.outputs.size() == 150);
  CHECK(trace.outputs[3].order.empty());
  CHECK(trace.outputs[3].step == 3);
  CHECK(trace.outputs[149].order == "149");
  Digest digest = 0;
  for (const Step& step : steps) digest = combine(digest, digest_step(step));
  CHECK(trace.digest == digest);
}

TEST_CASE("a writer that is not closed leaves a readable, cut file") {
  const TempFolder folder;
  const auto path = folder / "t.rdt";
  {
    TraceWriter writer(path, test::sample_trace_header());
    for (StepIndex i = 0; i < 5; ++i) {
      RandomSequence random(i);
      writer.write(test::arbitrary_step(random, i));
    }
  }
  TraceReader reader(path);
  TraceRecord record;
  size_t count = 0;
  while (reader.next(record)) ++count;
  CHECK(count == 5);
  CHECK(reader.summary().end == FileEnd::cut);
  CHECK(reader.summary().cut_offset_bytes == std::filesystem::file_size(path));
}

TEST_CASE("records near the chunk cap go into chunks of their own; larger ones are refused") {
  const TempFolder folder;
  const auto path = folder / "t.rdt";
  StepOutput large;
  large.rows.resize(3);
  for (RowOutput& row : large.rows) row.logits.assign(1u << 20, 0.0f);
  TraceWriter writer(path, test::sample_trace_header());
  writer.write(large);
  writer.write(large);
  large.rows.resize(5, large.rows[0]);
  try {
    writer.write(large);
    FAIL("a record above 16 MiB was taken");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::limit);
    CHECK(e.message().find("16777216") != std::string::npos);
  }
  large.rows.resize(1);
  large.rows[0].logits.assign((1u << 20) + 1, 0.0f);
  CHECK_THROWS_AS(writer.write(large), Error);
  writer.close();
  TraceReader reader(path);
  TraceRecord record;
  size_t count = 0;
  while (reader.next(record)) ++count;
  CHECK(count == 2);
  CHECK(reader.summary().end == FileEnd::clean);
}

TEST_CASE("a step that is refused does not spoil the steps after it") {
  const TempFolder folder;
  const auto path = folder / "t.rdt";
  test::StepMaker maker(test::sample_trace_header(), 8);
  std::vector<Step> steps;
  TraceWriter writer(path, test::sample_trace_header());
  for (int i = 0; i < 20; ++i) {
    steps.push_back(maker.next());
    writer.write(steps.back());
    if (i % 5 != 4) continue;
    Step huge = steps.back();
    huge.page_changes.assign(limits::kPageChanges, {0, 0, 99, false});
    CHECK_THROWS_AS(writer.write(huge), Error);
  }
  writer.close();
  TraceReader reader(path);
  TraceRecord record;
  std::vector<Step> read;
  while (reader.next(record)) read.push_back(*record.step);
  CHECK(read == steps);
}

TEST_CASE("64 rows of decode cost at most 170 bytes a step") {
  const TempFolder folder;
  const auto path = folder / "t.rdt";
  TraceHeader header = test::sample_trace_header();
  header.engine.page_count = 4096;
  test::StepMaker maker(header, 1, 64, 32000, 800);
  TraceWriter writer(path, header);
  for (int i = 0; i < 200; ++i) writer.write(maker.next());
  writer.flush();
  const uint64_t start_bytes = writer.bytes_written();
  constexpr uint64_t kSteps = 3000;
  for (uint64_t i = 0; i < kSteps; ++i) writer.write(maker.next());
  writer.flush();
  const uint64_t bytes = writer.bytes_written() - start_bytes;
  INFO(bytes / kSteps << " bytes a step");
  CHECK(bytes <= 170 * kSteps);
}

TEST_CASE("a program reads back equal, and equal programs give equal bytes") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    RandomSequence random(seed);
    const Program program = test::arbitrary_program(random);
    const std::vector<uint8_t> bytes = encode_program(program);
    const Program back = decode_program(bytes, "p");
    CHECK(dump(back) == dump(program));
    CHECK(back.commands == program.commands);
    CHECK(back.regions == program.regions);
    CHECK(back.touched == program.touched);
    CHECK(back.args == program.args);
    CHECK(back.transients == program.transients);
    CHECK(back.stream_count == program.stream_count);
    CHECK(encode_program(back) == bytes);
  }
}

TEST_CASE("an ill-formed program is refused") {
  const auto refused = [](auto&& spoil) {
    Program program;
    for (uint64_t seed = 1; program.commands.empty(); ++seed) {
      RandomSequence random(seed);
      program = test::arbitrary_program(random);
    }
    spoil(program);
    CHECK_FALSE(why_ill_formed(program).empty());
    CHECK_THROWS_AS(decode_program(encode_program(program), "p"), Error);
  };
  refused([](Program& p) { p.regions[0].size_bytes = 5000; });
  refused([](Program& p) { p.regions[0].offset_bytes = UINT64_MAX; });
  refused([](Program& p) { p.regions[0].buffer = BufferId::transient(9); });
  refused([](Program& p) { p.commands[0].first_arg = UINT32_MAX; });
  refused([](Program& p) { p.commands[0].name = 99; });
  refused([](Program& p) { p.commands[0].stream = 9; });
  refused([](Program& p) { p.stream_count = 17; });
  refused([](Program& p) { p.transients[0].stream = 9; });
}

}  // namespace redecode
