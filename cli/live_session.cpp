#include "cli/live_session.h"

#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>

#include "cli/content_hashes.h"
#include "replayer/engine_instance.h"
#include "traces/error.h"

namespace redecode {
namespace {

class CountingSink final : public StepSink {
 public:
  explicit CountingSink(LiveRecording& recording) : recording_(recording) {}
  void scheduled(const Step& step) override { recording_.rows += step.rows.size(); }
  void produced(const StepOutput&) override {}

 private:
  LiveRecording& recording_;
};

class MemorySink final : public StepSink {
 public:
  void open(const TraceHeader& header) { trace_.header = header; }
  void scheduled(const Step& step) override {
    trace_.digest = combine(trace_.digest, digest_step(step));
    trace_.steps.push_back(step);
  }
  void produced(const StepOutput& output) override { trace_.outputs.push_back(output); }
  Trace take() { return std::move(trace_); }

 private:
  Trace trace_;
};

TraceHeader header_of(const LiveRequest& request, const EngineInstance& engine,
                      const WorkloadSpec& workload) {
  TraceHeader header;
  header.writer = writer_name();
  header.model = engine.identity();
  add_content_hashes(request.model, {}, header.model);
  header.engine = engine.model().settings();
  header.mode = request.mode;
  header.workload = describe(workload);
  header.environment = request.environment;
  return header;
}

uint64_t physical_memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && page_bytes > 0
             ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes)
             : UINT64_MAX;
}

std::string gibibytes(uint64_t bytes) {
  const uint64_t tenths = bytes / ((uint64_t{1} << 30) / 10);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

}  // namespace

void check_memory(const std::string& model, const EngineSettings& settings, const Mode& mode) {
  KernelTable kernels;
  const auto made = make_model(model, settings, mode.index_key, add_exact_kernels(kernels));
  if (made->weight_bytes() > kMaxComputedWeightBytes) return;  // refused with its own words
  uint64_t needed_bytes = 0;
  for (const PersistentBuffer& buffer : *made->persistents()) needed_bytes += buffer.size_bytes;
  const uint64_t memory_bytes = physical_memory_bytes();
  if (needed_bytes > memory_bytes)
    throw Error(ErrorCode::environment,
                "its buffers take " + gibibytes(needed_bytes) + ", this machine has " +
                    gibibytes(memory_bytes) + "; use fewer pages or rows",
                "model '" + model + "'");
}

BatcherOptions live_options(std::string_view model, const SettingsRequest& request,
                            uint32_t chunk_rows) {
  BatcherOptions options = batcher_options(default_settings(model, request));
  if (chunk_rows != 0) options.prefill_chunk_rows = chunk_rows;
  return checked(options);
}

LiveRecording record_live(const LiveRequest& request, const OpenSink& open_sink) {
  const EngineSettings settings = engine_settings(request.batcher);
  check_memory(request.model, settings, request.mode);
  EngineInstance engine(
      {request.model, settings, request.mode, request.threads, request.inspect, true});
  WorkloadSpec workload = request.workload;
  workload.set_vocab(engine.model().identity().vocab);
  const auto traffic = make_workload(workload, load_rows(workload.kind, request.rows));
  BatcherOptions batcher_options_with_vocab = request.batcher;
  batcher_options_with_vocab.vocab = engine.model().identity().vocab;
  Batcher batcher(batcher_options_with_vocab);

  LiveRecording recording;
  recording.header = header_of(request, engine, workload);
  CountingSink counting(recording);
  StepSink* const sinks[] = {&open_sink(recording.header), &counting};
  LiveOptions options;
  options.max_steps = request.max_steps;
  options.final_departures = true;
  options.progress = request.progress;
  options.stop = request.stop;
  const auto execute = [&](const Step& step) {
    StepOutput output = engine.decoder().run(step);
    recording.graph_steps += engine.decoder().last_was_graph() ? 1 : 0;
    return output;
  };
  const auto start = std::chrono::steady_clock::now();
  recording.result = run_live(*traffic, batcher, execute, sinks, options);
  recording.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const Inspector& inspector = engine.decoder().inspector();
  recording.findings = inspector.findings();
  for (size_t i = 0; i < recording.findings.size(); ++i)
    recording.finding_counts.push_back(inspector.count(i));
  return recording;
}

Trace record_to_memory(const LiveRequest& request, LiveRecording* recording) {
  MemorySink sink;
  LiveRecording result = record_live(request, [&](const TraceHeader& header) -> StepSink& {
    sink.open(header);
    return sink;
  });
  if (recording != nullptr) *recording = std::move(result);
  return sink.take();
}

}  // namespace redecode
