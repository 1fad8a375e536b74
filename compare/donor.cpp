#include "compare/donor.h"

#include <cmath>
#include <map>

namespace redecode {
namespace {

void look_at(float value, RowLabel& out) {
  out.has_nan |= std::isnan(value);
  out.has_infinity |= std::isinf(value);
}

RowLabel label(StepIndex step, const RowOutput& row) {
  RowLabel out;
  out.step = step;
  out.request = row.request;
  out.row = row.row;
  out.digest = row.logits_digest;
  look_at(row.log_sum_exp, out);
  for (const TopLogit& entry : row.top) look_at(entry.logit, out);
  for (const float logit : row.logits) look_at(logit, out);
  return out;
}

// Rows come in ascending steps.
void consider(StepIndex step, const RowOutput& row, RowLabel& out) {
  if (step == out.step && row.row == out.row) return;
  const bool have_own_step = out.donor && out.donor->step == out.step;
  if (have_own_step || (out.donor && step > out.step)) return;
  out.donor = Donor{step, row.request, row.row, row.position};
}

}  // namespace

std::vector<RowLabel> label_rows(const StepOutput& candidate, const StepDifference& difference,
                                 size_t limit) {
  std::vector<RowLabel> out;
  auto row = candidate.rows.begin();
  for (const Divergence& differing : difference.rows) {
    if (out.size() == limit) break;
    if (!differing.found_digest || differing.found_digest == differing.expected_digest) continue;
    while (row != candidate.rows.end() && row->row < differing.row) ++row;
    if (row != candidate.rows.end() && row->row == differing.row)
      out.push_back(label(candidate.step, *row));
  }
  return out;
}

void find_donors(RunSource& golden, std::vector<RowLabel>& labels) {
  if (labels.empty()) return;
  std::multimap<Digest, RowLabel*> wanted;
  for (RowLabel& row : labels) wanted.emplace(row.digest, &row);
  RunRecord record;
  while (golden.next(record)) {
    if (!record.output) continue;
    for (const RowOutput& row : record.output->rows) {
      const auto [begin, end] = wanted.equal_range(row.logits_digest);
      for (auto it = begin; it != end; ++it) consider(record.output->step, row, *it->second);
    }
  }
}

}  // namespace redecode
