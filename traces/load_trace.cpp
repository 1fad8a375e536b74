#include "traces/error.h"
#include "traces/trace_file.h"
#include "traces/validate.h"

namespace redecode {
namespace {

// Puts an output beside its step.
void place(StepOutput output, const TraceReader& reader, Trace& trace) {
  const StepIndex first = trace.steps.empty() ? 0 : trace.steps.front().index;
  const StepIndex at = output.step - first;
  if (trace.steps.empty() || output.step < first || at >= trace.steps.size())
    throw Error(ErrorCode::corrupt,
                "output of step " + std::to_string(output.step) + " comes before its step",
                reader.context());
  if (at < trace.outputs.size())
    throw Error(ErrorCode::corrupt,
                "output of step " + std::to_string(output.step) + " is out of order",
                reader.context());
  while (trace.outputs.size() < at) {
    StepOutput none;
    none.step = first + trace.outputs.size();
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
      validator.add(*record.step);
      trace.steps.push_back(std::move(*record.step));
    } else {
      place(std::move(*record.output), reader, trace);
    }
  }
  trace.digest = reader.summary().trace_digest;
  trace.end = reader.summary().end;
  trace.cut_offset_bytes = reader.summary().cut_offset_bytes;
  return trace;
}

}  // namespace redecode
