#include "compare/report.h"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>

#include "tests/compare/make.h"

using namespace redecode;
using namespace redecode::test;

namespace {
// Compares `text` with the approved file of this name; REDECODE_APPROVE=1 rewrites the file
// instead.
void check_approved(const std::string& name, const std::string& text) {
  const std::string path = std::string(REDECODE_SOURCE_DIR) + "/tests/compare/approved/" + name;
  const char* approve = std::getenv("REDECODE_APPROVE");
  if (approve != nullptr && std::string_view(approve) == "1") {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.good());
  const std::string approved{std::istreambuf_iterator<char>(file), {}};
  CHECK(text == approved);
}

// The story in small: a racy op in step 2 of a multi-stream graph run.
CompareResult racy() {
  MemoryRun golden = make_run(4);
  golden.outputs[2].ops = {make_op("wq_b", 1, 38, 0, {1, 2, 3, 4}),
                           make_op("indexer.logits", 1, 40, 0, {0.5f, 0.25f, 0.125f, 1.0f})};
  MemoryRun candidate = golden;
  candidate.header.mode.streams = StreamMode::multi;
  candidate.header.mode.capture = CaptureMode::graph;
  candidate.header.mode.order = "seed:7";
  candidate.outputs[2].ops = {make_op("wq_b", 1, 38, 0, {1, 2, 3, 4}),
                              make_op("indexer.logits", 1, 44, 3, {0.5f, 0.25f, 0.1875f, 1.5f})};
  candidate.outputs[2].order = "s0@41";
  candidate.outputs[2].rows[1].logits = golden.outputs[1].rows[0].logits;
  refresh_digest(candidate.outputs[2].rows[1]);
  candidate.outputs[2].rows[1].token = 3;
  candidate.outputs[3].rows[1].logits[2] = std::numeric_limits<float>::quiet_NaN();
  candidate.findings = {make_finding(FindingKind::race, 2, "indexer.logits", "wq_b")};
  candidate.findings[0].missing_edge = "indexer.logits (stream 3) -> wq_b (stream 0)";
  candidate.findings[0].advice = "Add a wait on stream 0 for stream 3 before `wq_b`.";
  const Trace trace = make_trace();
  return compare_runs(open_run_in_memory(golden), open_run_in_memory(candidate), &trace);
}
}  // namespace

TEST_CASE("the report of a race is as approved") {
  check_approved("race.txt", report_text(racy()));
}

TEST_CASE("the JSON of a race is as approved") {
  check_approved("race.json", report_json(racy()) + "\n");
}

TEST_CASE("the report of identical runs is as approved") {
  const MemoryRun run = make_run(4);
  const Trace trace = make_trace();
  check_approved("identical.txt", report_text(compare_runs(open_run_in_memory(run),
                                                           open_run_in_memory(run), &trace)));
}

TEST_CASE("the report of incomparable runs is as approved") {
  const MemoryRun golden = make_run(4);
  MemoryRun candidate = golden;
  candidate.header.trace_digest = 14;
  candidate.header.mode.kernels = KernelSet::fast;
  check_approved("incomparable.txt",
                 report_text(compare_runs(open_run_in_memory(golden), open_run_in_memory(candidate),
                                          nullptr)));
}

TEST_CASE("an unprobed divergence without findings says what to do next") {
  const MemoryRun golden = make_run(4, false);
  MemoryRun candidate = golden;
  candidate.outputs[1].rows[0].logits_digest ^= 1;
  candidate.outputs[1].rows[0].log_sum_exp = std::numeric_limits<float>::infinity();
  check_approved("unprobed.txt", report_text(compare_runs(open_run_in_memory(golden),
                                                          open_run_in_memory(candidate), nullptr)));
}

TEST_CASE("no line of a report is wider than 100 columns") {
  const std::string text = report_text(racy());
  size_t start = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
    CHECK(end - start <= 100);
    CHECK((end == start || text[end - 1] != ' '));
    start = end + 1;
  }
  CHECK(start == text.size());
}

TEST_CASE("equal results give equal reports") {
  CHECK(report_text(racy()) == report_text(racy()));
  CHECK(report_json(racy()) == report_json(racy()));
}
