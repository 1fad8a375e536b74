#include "compare/divergence.h"

#include <algorithm>

#include "compare/align.h"
#include "compare/ops.h"
#include "compare/row_output.h"
#include "traces/check.h"
#include "traces/error.h"

namespace redecode {
namespace {

void check_ascending(const StepOutput& output) {
  for (size_t i = 1; i < output.rows.size(); ++i) {
    if (output.rows[i - 1].row >= output.rows[i].row)
      throw Error(ErrorCode::corrupt, "the rows of a step's output do not ascend",
                  "step " + std::to_string(output.step));
  }
}

// A row that only one of the runs has.
Divergence lone_row(const RowOutput& row, bool in_golden) {
  Divergence out;
  out.place = Place::rows;
  out.row = row.row;
  out.request = row.request;
  out.position = row.position;
  (in_golden ? out.expected_token : out.found_token) = row.token;
  (in_golden ? out.expected_digest : out.found_digest) = row.logits_digest;
  return out;
}

void compare_rows(const StepOutput& golden, const StepOutput& candidate, uint32_t max_ulps,
                  StepDifference& out) {
  size_t g = 0, c = 0;
  while (g < golden.rows.size() || c < candidate.rows.size()) {
    const RowOutput* expected = g < golden.rows.size() ? &golden.rows[g] : nullptr;
    const RowOutput* found = c < candidate.rows.size() ? &candidate.rows[c] : nullptr;
    if (expected != nullptr && found != nullptr && expected->row == found->row) {
      ++out.rows_compared;
      if (auto difference = compare_row(*expected, *found, max_ulps))
        out.rows.push_back(std::move(*difference));
      ++g, ++c;
    } else if (expected != nullptr && (found == nullptr || expected->row < found->row)) {
      out.rows.push_back(lone_row(*expected, true));
      ++g;
    } else if (found != nullptr) {
      out.rows.push_back(lone_row(*found, false));
      ++c;
    }
  }
  for (Divergence& row : out.rows) {
    row.step = golden.step;
    if (row.token_differs()) ++out.tokens_differing;
  }
}

void place_op_row(const StepOutput& golden, Divergence& op) {
  op.step = golden.step;
  for (const RowOutput& row : golden.rows) {
    if (row.row != op.row) continue;
    op.request = row.request;
    op.position = row.position;
  }
}

}  // namespace

std::string_view to_text(Place place) {
  switch (place) {
    case Place::op:
      return "op";
    case Place::rows:
      return "rows";
    case Place::logits:
      return "logits";
    case Place::log_sum_exp:
      return "log_sum_exp";
    case Place::digest:
      return "digest";
    case Place::token:
      return "token";
  }
  return "unknown";
}

StepDifference compare_step(const StepOutput& golden, const StepOutput& candidate,
                            uint32_t max_ulps) {
  REDECODE_CHECK_OP(golden.step, ==, candidate.step);
  check_ascending(golden);
  check_ascending(candidate);
  StepDifference out;
  if (max_ulps == 0 && !golden.ops.empty() && !candidate.ops.empty()) {
    OpsDifference ops = compare_ops(golden.ops, candidate.ops);
    out.ops_compared = ops.compared;
    out.ops_unmatched_golden = ops.unmatched_golden;
    out.ops_unmatched_candidate = ops.unmatched_candidate;
    if (ops.first) place_op_row(golden, *ops.first);
    out.first = std::move(ops.first);
  }
  compare_rows(golden, candidate, max_ulps, out);
  if (!out.first && !out.rows.empty()) out.first = out.rows.front();
  return out;
}

std::optional<Divergence> first_divergence(RunSource& golden, RunSource& candidate,
                                           uint32_t max_ulps) {
  StepPairs pairs(golden, candidate);
  while (pairs.next()) {
    StepDifference step = compare_step(pairs.golden(), pairs.candidate(), max_ulps);
    if (step.first) return std::move(step.first);
  }
  return std::nullopt;
}

}  // namespace redecode
