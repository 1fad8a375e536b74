// traces/convert/export_perfetto.h - a trace as a Perfetto trace (protobuf), for ui.perfetto.dev
// and trace_processor.
//
// Tracks:
//   steps            a slice a step, named by its phase, from its time to the next step's
//   requests/rN      slices queued, prefill, decode and preempted of one request
//   exchanges/N      slices "to first byte" and "answer" of one exchange; an instant when not sent
//   batch rows, running requests    counters, at every step
//   events, gaps     instants
// A step ends where the next one begins, for traces do not say how long it took: the last one, and
// one before a gap, is given as long as the one before it. Time never runs backwards: a step or
// event that says an earlier time than the one before it, or none, stands where that one stood.
#pragma once
#include <filesystem>

#include "traces/convert/byte_sink.h"
#include "traces/convert/export_result.h"

namespace redecode {

// Where no step says its time, steps stand 1 ms apart by their index, and a notice and the name of
// the track say so. Memory: one chunk and the running requests. Errors: as TraceReader; usage (a
// run); environment.
ExportResult export_perfetto(const std::filesystem::path& path, ByteSink& out);

}  // namespace redecode
