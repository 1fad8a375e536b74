#include "compare/ops.h"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "tests/compare/make.h"

using namespace redecode;
using namespace redecode::test;

namespace {
std::vector<OpProbe> ops() {
  return {make_op("norm", 0, 2, 0, {1, 2, 3, 4}), make_op("wq_b", 0, 4, 0, {5, 6, 7, 8}),
          make_op("norm", 0, 6, 0, {1, 1, 1, 1}), make_op("norm", 1, 8, 0, {2, 2, 2, 2}),
          make_op("indexer.logits", 1, 9, 0, {3, 3, 3, 3})};
}

void change(OpProbe& op, size_t element, float value) {
  std::vector<float> values(op.values.size() / 4);
  std::memcpy(values.data(), op.values.data(), op.values.size());
  values[element] = value;
  op = make_op(op.op, op.layer, op.command, op.stream, values);
}

// As a multi-stream run numbers the same step: other commands, other streams, other order.
std::vector<OpProbe> renumbered() {
  std::vector<OpProbe> out = ops();
  const uint32_t commands[] = {12, 30, 31, 40, 20}, streams[] = {0, 1, 0, 0, 3};
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].command = commands[i];
    out[i].stream = streams[i];
  }
  std::swap(out[1], out[4]);
  return out;
}
}  // namespace

TEST_CASE("equal probes have no difference") {
  const OpsDifference d = compare_ops(ops(), ops());
  CHECK_FALSE(d.first);
  CHECK(d.compared == 5);
  CHECK(d.unmatched_golden == 0);
  CHECK(d.unmatched_candidate == 0);
}

TEST_CASE("a changed op is found with row, element and bits") {
  for (size_t op = 0; op < 5; ++op)
    for (size_t element = 0; element < 4; ++element) {
      std::vector<OpProbe> candidate = ops();
      change(candidate[op], element, 0.5f);
      const auto d = compare_ops(ops(), candidate).first;
      REQUIRE(d);
      CHECK(d->place == Place::op);
      CHECK(d->op->name == ops()[op].op);
      CHECK(d->op->layer == ops()[op].layer);
      CHECK(d->op->golden_command == ops()[op].command);
      CHECK(d->op->occurrence == (op == 2 ? 1 : 0));
      CHECK(d->row == element / 2);
      CHECK(d->element == element);
      CHECK(d->found_text == "0.5");
      CHECK(d->found_bits == std::bit_cast<uint32_t>(0.5f));
    }
}

TEST_CASE("modes that number and order their commands differently are matched by name") {
  CHECK_FALSE(compare_ops(ops(), renumbered()).first);
  CHECK(compare_ops(ops(), renumbered()).compared == 5);
  std::vector<OpProbe> candidate = renumbered();
  change(candidate[2], 3, 9);  // second norm of layer 0
  change(candidate[1], 0, 9);  // indexer.logits, earlier in the candidate, later in the golden
  const auto d = compare_ops(ops(), candidate).first;
  CHECK(d->op->name == "norm");
  CHECK(d->op->occurrence == 1);
  CHECK(d->op->golden_command == 6);
  CHECK(d->op->candidate_command == 31);
}

TEST_CASE("occurrences follow command order, whatever the order of the probes") {
  std::vector<OpProbe> candidate = ops();
  std::swap(candidate[0], candidate[2]);  // as executed
  CHECK_FALSE(compare_ops(ops(), candidate).first);
}

TEST_CASE("the first op is first in the golden's command order") {
  std::vector<OpProbe> golden = ops(), candidate = ops();
  change(candidate[1], 0, 9);
  change(candidate[3], 0, 9);
  CHECK(compare_ops(golden, candidate).first->op->name == "wq_b");
  std::swap(golden[1], golden[3]);  // the order of the vector does not matter
  CHECK(compare_ops(golden, candidate).first->op->name == "wq_b");
}

TEST_CASE("ops that only one run has are counted and are no divergence") {
  std::vector<OpProbe> golden = ops(), candidate = ops();
  golden.push_back(make_op("copy.key", 1, 20, 0, {1, 1}));
  candidate.push_back(make_op("norm", 0, 50, 0, {9, 9}));
  candidate.push_back(make_op("zz", 9, 51, 0, {9, 9}));
  const OpsDifference d = compare_ops(golden, candidate);
  CHECK_FALSE(d.first);
  CHECK(d.compared == 5);
  CHECK(d.unmatched_golden == 1);
  CHECK(d.unmatched_candidate == 2);
}

TEST_CASE("without values the digests name op and row") {
  std::vector<OpProbe> golden = ops(), candidate = ops();
  change(candidate[4], 2, 9);
  for (auto* run : {&golden, &candidate})
    for (OpProbe& op : *run) op.values.clear();
  auto d = compare_ops(golden, candidate).first;
  CHECK(d->row == 1);
  CHECK_FALSE(d->element);
  CHECK_FALSE(d->expected_bits);
  CHECK(d->expected_digest != d->found_digest);
  golden[4].row_digests.clear();
  CHECK(compare_ops(golden, candidate).first->row == kNoRow);
}

TEST_CASE("a second output that differs is seen although the first agrees") {
  std::vector<OpProbe> golden = ops(), candidate = ops();
  candidate[1].digest ^= 1;
  const auto d = compare_ops(golden, candidate).first;
  CHECK(d->op->name == "wq_b");
  CHECK(d->row == kNoRow);
  CHECK_FALSE(d->element);
}

TEST_CASE("with other padding the rows that both have decide") {
  std::vector<OpProbe> golden = {make_op("norm", 0, 2, 0, {1, 2, 3, 4})};
  std::vector<OpProbe> candidate = {make_op("norm", 0, 2, 0, {1, 2, 3, 4, 9, 9})};
  CHECK_FALSE(compare_ops(golden, candidate).first);
  change(candidate[0], 3, 7);
  CHECK(compare_ops(golden, candidate).first->row == 1);
}

TEST_CASE("within a step ops come before rows, and name their request") {
  StepOutput golden = make_step(5), candidate = make_step(5);
  golden.ops = ops();
  candidate.ops = renumbered();
  candidate.rows[0].token = 0;
  CHECK(compare_step(golden, candidate).first->place == Place::token);
  change(candidate.ops[4], 2, 9);  // wq_b after the swap
  const StepDifference d = compare_step(golden, candidate);
  CHECK(d.first->place == Place::op);
  CHECK(d.first->step == 5);
  CHECK(d.first->row == 1);
  CHECK(d.first->request == 5);
  CHECK(d.first->position == 5u);
  CHECK(d.rows.size() == 1);
  CHECK(d.ops_compared == 5);
  candidate.ops.clear();
  CHECK(compare_step(golden, candidate).first->place == Place::token);
}

TEST_CASE("ops are not judged under a tolerance") {
  StepOutput golden = make_step(5), candidate = make_step(5);
  golden.ops = candidate.ops = ops();
  change(candidate.ops[0], 0, 9);
  CHECK(compare_step(golden, candidate).first);
  CHECK_FALSE(compare_step(golden, candidate, 1).first);
}

TEST_CASE("values of bf16 and bytes are read by their size") {
  OpProbe golden, candidate;
  golden.op = candidate.op = "quantise";
  golden.element_size_bytes = candidate.element_size_bytes = 2;
  golden.values = {0x80, 0x3f, 0x80, 0x3f};
  candidate.values = {0x80, 0x3f, 0x81, 0x3f};
  candidate.digest = 1;
  const auto compare = [&] {
    return *compare_ops(std::vector{golden}, std::vector{candidate}).first;
  };
  CHECK(compare().element == 1u);
  CHECK(compare().expected_bits == 0x3f80u);
  CHECK(compare().expected_text == "1");
  CHECK(compare().distance_ulps == 1);
  golden.element_size_bytes = candidate.element_size_bytes = 1;
  CHECK(compare().element == 2u);
  golden.element_size_bytes = candidate.element_size_bytes = 3;  // not a size that can be read
  CHECK_FALSE(compare().element);
}
