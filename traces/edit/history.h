// traces/edit/history.h - what must be decoded before a step, so that its rows find their KV.
#pragma once
#include <set>
#include <span>

#include "traces/step.h"

namespace redecode {

// Requests whose rows in steps before `first` are needed for the rows of steps first..last: those
// that have rows there, and those that wrote pages which these share.
std::set<RequestId> requests_needed(std::span<const Step> steps, StepIndex first, StepIndex last);
// The same for rows of `wanted` in steps up to `last`; `wanted` is part of the result.
std::set<RequestId> requests_needed(std::span<const Step> steps, StepIndex last,
                                    const std::set<RequestId>& wanted);

// The step with the rows of `keep` only, unpadded and without outputs; the books (departures,
// arrivals, page changes) stay whole.
Step restrict_rows(const Step& step, const std::set<RequestId>& keep);

}  // namespace redecode
