// traces/plain_step.h - a step as one Cap'n Proto message of plain lists, nothing predicted: what
// the formats of trace files are compared with.
#pragma once
#include <cstdint>
#include <vector>

#include "traces/step.h"

namespace redecode {

void append_plain_step(const Step& step, std::vector<uint8_t>& out);

}  // namespace redecode
