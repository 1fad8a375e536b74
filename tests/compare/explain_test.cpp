#include "compare/explain.h"

#include <catch2/catch_test_macros.hpp>

#include "tests/compare/make.h"

using namespace redecode;
using namespace redecode::test;

namespace {
Divergence at_op(StepIndex step = 10) {
  Divergence out;
  out.place = Place::op;
  out.step = step;
  out.request = 5;
  out.op = DivergingOp{"indexer.logits", 1, 0, 40, 0, 40, 3};
  return out;
}

Finding race(StepIndex step, std::string first, std::string second, uint32_t layer = 1) {
  return make_finding(FindingKind::race, step, std::move(first), std::move(second), layer);
}
}  // namespace

TEST_CASE("nothing is explained without findings, or by later ones") {
  CHECK_FALSE(explain(at_op(), {}));
  CHECK_FALSE(explain(at_op(), std::vector{race(11, "indexer.logits", "wq_b")}));
}

TEST_CASE("the op's own finding explains, by name and layer") {
  const std::vector<Finding> findings = {
      race(10, "norm", "wq_b"), race(10, "indexer.logits", "wq_b", 0),
      race(10, "wq_b", "indexer.logits"), race(10, "indexer.logits", "wq_b"),
      race(10, "indexer.logits", "other")};
  const auto e = explain(at_op(), findings);
  REQUIRE(e);
  CHECK(e->match == Match::op);
  CHECK(e->finding == findings[3]);  // where it reads, before where it writes
}

TEST_CASE("the op's finding of the nearest step before is taken") {
  const std::vector<Finding> findings = {race(2, "indexer.logits", "wq_b"),
                                         race(7, "indexer.logits", "wq_b"),
                                         race(12, "indexer.logits", "wq_b"), race(10, "a", "b")};
  const auto e = explain(at_op(), findings);
  CHECK(e->match == Match::op);
  CHECK(e->finding.step == 7);
}

TEST_CASE("else a finding that writes a buffer that the op reads") {
  std::vector<Finding> findings = {race(10, "a", "b"), race(10, "c", "d")};
  findings[1].second.buffer = "index_q";
  const std::vector<std::string> read = {"weights", "index_q"};
  const auto e = explain(at_op(), findings, read);
  CHECK(e->match == Match::buffer);
  CHECK(e->finding == findings[1]);  // the first reads index_q only
  CHECK(explain(at_op(), findings)->match == Match::step);
}

TEST_CASE("else the request's finding, else the first of the step, else the nearest before") {
  std::vector<Finding> findings = {race(4, "a", "b"), race(9, "c", "d"), race(9, "e", "f"),
                                   race(10, "g", "h"), race(10, "i", "j")};
  findings[0].request = 5;
  CHECK(explain(at_op(), findings)->match == Match::request);
  CHECK(explain(at_op(), findings)->finding == findings[0]);
  findings[0].request = 6;
  CHECK(explain(at_op(), findings)->match == Match::step);
  CHECK(explain(at_op(), findings)->finding == findings[3]);
  findings.resize(3);
  CHECK(explain(at_op(), findings)->match == Match::earlier_step);
  CHECK(explain(at_op(), findings)->finding == findings[1]);
}

TEST_CASE("a divergence of no op is explained by request and step") {
  Divergence d;
  d.step = 10;
  CHECK(explain(d, std::vector{race(10, "indexer.logits", "wq_b")})->match == Match::step);
}

TEST_CASE("a numeric finding must name the op") {
  std::vector<Finding> findings = {race(10, "indexer.logits", "wq_b"),
                                   make_finding(FindingKind::numeric, 10, "norm", ""),
                                   make_finding(FindingKind::numeric, 10, "indexer.logits", "", 0)};
  CHECK_FALSE(numeric_finding(at_op(), findings));
  findings.push_back(make_finding(FindingKind::numeric, 3, "indexer.logits", ""));
  CHECK(numeric_finding(at_op(), findings) == findings.back());
  CHECK_FALSE(numeric_finding(at_op(2), findings));
  CHECK_FALSE(numeric_finding(Divergence{}, findings));
}

TEST_CASE("the log of findings keeps the newest, and none after the divergence") {
  FindingLog log(3);
  for (StepIndex step = 0; step < 5; ++step) log.add(race(step, "a", "b"));
  CHECK(log.total() == 5);
  CHECK(log.dropped() == 2);
  CHECK(log.kept().front().step == 2);
  log.diverged_at(4);
  log.add(race(5, "a", "b"));
  CHECK(log.total() == 6);
  CHECK(log.kept().back().step == 4);
  log.add(race(4, "late", "b"));
  CHECK(log.kept().back().first.op == "late");
}
