// cli/step_range.h - "A..B" as a range of steps.
#pragma once
#include <string_view>

#include "replayer/replay.h"

namespace redecode {

// "A..B" both inclusive, "A..", "..B", or "A" alone; empty text is every step. Errors: usage.
StepRange parse_step_range(std::string_view text);

}  // namespace redecode
