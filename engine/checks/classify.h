// engine/checks/classify.h - which check a finding belongs to, from the program around it.
//
// The hazard pass finds pairs of accesses; what kind of fault a pair is follows from its ops: a
// prologue that does not wait, a block that was reused, a host write under a copy, an event that
// was recorded anew. The name is what `redecode explain` takes.
#pragma once
#include <span>

#include "traces/finding.h"

namespace redecode {

// Sets Finding::check of those that have none. Findings must be of this step's `program`; sides of
// other steps are judged by the one side that is known. Cost: O(findings * commands).
void name_checks(StepIndex step, const Program& program, std::span<Finding> findings);

}  // namespace redecode
