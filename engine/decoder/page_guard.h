// engine/decoder/page_guard.h - does every row keep to its own KV pages?
//
// Judged by the true geometry of each paged buffer, whatever geometry the program uses: a range
// that a row touches must lie in pages that its request holds; a padding row's in the dummy page 0.
#pragma once
#include <vector>

#include "engine/decoder/page_tables.h"
#include "traces/finding.h"
#include "traces/program.h"

namespace redecode {

// Appends at most one finding a command (kind foreign), with the first offending range and the
// bytes of all of them.
void check_pages(StepIndex step, const Program& program, const PageTables& tables,
                 std::vector<Finding>& out);

}  // namespace redecode
