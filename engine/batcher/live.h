// engine/batcher/live.h - the serving loop: traffic through the batcher and an executor into sinks.
//
// One turn: poll the traffic, submit, build a step, show it to the sinks, execute it, show its
// output, update the batcher, report what finished. Time (`now`) counts executed steps and, when
// the engine is idle, skips ahead to the next arrival; it is therefore at least the step index, and
// nothing waits.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <span>

#include "engine/batcher/batcher.h"
#include "traces/output.h"
#include "traces/step.h"
#include "traces/traffic.h"

namespace redecode {

// Runs one step. Its output has one row for each row with wants_output, in row order.
using StepExecutor = std::function<StepOutput(const Step&)>;

struct LiveProgress {
  uint64_t steps = 0;
  uint64_t prompt_rows = 0, output_tokens = 0;
  uint64_t requests_submitted = 0, requests_finished = 0;
  std::array<uint64_t, 5> ends{};  // requests finished, by RequestEnd
  uint64_t preemptions = 0, cached_tokens = 0;
  StepIndex now = 0;
};

enum class LiveEnd : uint8_t {
  exhausted,  // the traffic has ended and every request with it
  max_steps,  // requests may be left
  stopped,    // LiveOptions::stop said so; requests may be left
};

struct LiveOptions {
  uint64_t max_steps = UINT64_MAX;
  // A last step without rows for the departures that remain: shown to the sinks, not executed.
  bool final_departures = false;
  uint64_t progress_every_steps = 64;
  std::function<void(const LiveProgress&)> progress;  // also once at the end; may be empty
  std::function<bool()> stop;                         // asked between steps; may be empty
};

struct LiveResult {
  LiveEnd end = LiveEnd::exhausted;
  LiveProgress totals;
  uint64_t requests_left = 0;  // submitted and not ended; they stay in the batcher
};

// Serves until the traffic is exhausted, or a limit or stop. `batcher` must be idle at the start.
// A step is shown to the sinks before it is executed, so that a crash leaves it recorded.
// Errors: usage when nothing can run, nothing is announced, and the traffic says that it is not
// exhausted, with the state in the context; whatever executor, traffic and sinks throw.
LiveResult run_live(TrafficSource& traffic, Batcher& batcher, const StepExecutor& executor,
                    std::span<StepSink* const> sinks, const LiveOptions& options = {});

}  // namespace redecode
