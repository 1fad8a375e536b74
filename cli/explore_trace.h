// cli/explore_trace.h - `redecode explore` of a step of a trace: orders run with values.
#pragma once
#include <optional>
#include <string>

#include "cli/command.h"
#include "engine/explore/explorer.h"
#include "traces/mode.h"
#include "traces/trace_file.h"

namespace redecode {

struct ExploreTraceOptions {
  std::optional<StepIndex> step;  // none: the first with a finding that conflicts
  uint32_t random_orders = 20;    // runs of the step under seed:1, seed:2, ...
  uint32_t guided_orders = 64;    // most pairs to try
  uint32_t repeats = 100;         // of the witness and of fifo
  int threads = 1;
  std::string device = "h200";  // whose time the fix is priced in
};

// Returns 1 when an order goes wrong or the structure has a finding, else 0.
int explore_trace(const CommandContext& context, const std::string& path, const Trace& trace,
                  const Mode& mode, const ExploreTraceOptions& options);

}  // namespace redecode
