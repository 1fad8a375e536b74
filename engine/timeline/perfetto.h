// engine/timeline/perfetto.h - a program in time as a Perfetto trace: https://ui.perfetto.dev opens
// it.
//
// Streams are tracks, ops are slices with their bytes, edges between streams are flows, allocated
// bytes are a counter, findings are marks at their second op.
#pragma once
#include <span>

#include "engine/price/timed_run.h"
#include "traces/convert/byte_sink.h"
#include "traces/finding.h"

namespace redecode {

struct TimelineInput {
  const Program& program;
  const OpGraph& graph;
  const TimedRun& run;
  std::span<const Finding> findings;  // of this program; others are left out
  StepIndex step = 0;
};

// Returns the number of events. Errors: as ByteSink.
uint64_t write_timeline(const TimelineInput& input, ByteSink& out);

}  // namespace redecode
