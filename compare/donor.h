// compare/donor.h - whose data is it: says where the logits of a wrong row were seen before.
//
// A row that holds another row's logits, bit for bit, got that row's data: another request's in the
// same step, or a stale one of an earlier step. That names the fault better than any norm does.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "compare/divergence.h"
#include "compare/run_source.h"

namespace redecode {

struct Donor {
  StepIndex step = 0;
  RequestId request = kNoRequest;
  uint32_t row = 0;
  uint32_t position = 0;
  bool operator==(const Donor&) const = default;
};

// What can be said about one differing row of the candidate, beside where it differs.
struct RowLabel {
  StepIndex step = 0;
  RequestId request = kNoRequest;
  uint32_t row = 0;
  Digest digest = 0;     // of the logits found
  bool has_nan = false;  // among what was stored of the row
  bool has_infinity = false;
  std::optional<Donor> donor;  // the golden row with these logits
  bool operator==(const RowLabel&) const = default;
};

// Labels, without donors, of the rows in `difference` whose logits digests differ; at most `limit`.
std::vector<RowLabel> label_rows(const StepOutput& candidate, const StepDifference& difference,
                                 size_t limit = 64);

// Fills in the donors: reads the golden run once from where it stands. A row of the label's own
// step is preferred, then the latest step before it, then the earliest after it. Cost: one look-up
// a row.
void find_donors(RunSource& golden, std::vector<RowLabel>& labels);

}  // namespace redecode
