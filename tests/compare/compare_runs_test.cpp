#include "compare/compare_runs.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "tests/compare/make.h"

using namespace redecode;
using namespace redecode::test;

namespace {
CompareResult compare(const MemoryRun& golden, const MemoryRun& candidate,
                      const Trace* trace = nullptr, const CompareOptions& options = {}) {
  return compare_runs(open_run_in_memory(golden), open_run_in_memory(candidate), trace, options);
}

// Row 1 of step 2 of the candidate holds the logits of `donor`.
MemoryRun with_data_of(const MemoryRun& golden, const RowOutput& donor) {
  MemoryRun out = golden;
  out.outputs[2].rows[1].logits = donor.logits;
  refresh_digest(out.outputs[2].rows[1]);
  return out;
}
}  // namespace

TEST_CASE("a row that holds another row's data names the donor") {
  const MemoryRun golden = make_run(5);
  SECTION("of the same step") {
    const auto labels = compare(golden, with_data_of(golden, golden.outputs[2].rows[0])).labels;
    REQUIRE(labels.size() == 1);
    CHECK(labels[0].row == 1);
    CHECK(labels[0].request == 5);
    CHECK(labels[0].donor == Donor{2, 4, 0, 2});
  }
  SECTION("of an earlier step") {
    CHECK(compare(golden, with_data_of(golden, golden.outputs[0].rows[1])).labels[0].donor ==
          Donor{0, 5, 1, 0});
  }
  SECTION("of a later step") {
    CHECK(compare(golden, with_data_of(golden, golden.outputs[4].rows[0])).labels[0].donor ==
          Donor{4, 4, 0, 4});
  }
  SECTION("of nobody") {
    CHECK_FALSE(compare(golden, with_data_of(golden, make_row(0, 99, 99))).labels[0].donor);
  }
}

TEST_CASE(
    "of several donors the own step's wins, then the latest before, then the earliest after") {
  MemoryRun golden = make_run(6);
  const RowOutput donor = make_row(0, 99, 99);
  const auto put = [&](size_t step) {
    golden.outputs[step].rows[0].logits = donor.logits;
    refresh_digest(golden.outputs[step].rows[0]);
  };
  const auto found = [&] {
    return compare(golden, with_data_of(golden, donor)).labels[0].donor->step;
  };
  put(5);
  put(4);
  CHECK(found() == 4);
  put(0);
  CHECK(found() == 0);
  put(1);
  CHECK(found() == 1);
  put(2);
  CHECK(found() == 2);
}

TEST_CASE("NaN and infinities are labelled") {
  const MemoryRun golden = make_run(3);
  MemoryRun candidate = golden;
  RowOutput& row = candidate.outputs[1].rows[0];
  row.logits[3] = std::numeric_limits<float>::quiet_NaN();
  refresh_digest(row);
  CHECK(compare(golden, candidate).labels[0].has_nan);
  CHECK_FALSE(compare(golden, candidate).labels[0].has_infinity);
  row.top[0].logit = -std::numeric_limits<float>::infinity();
  CHECK(compare(golden, candidate).labels[0].has_infinity);
}

TEST_CASE("the trace names sessions, and the request of an op's row") {
  MemoryRun golden = make_run(2);
  golden.outputs[0].ops = {make_op("wq_b", 0, 3, 0, {1, 2, 3, 4, 5, 6})};
  golden.outputs[0].rows.pop_back();  // row 1 has no output
  MemoryRun candidate = golden;
  candidate.outputs[0].ops = {make_op("wq_b", 0, 3, 0, {1, 2, 3, 9, 5, 6})};
  const Trace trace = make_trace();
  CHECK(compare(golden, candidate).divergence->request == kNoRequest);
  const CompareResult result = compare(golden, candidate, &trace);
  CHECK(result.divergence->row == 1);
  CHECK(result.divergence->request == 5);
  CHECK(result.divergence->position == 0u);
  CHECK(result.session == SessionPlace{1, 0});
  CHECK_FALSE(result.padding_row);
  CHECK(result.sessions_known);
  CHECK(result.sessions.sessions.size() == 2);
  candidate.outputs[0].ops = {make_op("wq_b", 0, 3, 0, {1, 2, 3, 4, 9, 6})};
  CHECK(compare(golden, candidate, &trace).padding_row);
}

TEST_CASE("a trace that is not theirs is incomparable") {
  Trace trace = make_trace();
  trace.digest = 99;
  CHECK(compare(make_run(1), make_run(1), &trace).verdict.kind == VerdictKind::incomparable);
}

TEST_CASE("all steps are counted, the first is described") {
  const MemoryRun golden = make_run(5);
  MemoryRun candidate = golden;
  for (size_t step = 2; step < 5; ++step) candidate.outputs[step].rows[1].token = 0;
  candidate.outputs[2].rows[0].token = 0;
  candidate.outputs[2].order = "s3@12";
  const CompareResult result = compare(golden, candidate);
  CHECK(result.divergence->step == 2);
  CHECK(result.steps_differing == 3);
  CHECK(result.rows_differing == 2);
  CHECK(result.tokens_differing == 2);
  CHECK(result.sessions.tokens_differing == 4);
  CHECK(result.sessions.requests_corrupted == 2);
  CHECK(result.candidate_order == "s3@12");
}

TEST_CASE("the caller says what the op reads") {
  MemoryRun golden = make_run(1);
  golden.outputs[0].ops = {make_op("indexer.logits", 1, 3, 0, {1, 2})};
  MemoryRun candidate = golden;
  candidate.outputs[0].ops = {make_op("indexer.logits", 1, 3, 0, {1, 3})};
  candidate.findings = {make_finding(FindingKind::race, 0, "a", "b"),
                        make_finding(FindingKind::race, 0, "c", "d")};
  candidate.findings[1].second.buffer = "index_k";
  CompareOptions options;
  options.buffers_read = [](StepIndex step, const DivergingOp& op) {
    CHECK(step == 0);
    CHECK(op.name == "indexer.logits");
    return std::vector<std::string>{"index_k"};
  };
  const auto explanation = compare(golden, candidate, nullptr, options).explanation;
  CHECK(explanation->match == Match::buffer);
  CHECK(explanation->finding.first.op == "c");
}

TEST_CASE("findings over the limit are counted") {
  const MemoryRun golden = make_run(2);
  MemoryRun candidate = golden;
  candidate.outputs[1].rows[0].token = 0;
  for (int i = 0; i < 5; ++i)
    candidate.findings.push_back(make_finding(FindingKind::race, 1, "a", "b"));
  CompareOptions options;
  options.max_findings = 2;
  const CompareResult result = compare(golden, candidate, nullptr, options);
  CHECK(result.findings_total == 5);
  CHECK(result.findings_dropped == 3);
  CHECK(result.explanation);
}
