// compare/explain.h - picks the finding of the candidate run that explains a divergence.
//
// Findings say what is wrong in structure, a divergence where it first showed in values. They
// belong together when the op that differs is a side of the finding. The ways to match, best first;
// each is tried at the divergence's step and then at the steps before it, nearest first, before the
// next way is:
//   op            a side names the diverging op by name and layer (where it reads, rather than
//   writes) buffer        a side writes a buffer that the diverging op reads request       the
//   finding is about the diverging request step          the first finding at the divergence's step
//   earlier_step  the first finding at the nearest step before that has one
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "compare/divergence.h"
#include "traces/finding.h"

namespace redecode {

enum class Match : uint8_t { op, buffer, request, step, earlier_step };
std::string_view to_text(Match match);
// "the diverging op is a side of it": a clause for people.
std::string_view describe(Match match);

struct Explanation {
  Finding finding;
  Match match = Match::op;
  bool operator==(const Explanation&) const = default;
};

// `buffers_read` names the buffers that the diverging op reads, where the caller knows its program;
// it may be empty. Findings later than the divergence explain nothing. nullopt when none is left.
std::optional<Explanation> explain(const Divergence& divergence, std::span<const Finding> findings,
                                   std::span<const std::string> buffers_read = {});

// The numeric finding, at the divergence's step or before, that names the diverging op: its
// declared reduction shape changed, so its bits were bound to. nullopt where the divergence is of
// no op.
std::optional<Finding> numeric_finding(const Divergence& divergence,
                                       std::span<const Finding> findings);

// Keeps findings while the divergence is not known yet: the newest `limit` of them.
class FindingLog {
 public:
  explicit FindingLog(size_t limit) : limit_(limit) {}
  void add(Finding&& finding);
  // From here on only findings at `step` or before are kept.
  void diverged_at(StepIndex step) { last_step_ = step; }
  uint64_t total() const { return total_; }      // seen
  uint64_t dropped() const { return dropped_; }  // over the limit
  std::vector<Finding> kept() const { return {kept_.begin(), kept_.end()}; }

 private:
  size_t limit_;
  std::optional<StepIndex> last_step_;
  std::deque<Finding> kept_;
  uint64_t total_ = 0, dropped_ = 0;
};

}  // namespace redecode
