#include "compare/verdict.h"

#include <catch2/catch_test_macros.hpp>

#include "compare/compare_runs.h"
#include "tests/compare/make.h"

using namespace redecode;
using namespace redecode::test;

namespace {
CompareResult compare(const MemoryRun& golden, const MemoryRun& candidate,
                      const CompareOptions& options = {}) {
  return compare_runs(open_run_in_memory(golden), open_run_in_memory(candidate), nullptr, options);
}

bool says(const Verdict& verdict, std::string_view text) {
  for (const std::string& reason : verdict.reasons)
    if (reason.find(text) != std::string::npos) return true;
  return false;
}
}  // namespace

TEST_CASE("exit codes follow the verdict") {
  CHECK(exit_code(VerdictKind::identical) == 0);
  CHECK(exit_code(VerdictKind::explained) == 1);
  CHECK(exit_code(VerdictKind::diverged) == 1);
  CHECK(exit_code(VerdictKind::incomparable) == 3);
}

TEST_CASE("equal runs are identical") {
  const CompareResult result = compare(make_run(5), make_run(5));
  CHECK(result.verdict == Verdict{});
  CHECK(result.coverage.common_steps == 5);
  CHECK(result.sessions.rows_compared == 10);
  CHECK(result.steps_differing == 0);
}

TEST_CASE("runs whose headers do not fit are incomparable, with the reason") {
  const MemoryRun golden = make_run(2);
  const auto reason = [&](auto change) {
    MemoryRun candidate = golden;
    candidate.outputs[0].rows[0].token = 0;
    change(candidate.header);
    const CompareResult result = compare(golden, candidate);
    CHECK(result.verdict.kind == VerdictKind::incomparable);
    CHECK_FALSE(result.divergence);
    REQUIRE(result.verdict.reasons.size() == 1);
    return result.verdict.reasons[0].substr(0, result.verdict.reasons[0].find(':'));
  };
  CHECK(reason([](RunHeader& h) { h.trace_digest = 1; }) == "different trace");
  CHECK(reason([](RunHeader& h) { h.model.config_digest = 1; }) == "different model");
  CHECK(reason([](RunHeader& h) { h.model.vocab = 1; }) == "different model");
  CHECK(reason([](RunHeader& h) { h.model.layers = 1; }) == "different model");
  CHECK(reason([](RunHeader& h) { h.model.weights_digest = 1; }) == "different weights");
  CHECK(reason([](RunHeader& h) { h.mode.kernels = KernelSet::fast; }) == "different kernel sets");
  CHECK(reason([](RunHeader& h) { h.mode.index_key = IndexKeyType::fp8; }) ==
        "different index keys");
}

TEST_CASE("modes that may not change a bit are compared") {
  const MemoryRun golden = make_run(2);
  MemoryRun candidate = golden;
  candidate.header.mode.streams = StreamMode::multi;
  candidate.header.mode.capture = CaptureMode::graph;
  candidate.header.mode.backend = Backend::cuda;
  candidate.header.mode.topk = TopkVersion::v1;
  candidate.header.mode.feedback = Feedback::own;
  candidate.header.mode.order = "seed:7";
  candidate.header.mode.inject = {"early_free"};
  candidate.header.mode.poison = true;
  candidate.header.writer = "redecode 9";
  CHECK(compare(golden, candidate).verdict.kind == VerdictKind::identical);
}

TEST_CASE("kernel sets are compared within a named tolerance") {
  const MemoryRun golden = make_run(2);
  MemoryRun candidate = golden;
  candidate.header.mode.kernels = KernelSet::fast;
  CompareOptions options;
  options.max_ulps = 16;
  CHECK(compare(golden, candidate, options).verdict.kind == VerdictKind::identical);
}

TEST_CASE("a run cut short is incomparable unless a prefix is allowed") {
  const MemoryRun golden = make_run(6);
  MemoryRun candidate = golden;
  candidate.outputs.resize(4);
  CompareOptions prefix;
  prefix.allow_prefix = true;
  SECTION("closed early") {}
  SECTION("cut") { candidate.end = FileEnd::cut; }
  const CompareResult strict = compare(golden, candidate);
  CHECK(strict.verdict.kind == VerdictKind::incomparable);
  CHECK(says(strict.verdict, "the candidate lacks 2 steps of the golden, the first is step 4"));
  CHECK(says(strict.verdict, "cut short") == (candidate.end == FileEnd::cut));
  const CompareResult lenient = compare(golden, candidate, prefix);
  CHECK(lenient.verdict.kind == VerdictKind::identical);
  CHECK(says(lenient.verdict, "identical in 4 steps from step 0 up to step 3"));
}

TEST_CASE("a cut golden, and one that lacks steps, are said") {
  MemoryRun golden = make_run(6);
  const MemoryRun candidate = golden;
  golden.end = FileEnd::cut;
  golden.outputs.erase(golden.outputs.begin() + 2);
  const Verdict verdict = compare(golden, candidate).verdict;
  CHECK(verdict.kind == VerdictKind::incomparable);
  CHECK(says(verdict, "the golden run was cut short"));
  CHECK(says(verdict, "the golden lacks 1 step of the candidate, the first is step 2"));
}

TEST_CASE("a divergence counts although the run was cut") {
  const MemoryRun golden = make_run(6);
  MemoryRun candidate = golden;
  candidate.outputs.resize(4);
  candidate.outputs[3].rows[0].token = 0;
  const CompareResult result = compare(golden, candidate);
  CHECK(result.verdict.kind == VerdictKind::diverged);
  CHECK(says(result.verdict, "lacks 2 steps"));
}

TEST_CASE("runs without a common step are incomparable even as a prefix") {
  CompareOptions prefix;
  prefix.allow_prefix = true;
  CHECK(compare(make_run(3), make_run(0), prefix).verdict.kind == VerdictKind::incomparable);
  CHECK(compare(make_run(0), make_run(0), prefix).verdict.kind == VerdictKind::incomparable);
}

TEST_CASE("explained: the declared reduction shape of the first diverging op changed") {
  MemoryRun golden = make_run(2);
  golden.outputs[1].ops = {make_op("attention", 1, 4, 0, {1, 2}), make_op("wo", 1, 5, 0, {3, 4})};
  MemoryRun candidate = golden;
  candidate.outputs[1].ops[0] = make_op("attention", 1, 4, 0, {1, 3});
  candidate.findings = {make_finding(FindingKind::race, 1, "attention", "x")};
  CHECK(compare(golden, candidate).verdict.kind == VerdictKind::diverged);
  candidate.findings.push_back(make_finding(FindingKind::numeric, 1, "wo", ""));
  CHECK(compare(golden, candidate).verdict.kind == VerdictKind::diverged);
  candidate.findings.push_back(make_finding(FindingKind::numeric, 1, "attention", ""));
  const CompareResult result = compare(golden, candidate);
  CHECK(result.verdict.kind == VerdictKind::explained);
  CHECK(says(result.verdict, "`attention`"));
  CHECK(exit_code(result.verdict.kind) == 1);
}
