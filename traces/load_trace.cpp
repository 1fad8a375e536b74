#include <algorithm>

#include "traces/error.h"
#include "traces/trace_file.h"
#include "traces/validate.h"

namespace redecode {
namespace {

// The place of step `index` among those read: behind a gap it is not index - first.
size_t place_of(const Trace& trace, StepIndex index) {
  const auto at = std::lower_bound(trace.steps.begin(), trace.steps.end(), index,
                                   [](const Step& step, StepIndex i) { return step.index < i; });
  if (at == trace.steps.end() || at->index != index) return SIZE_MAX;
  return static_cast<size_t>(at - trace.steps.begin());
}

// Puts an output beside its step.
void place(StepOutput output, const TraceReader& reader, Trace& trace) {
  const size_t at = place_of(trace, output.step);
  if (at == SIZE_MAX)
    throw Error(ErrorCode::corrupt,
                "output of step " + std::to_string(output.step) + " comes before its step",
                reader.context());
  if (at < trace.outputs.size())
    throw Error(ErrorCode::corrupt,
                "output of step " + std::to_string(output.step) + " is out of order",
                reader.context());
  while (trace.outputs.size() < at) {
    StepOutput none;
    none.step = trace.steps[trace.outputs.size()].index;
    trace.outputs.push_back(std::move(none));
  }
  trace.outputs.push_back(std::move(output));
}

}  // namespace

Trace load_trace(const std::filesystem::path& path) {
  TraceReader reader(path);
  Trace trace;
  trace.header = reader.header();
  StepValidator validator(trace.header.model, trace.header.engine, path.string());
  TraceRecord record;
  while (reader.next(record)) {
    if (record.step) {
      if (trace.steps.empty()) validator.start(reader.start());
      validator.add(*record.step);
      trace.steps.push_back(std::move(*record.step));
    } else if (record.output) {
      place(std::move(*record.output), reader, trace);
    } else if (record.event) {
      trace.events.push_back(std::move(*record.event));
    } else if (record.gap) {
      validator.skip(*record.gap);
      trace.gaps.push_back(*record.gap);
    } else if (record.exchange) {
      trace.exchanges.push_back(std::move(*record.exchange));
    }
  }
  trace.start = reader.start();
  trace.digest = reader.summary().trace_digest;
  trace.end = reader.summary().end;
  trace.cut_offset_bytes = reader.summary().cut_offset_bytes;
  return trace;
}

}  // namespace redecode
