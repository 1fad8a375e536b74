#include "compare/explain.h"

#include <algorithm>
#include <utility>

namespace redecode {
namespace {

bool names(const FindingSide& side, const DivergingOp& op) {
  return side.op == op.name && side.layer == op.layer;
}

bool writes_one_of(const FindingSide& side, std::span<const std::string> buffers) {
  return !side.op.empty() && writes(side.access) &&
         std::find(buffers.begin(), buffers.end(), side.buffer) != buffers.end();
}

// The finding that `better` ranks highest (0 is no match), at the nearest step; the first among
// equals.
template <class Rank>
const Finding* nearest(std::span<const Finding> findings, StepIndex step, const Rank& rank) {
  const Finding* best = nullptr;
  int best_rank = 0;
  for (const Finding& finding : findings) {
    if (finding.step > step) continue;
    const int r = rank(finding);
    if (r == 0) continue;
    const bool nearer = best == nullptr || finding.step > best->step ||
                        (finding.step == best->step && r > best_rank);
    if (!nearer) continue;
    best = &finding;
    best_rank = r;
  }
  return best;
}

int rank_by_op(const Finding& finding, const DivergingOp& op) {
  const bool first = names(finding.first, op), second = names(finding.second, op);
  if ((first && reads(finding.first.access)) || (second && reads(finding.second.access))) return 2;
  return first || second ? 1 : 0;
}

}  // namespace

std::string_view to_text(Match match) {
  switch (match) {
    case Match::op:
      return "op";
    case Match::buffer:
      return "buffer";
    case Match::request:
      return "request";
    case Match::step:
      return "step";
    case Match::earlier_step:
      return "earlier_step";
  }
  return "unknown";
}

std::string_view describe(Match match) {
  switch (match) {
    case Match::op:
      return "the diverging op is a side of it";
    case Match::buffer:
      return "it writes a buffer that the diverging op reads";
    case Match::request:
      return "it is about the diverging request";
    case Match::step:
      return "it is the first finding of this step";
    case Match::earlier_step:
      return "it is the nearest finding before this step";
  }
  return "unknown";
}

std::optional<Explanation> explain(const Divergence& divergence, std::span<const Finding> findings,
                                   std::span<const std::string> buffers_read) {
  const auto found = [](const Finding* finding, Match match) {
    return std::optional<Explanation>({*finding, match});
  };
  if (divergence.op) {
    const auto by_op = [&](const Finding& f) { return rank_by_op(f, *divergence.op); };
    if (const Finding* f = nearest(findings, divergence.step, by_op)) return found(f, Match::op);
  }
  const auto by_buffer = [&](const Finding& f) {
    return writes_one_of(f.first, buffers_read) || writes_one_of(f.second, buffers_read) ? 1 : 0;
  };
  if (const Finding* f = nearest(findings, divergence.step, by_buffer))
    return found(f, Match::buffer);
  if (divergence.request != kNoRequest) {
    const auto by_request = [&](const Finding& f) { return f.request == divergence.request; };
    if (const Finding* f = nearest(findings, divergence.step, by_request))
      return found(f, Match::request);
  }
  const auto any = [](const Finding&) { return 1; };
  const Finding* f = nearest(findings, divergence.step, any);
  if (f == nullptr) return std::nullopt;
  return found(f, f->step == divergence.step ? Match::step : Match::earlier_step);
}

std::optional<Finding> numeric_finding(const Divergence& divergence,
                                       std::span<const Finding> findings) {
  if (!divergence.op) return std::nullopt;
  const Finding* f = nearest(findings, divergence.step, [&](const Finding& finding) {
    return finding.kind == FindingKind::numeric ? rank_by_op(finding, *divergence.op) : 0;
  });
  if (f == nullptr) return std::nullopt;
  return *f;
}

void FindingLog::add(Finding&& finding) {
  ++total_;
  if (last_step_ && finding.step > *last_step_) return;
  kept_.push_back(std::move(finding));
  if (kept_.size() <= limit_) return;
  kept_.pop_front();
  ++dropped_;
}

}  // namespace redecode
