#include "compare/divergence.h"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "compare/row_output.h"
#include "tests/compare/make.h"
#include "traces/error.h"

using namespace redecode;
using namespace redecode::test;

namespace {
std::optional<Divergence> first(const MemoryRun& golden, const MemoryRun& candidate,
                                uint32_t max_ulps = 0) {
  return first_divergence(*open_run_in_memory(golden)(), *open_run_in_memory(candidate)(),
                          max_ulps);
}
}  // namespace

TEST_CASE("equal runs have no divergence") {
  const MemoryRun golden = make_run(4);
  CHECK_FALSE(first(golden, golden));
  CHECK_FALSE(first(make_run(0), make_run(0)));
}

TEST_CASE("a logit of any row of any step is found at its place") {
  const MemoryRun golden = make_run(3);
  for (size_t step = 0; step < 3; ++step)
    for (size_t row = 0; row < 2; ++row)
      for (size_t element = 0; element < 8; ++element) {
        MemoryRun candidate = golden;
        float& logit = candidate.outputs[step].rows[row].logits[element];
        logit = std::nextafter(logit, 1e9f);
        const auto d = first(golden, candidate);
        REQUIRE(d);
        CHECK(d->place == Place::logits);
        CHECK(d->step == step);
        CHECK(d->row == row);
        CHECK(d->request == 4 + row);
        CHECK(d->position == step);
        CHECK(d->element == element);
        CHECK(d->distance_ulps == 1);
        CHECK(d->elements_differing == 1);
        CHECK(d->expected_bits ==
              std::bit_cast<uint32_t>(golden.outputs[step].rows[row].logits[element]));
        CHECK(d->found_bits == std::bit_cast<uint32_t>(logit));
        CHECK_FALSE(d->token_differs());
      }
}

TEST_CASE("the least of several divergences is reported") {
  const MemoryRun golden = make_run(3);
  MemoryRun candidate = golden;
  candidate.outputs[2].rows[0].token = 1;
  CHECK(first(golden, candidate)->step == 2);
  candidate.outputs[1].rows[1].token = 1;
  CHECK(first(golden, candidate)->step == 1);
  CHECK(first(golden, candidate)->row == 1);
  candidate.outputs[1].rows[0].logits[5] = 0;
  CHECK(first(golden, candidate)->row == 0);
  CHECK(first(golden, candidate)->element == 5);
  candidate.outputs[1].rows[0].token = 3;
  CHECK(first(golden, candidate)->place == Place::logits);
  CHECK(first(golden, candidate)->found_token == 3);
}

TEST_CASE("without full logits the list of the largest names the logit") {
  const MemoryRun golden = make_run(1, false);
  MemoryRun candidate = golden;
  RowOutput& row = candidate.outputs[0].rows[1];
  row.logits_digest ^= 1;
  CHECK(first(golden, candidate)->place == Place::digest);
  row.log_sum_exp += 1.0f;
  CHECK(first(golden, candidate)->place == Place::log_sum_exp);
  row.top[1].logit += 0.0625f;
  auto d = first(golden, candidate);
  CHECK(d->place == Place::logits);
  CHECK(d->element == 6u);
  CHECK(d->found_bits == std::bit_cast<uint32_t>(row.top[1].logit));
}

TEST_CASE("a logit that moves others about the list is named, not the ones it moved") {
  const RowOutput golden = make_row(0, 4, 0, false);  // tokens 7, 6, 5
  RowOutput candidate = golden;
  candidate.logits_digest ^= 1;
  SECTION("from within the list") {
    candidate.top = {{5, 1e6f}, golden.top[0], golden.top[1]};
    const auto d = compare_row(golden, candidate);
    CHECK(d->element == 5u);
    CHECK(d->expected_bits == std::bit_cast<uint32_t>(golden.top[2].logit));
    CHECK(d->found_bits == std::bit_cast<uint32_t>(1e6f));
  }
  SECTION("from outside the list") {
    candidate.top = {{2, 1e6f}, golden.top[0], golden.top[1]};
    const auto d = compare_row(golden, candidate);
    CHECK(d->element == 2u);
    CHECK_FALSE(d->expected_bits);
    CHECK(d->found_bits == std::bit_cast<uint32_t>(1e6f));
  }
  SECTION("by an order that is not the order of the list") {
    candidate.top = {golden.top[1], golden.top[0], golden.top[2]};
    candidate.logits_digest = golden.logits_digest;
    CHECK(compare_row(golden, candidate)->place == Place::digest);
  }
}

TEST_CASE("a token that differs from equal logits is a divergence of its own") {
  const MemoryRun golden = make_run(2);
  MemoryRun candidate = golden;
  candidate.outputs[1].rows[0].token = 2;
  const auto d = first(golden, candidate);
  CHECK(d->place == Place::token);
  CHECK(d->expected_token == 7);
  CHECK(d->found_token == 2);
}

TEST_CASE("signed zeros and NaN payloads are bits like any other") {
  RowOutput golden = make_row(0, 4, 0);
  golden.logits[3] = 0.0f;
  golden.top[2].logit = std::bit_cast<float>(0x7fc00000u);
  RowOutput candidate = golden;
  CHECK_FALSE(compare_row(golden, candidate));  // equal NaN bits are equal
  candidate.logits[3] = -0.0f;
  CHECK(compare_row(golden, candidate)->element == 3u);
  CHECK(compare_row(golden, candidate)->distance_ulps == 1);
  candidate = golden;
  candidate.top[2].logit = std::bit_cast<float>(0x7fc00001u);
  CHECK(compare_row(golden, candidate)->place == Place::logits);
  candidate = golden;
  candidate.logits[6] = std::bit_cast<float>(0x7fc00000u);
  CHECK(compare_row(golden, candidate)->distance_ulps == UINT32_MAX);
  CHECK(compare_row(golden, candidate)->found_text == "nan");
  CHECK(compare_row(golden, candidate, UINT32_MAX - 1));
}

TEST_CASE("rows that one run lacks, or of another request, are divergences") {
  const MemoryRun golden = make_run(1);
  MemoryRun candidate = golden;
  candidate.outputs[0].rows.pop_back();
  auto d = first(golden, candidate);
  CHECK(d->place == Place::rows);
  CHECK(d->row == 1);
  CHECK_FALSE(d->found_token);
  CHECK_FALSE(d->token_differs());
  d = first(candidate, golden);
  CHECK(d->place == Place::rows);
  CHECK_FALSE(d->expected_token);
  candidate = golden;
  candidate.outputs[0].rows[0].request = 9;
  CHECK(first(golden, candidate)->place == Place::rows);
  candidate = golden;
  candidate.outputs[0].rows[1].position = 77;
  CHECK(first(golden, candidate)->place == Place::rows);
  CHECK(first(golden, candidate)->row == 1);
}

TEST_CASE("a tolerance loosens logits, never tokens") {
  const MemoryRun golden = make_run(1);
  MemoryRun candidate = golden;
  RowOutput& row = candidate.outputs[0].rows[0];
  row.logits[2] = std::nextafter(row.logits[2], 1e9f);
  refresh_digest(row);
  CHECK(first(golden, candidate));
  CHECK_FALSE(first(golden, candidate, 1));
  row.token = 0;
  CHECK(first(golden, candidate, 1)->place == Place::token);
}

TEST_CASE("a tolerance without full logits judges the list of the largest by token") {
  const RowOutput golden = make_row(0, 4, 0, false);
  RowOutput candidate = golden;
  candidate.logits_digest ^= 1;
  CHECK_FALSE(compare_row(golden, candidate, 4));
  candidate.top[1].logit = std::nextafter(candidate.top[1].logit, 1e9f);
  CHECK_FALSE(compare_row(golden, candidate, 4));
  candidate.top[1].logit += 0.01f;
  CHECK(compare_row(golden, candidate, 4)->element == 6u);
  candidate = golden;
  candidate.log_sum_exp = NAN;
  CHECK(compare_row(golden, candidate, 4)->place == Place::log_sum_exp);
}

TEST_CASE("a step's difference counts rows and tokens") {
  const StepOutput golden = make_step(3);
  StepOutput candidate = golden;
  candidate.rows[0].logits[0] = 5;
  candidate.rows[1].logits[1] = 5;
  candidate.rows[1].token = 0;
  const StepDifference d = compare_step(golden, candidate);
  CHECK(d.rows_compared == 2);
  REQUIRE(d.rows.size() == 2);
  CHECK(d.tokens_differing == 1);
  CHECK(d.rows[1].step == 3);
  CHECK(d.first->row == 0);
}

TEST_CASE("rows and steps that do not ascend are corrupt") {
  const MemoryRun golden = make_run(2);
  MemoryRun candidate = golden;
  std::swap(candidate.outputs[0].rows[0], candidate.outputs[0].rows[1]);
  CHECK_THROWS_AS(first(golden, candidate), Error);
  candidate = golden;
  std::swap(candidate.outputs[0], candidate.outputs[1]);
  CHECK_THROWS_AS(first(golden, candidate), Error);
}

TEST_CASE("only steps that both runs hold are compared") {
  const MemoryRun golden = make_run(6);
  MemoryRun candidate = golden;
  candidate.outputs[1].rows[0].token = 0;
  candidate.outputs[3].rows[0].token = 0;
  candidate.outputs.erase(candidate.outputs.begin(), candidate.outputs.begin() + 2);
  CHECK(first(golden, candidate)->step == 3);
}
