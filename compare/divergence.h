// compare/divergence.h - finds the first place at which two runs of one trace part ways.
//
// Within a step the order is: ops first (in the golden's command order), then rows ascending, and
// within a row logits, then log-sum-exp, then digest, then token. Ops of the two runs are matched
// by name, layer and occurrence, never by index or stream: a single-stream and a multi-stream run
// of one step number their commands differently. An op that only one run has (a copy that one mode
// needs) is counted and is no divergence.
//
// A probe holds what an op wrote, right after it ran. An op whose input was overwritten too early
// therefore shows first, not the op that overwrote it: that one's own output is right.
//
// Numbers are equal when their bits are. `max_ulps` > 0 loosens this for logits and log-sum-exp
// only: then digests and op probes, which know no tolerance, are not judged, and a row without full
// logits is judged by its list of largest logits. Tokens are always judged.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/run_source.h"
#include "traces/output.h"

namespace redecode {

inline constexpr uint32_t kNoRow = UINT32_MAX;

// What differs.
enum class Place : uint8_t {
  op,           // output bytes of an op
  rows,         // a row that one run has and the other has not, or whose request or position differ
  logits,       // an element of a row's logits
  log_sum_exp,  // of a row, while the logits that were stored agree
  digest,       // of a row's logits, while all that was stored of them agrees
  token,        // sampled token, from logits that agree
};
std::string_view to_text(Place place);

// An op in both runs.
struct DivergingOp {
  std::string name;
  uint32_t layer = 0;
  uint32_t occurrence = 0;  // 0-based, among ops of this name and layer in the step
  uint32_t golden_command = 0, golden_stream = 0;
  uint32_t candidate_command = 0, candidate_stream = 0;
  bool operator==(const DivergingOp&) const = default;
};

// One place where `candidate` leaves `golden`. All indices are 0-based.
struct Divergence {
  Place place = Place::token;
  StepIndex step = 0;
  uint32_t row = kNoRow;  // index into Step::rows (an op's row may be padding); kNoRow: not by row
  RequestId request = kNoRequest;  // kNoRequest where the row is unknown, padding or has no output
  std::optional<uint32_t> position;  // of the row in its sequence, where known
  std::optional<DivergingOp> op;     // place op
  // First differing element: of the op's first output, or the vocabulary index in a row's logits.
  // Empty where the values were not kept.
  std::optional<uint64_t> element;
  uint32_t element_size_bytes = 4;  // of the bits below
  std::optional<uint32_t> expected_bits, found_bits;
  std::string expected_text, found_text;  // the bits as numbers; empty without them
  uint32_t distance_ulps = 0;             // between the bits, see ulp.h; 0 without them
  uint64_t elements_differing = 0;        // in this op or row; 0 where the values were not kept
  uint32_t largest_ulps = 0;              // over those
  std::optional<Digest> expected_digest, found_digest;
  std::optional<int32_t> expected_token, found_token;  // of the row, equal or not; places of rows
  bool token_differs() const {
    return expected_token && found_token && *expected_token != *found_token;
  }
};

// Everything that differs between the two outputs of one step.
struct StepDifference {
  std::optional<Divergence> first;  // the least, in the order above
  std::vector<Divergence> rows;     // the least of each row that differs, ascending
  uint32_t rows_compared = 0;
  uint32_t tokens_differing = 0;
  uint32_t ops_compared = 0;
  uint32_t ops_unmatched_golden = 0, ops_unmatched_candidate = 0;
};

// Both outputs are of one step (CHECK). Errors: corrupt where rows do not ascend.
// Ops are compared only where both runs were probed.
StepDifference compare_step(const StepOutput& golden, const StepOutput& candidate,
                            uint32_t max_ulps = 0);

// Returns the least divergence in (step, place within the step) order over the steps that both runs
// hold, or nullopt. After a divergence both sources stand just past its step, else at their ends.
// Does not compare the headers (verdict.h does). Errors: corrupt.
std::optional<Divergence> first_divergence(RunSource& golden, RunSource& candidate,
                                           uint32_t max_ulps = 0);

}  // namespace redecode
