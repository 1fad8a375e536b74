#include <catch2/catch_test_macros.hpp>

#include "tests/traces/temp_folder.h"
#include "traces/byte_source.h"
#include "traces/run_file.h"
#include "traces/trace_file.h"

namespace redecode {
namespace {

const std::filesystem::path kData = std::filesystem::path(REDECODE_SOURCE_DIR) / "tests" / "data";

}  // namespace

// tests/data/golden-1.0.*: what `redecode record --sessions 4 --rounds 2` and `redecode replay` of
// format 1.0 wrote. Never made again.
TEST_CASE("golden: a trace of format 1.0 reads, whole and valid") {
  const Trace trace = load_trace(kData / "golden-1.0.rdt");
  CHECK(trace.steps.size() == 140);
  CHECK(trace.outputs.size() == 139);
  CHECK(trace.digest == 0x82756df9c5977df5u);
  CHECK(trace.end == FileEnd::clean);
  CHECK(trace.gaps.empty());
  CHECK(trace.start == Keyframe());
  CHECK(trace.header.model.weights_digest == 0x7d8ce144202c649cu);
  CHECK(trace.header.model.weights_sha256.empty());
  CHECK(trace.header.place == SetPlace());
  CHECK(trace.header.redaction == Redaction::none);
  CHECK(trace.steps.back().time_us == 0);
}

TEST_CASE("golden: a run of format 1.0 reads, and belongs to the trace") {
  RunReader reader(kData / "golden-1.0.rdr");
  CHECK(reader.header().trace_digest == 0x82756df9c5977df5u);
  RunRecord record;
  size_t outputs = 0;
  while (reader.next(record)) outputs += record.output ? 1 : 0;
  CHECK(outputs == 140);
  CHECK(reader.summary().run_digest == 0x4e0b598ca9dfa219u);
  CHECK(reader.summary().end == FileEnd::clean);
}

TEST_CASE("golden: a trace of format 1.0 seeks and salvages without index and keyframes") {
  const auto path = kData / "golden-1.0.rdt";
  const Trace trace = load_trace(path);
  for (const StepIndex to : {0u, 70u, 139u}) {
    TraceReader reader(path);
    REQUIRE(reader.seek(to));
    TraceRecord record;
    do REQUIRE(reader.next(record));
    while (!record.step || record.step->index < to);
    CHECK(*record.step == trace.steps[to]);
  }
  std::vector<uint8_t> bytes = test::read_bytes(path);
  bytes[bytes.size() / 2] ^= 4;  // in its only data chunk
  TraceReader reader(in_memory(bytes, "flipped"), {.salvage = true});
  TraceRecord record;
  std::vector<Gap> gaps;
  while (reader.next(record)) {
    CHECK_FALSE(record.step);
    if (record.gap) gaps.push_back(*record.gap);
  }
  REQUIRE(gaps.size() == 1);
  CHECK(gaps[0].first == 0);
  CHECK(gaps[0].count == 140);
  CHECK(reader.damage().size() == 1);
  CHECK(reader.summary().end == FileEnd::clean);
}

}  // namespace redecode
