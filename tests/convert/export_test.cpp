#include <algorithm>
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "tests/traces/temp_folder.h"
#include "traces/convert/crc32.h"
#include "traces/convert/export_csv.h"
#include "traces/convert/export_json_lines.h"
#include "traces/convert/export_logits.h"
#include "traces/convert/export_perfetto.h"
#include "traces/convert/stats.h"
#include "traces/error.h"
#include "traces/run_file.h"
#include "traces/trace_file.h"

namespace redecode {
namespace {

using test::TempFolder;

const std::filesystem::path kTrace =
    std::filesystem::path(REDECODE_SOURCE_DIR) / "tests" / "data" / "golden-1.0.rdt";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    out.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return out;
}

uint32_t little32(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// A run of `rows` rows of 4 logits each.
std::filesystem::path make_run(const TempFolder& folder, uint32_t rows) {
  RunHeader header;
  header.model = {"test", "test", 1, 2, 4, 1};
  RunWriter writer(folder / "r.rdr", header);
  StepOutput output;
  for (uint32_t i = 0; i < rows; ++i) {
    RowOutput row;
    row.row = i;
    row.request = i;
    row.position = 10 + i;
    row.token = 3;
    row.logits = {static_cast<float>(i), 0.5f, -1.0f, 9.0f};
    output.rows.push_back(row);
  }
  writer.write(output);
  writer.close();
  return folder / "r.rdr";
}

}  // namespace

TEST_CASE("export: CSV of steps has a line a step and adds up to the trace", "[convert]") {
  const Trace trace = load_trace(kTrace);
  StringSink sink;
  const ExportResult result = export_csv(kTrace, CsvTable::steps, sink);
  const auto lines = lines_of(sink.text);
  REQUIRE(lines.size() == trace.steps.size() + 1);
  CHECK(result.items == trace.steps.size());
  CHECK(lines[0].starts_with("step,time_us,phase,bucket,rows,"));
  size_t rows = 0;
  for (size_t i = 0; i < trace.steps.size(); ++i) {
    CHECK(lines[i + 1].starts_with(std::to_string(trace.steps[i].index) + ","));
    rows += trace.steps[i].rows.size();
  }
  StringSink of_rows;
  export_csv(kTrace, CsvTable::rows, of_rows);
  CHECK(lines_of(of_rows.text).size() == rows + 1);
  StringSink of_requests;
  export_csv(kTrace, CsvTable::requests, of_requests);
  CHECK(lines_of(of_requests.text).size() == 9);
}

TEST_CASE("export: JSON lines hold every record, twice the same", "[convert]") {
  StringSink first, second;
  const ExportResult result = export_json_lines(kTrace, first);
  export_json_lines(kTrace, second);
  CHECK(first.text == second.text);
  const auto lines = lines_of(first.text);
  CHECK(lines.size() == result.items);
  CHECK(std::ranges::count_if(
            lines, [](const std::string& l) { return l.starts_with("{\"step\""); }) == 140);
  CHECK(std::ranges::count_if(
            lines, [](const std::string& l) { return l.starts_with("{\"output\""); }) == 139);
}

TEST_CASE("export: Perfetto packets are whole protobuf fields to the last byte", "[convert]") {
  StringSink sink;
  const ExportResult result = export_perfetto(kTrace, sink);
  CHECK(result.items > 140);
  size_t at = 0, packets = 0;
  while (at < sink.text.size()) {
    REQUIRE(static_cast<uint8_t>(sink.text[at++]) == 0x0a);
    size_t size = 0;
    for (int shift = 0;; shift += 7) {
      REQUIRE(at < sink.text.size());
      const auto byte = static_cast<uint8_t>(sink.text[at++]);
      size |= size_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) break;
    }
    at += size;
    ++packets;
  }
  CHECK(at == sink.text.size());
  CHECK(packets > result.items);
}

TEST_CASE("export: npy is a header of 64-byte steps and the floats as they are", "[convert]") {
  const TempFolder folder;
  StringSink sink;
  const ExportResult result = export_npy(make_run(folder, 3), sink);
  CHECK(result.items == 3);
  REQUIRE(sink.text.starts_with("\x93NUMPY"));
  const size_t data = sink.text.find('\n') + 1;
  CHECK(data % 64 == 0);
  CHECK(sink.text.find("'shape': (3, 4)") != std::string::npos);
  CHECK(sink.text.find("'descr': '<f4'") != std::string::npos);
  REQUIRE(sink.text.size() == data + 3 * 4 * 4);
  CHECK(std::bit_cast<float>(little32(sink.text, data + 16)) == 1.0f);
  CHECK(std::bit_cast<float>(little32(sink.text, data + 28)) == 9.0f);
}

TEST_CASE("export: npz is a zip whose members have the checksums they state", "[convert]") {
  const TempFolder folder;
  StringSink sink;
  export_npz(make_run(folder, 2), sink);
  size_t members = 0;
  for (size_t at = 0; at + 30 < sink.text.size() && little32(sink.text, at) == 0x04034b50;) {
    const uint32_t crc = little32(sink.text, at + 14);
    const size_t name = little32(sink.text, at + 26) & 0xffff;
    const size_t extra = little32(sink.text, at + 26) >> 16;
    const size_t data = at + 30 + name + extra;
    size_t size = little32(sink.text, at + 18);
    if (size == UINT32_MAX) {  // zip64: the sizes stand in the extra field
      REQUIRE(extra >= 20);
      CHECK((little32(sink.text, at + 30 + name) & 0xffff) == 1);
      size = little32(sink.text, at + 30 + name + 4);
    }
    REQUIRE(data + size <= sink.text.size());
    CHECK(crc32(sink.text.data() + data, size) == crc);
    at = data + size;
    ++members;
  }
  CHECK(members == 5);
  CHECK(crc32("123456789", 9) == 0xCBF43926u);
  CHECK(crc32_joined(crc32("1234", 4), crc32("56789", 5), 5) == 0xCBF43926u);
}

TEST_CASE("export: without logits the error says how to get them", "[convert]") {
  StringSink sink;
  try {
    export_npy(kTrace, sink);
    FAIL("exported");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::usage);
    CHECK((e.message() + e.context()).find("full-logits") != std::string::npos);
  }
}

TEST_CASE("export: a cut trace is exported as far as it goes, and that is said", "[convert]") {
  const TempFolder folder;
  auto bytes = test::read_bytes(kTrace);
  bytes.resize(bytes.size() * 3 / 4);
  test::write_bytes(folder / "cut.rdt", bytes);
  StringSink sink;
  const ExportResult result = export_csv(folder / "cut.rdt", CsvTable::steps, sink);
  CHECK(result.end == FileEnd::cut);
  CHECK(result.items < 140);
}

TEST_CASE("stats: what a trace adds up to", "[convert]") {
  const Trace trace = load_trace(kTrace);
  const TraceStats stats = trace_stats(kTrace);
  uint64_t rows = 0, wanted = 0;
  for (const Step& step : trace.steps) {
    rows += step.rows.size();
    for (const Row& row : step.rows) wanted += row.wants_output;
  }
  CHECK(stats.steps.rows == rows);
  CHECK(stats.steps.sampled_tokens == wanted);
  CHECK(stats.steps.phases[0].steps + stats.steps.phases[1].steps + stats.steps.phases[2].steps ==
        140);
  CHECK(stats.requests.arrivals == 8);
  CHECK(stats.requests.departures[0] == 8);
  const std::string text = to_text(stats);
  CHECK(text.find("steps                 140, 0..139") != std::string::npos);
  CHECK(to_json(stats) == to_json(trace_stats(kTrace)));
}

}  // namespace redecode
