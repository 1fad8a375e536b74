// recorder/workload_check.h - refusals that the workloads share.
#pragma once
#include "traces/step.h"

namespace redecode {

// Errors: usage, with `workload` ("Agent") and `what` in the message.
void require_option(bool holds, const char* workload, const char* what);

// That tokens can be drawn from the vocabulary and that `sampling` is within its documented ranges.
void check_drawing(const char* workload, uint32_t vocab, const Sampling& sampling);

}  // namespace redecode
