// engine/checks/page_size.h - the page stride a kernel is told against the pages it is given.
#pragma once
#include <vector>

#include "traces/finding.h"

namespace redecode {

// Appends a finding (kind foreign, check page-size) for each launch whose page stride argument
// (ArgKind::page_stride) is the page size of none of its paged operands. Cost: O(commands).
void check_page_sizes(StepIndex step, const Program& program, std::vector<Finding>& out);

}  // namespace redecode
