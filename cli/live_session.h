// cli/live_session.h - record_live: a workload served by the engine, its steps shown to a sink.
//
// What `record`, `demo` and `stress` share. Costs what decoding costs.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/batcher/live.h"
#include "engine/model/factory.h"
#include "recorder/workload.h"
#include "traces/finding.h"
#include "traces/header.h"
#include "traces/trace_file.h"

namespace redecode {

struct LiveRequest {
  std::string model = "dsv4-small";
  BatcherOptions batcher;  // see live_options; its vocab is set from the model
  Mode mode;
  WorkloadSpec workload;       // its vocab is set from the model
  std::filesystem::path rows;  // of an arrival workload; empty: the built-in sample
  int threads = 1;
  bool inspect = false;                  // run the structural checks on every step
  std::vector<std::string> environment;  // for the header
  uint64_t max_steps = UINT64_MAX;
  std::function<void(const LiveProgress&)> progress;  // may be empty
  std::function<bool()> stop;                         // may be empty
};

// Batcher options of a model's default settings as changed by `request`. chunk_rows: rows of a
// prefill step, 0 for the default. Errors: as default_settings and checked.
BatcherOptions live_options(std::string_view model, const SettingsRequest& request = {},
                            uint32_t chunk_rows = 0);

struct LiveRecording {
  TraceHeader header;
  LiveResult result;
  uint64_t rows = 0;                     // of all steps
  uint64_t graph_steps = 0;              // of all steps, those that a captured graph ran
  double seconds = 0.0;                  // of serving, without loading
  std::vector<Finding> findings;         // when inspected
  std::vector<uint64_t> finding_counts;  // of each
};

// Called once the engine is ready, before the first step. The sink must live until record_live
// returns.
using OpenSink = std::function<StepSink&(const TraceHeader&)>;

// The last departures are in a final step without rows. Errors: usage (model, settings, workload,
// mode), environment (no memory); whatever the sink throws.
LiveRecording record_live(const LiveRequest& request, const OpenSink& open_sink);

// The same into memory. `recording`, unless null, gets the rest of the result.
Trace record_to_memory(const LiveRequest& request, LiveRecording* recording = nullptr);

// Errors: environment, when the buffers of such an engine are larger than this machine's memory.
void check_memory(const std::string& model, const EngineSettings& settings, const Mode& mode);

}  // namespace redecode
