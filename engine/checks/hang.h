// engine/checks/hang.h - hangs: launches that cannot become resident, waits that nothing ends.
#pragma once
#include <vector>

#include "engine/plan/op_graph.h"
#include "traces/finding.h"

namespace redecode {

// Appends, in program order: a launch whose blocks wait for each other while an unordered launch
// may hold the multiprocessors; a wait of the host or of an outside actor for an event that nobody
// records. A stream's wait for such an event is no hang but no edge either: that is told as
// unusual. Cost: O(such launches * nodes).
void check_hangs(StepIndex step, const Program& program, Submission submission,
                 std::vector<Finding>& out);

}  // namespace redecode
