#include "recorder/http/metrics.h"

#include <string_view>

#include "traces/json_writer.h"

namespace redecode {
namespace {

constexpr std::array<std::string_view, 5> kEnds = {"stop", "length", "too_long", "cancelled",
                                                   "failed"};

std::string number(double value) {
  JsonWriter json;
  json.value(value);
  return json.take();
}

class MetricsText {
 public:
  void counter(std::string_view name, std::string_view help, uint64_t value) {
    head(name, help, "counter");
    sample(name, "", std::to_string(value));
  }
  void gauge(std::string_view name, std::string_view help, const std::string& value) {
    head(name, help, "gauge");
    sample(name, "", value);
  }
  void histogram(std::string_view name, std::string_view help, const Histogram& h) {
    head(name, help, "histogram");
    const std::string bucket = std::string(name) + "_bucket";
    uint64_t below = 0;
    for (size_t i = 0; i < Histogram::kUpperSeconds.size(); ++i) {
      below += h.counts[i];
      sample(bucket, "le=\"" + number(Histogram::kUpperSeconds[i]) + "\"", std::to_string(below));
    }
    sample(bucket, "le=\"+Inf\"", std::to_string(h.count()));
    sample(std::string(name) + "_sum", "", number(h.sum_seconds));
    sample(std::string(name) + "_count", "", std::to_string(h.count()));
  }
  void head(std::string_view name, std::string_view help, std::string_view type) {
    out_.append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ");
    out_.append(name).append(" ").append(type).append("\n");
  }
  void sample(std::string_view name, std::string_view labels, const std::string& value) {
    out_.append(name);
    if (!labels.empty()) out_.append("{").append(labels).append("}");
    out_.append(" ").append(value).append("\n");
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

void write_http(const EndpointMetrics& e, MetricsText& text) {
  text.head("redecode_http_answers_total", "Answers begun, by path and status.", "counter");
  for (const auto& [key, count] : e.answers)
    text.sample("redecode_http_answers_total",
                "path=\"" + key.first + "\",status=\"" + std::to_string(key.second) + "\"",
                std::to_string(count));
  text.counter("redecode_http_connections_total", "Connections accepted.", e.connections);
  text.gauge("redecode_http_connections", "Connections open.", std::to_string(e.open_connections));
  text.counter("redecode_http_requests_total", "Requests received.", e.requests);
  text.gauge("redecode_http_requests_active", "Completions being read or answered.",
             std::to_string(e.active_requests));
  text.counter("redecode_http_disconnects_total", "Completions that their client gave up.",
               e.disconnects);
  text.counter("redecode_http_timeouts_total", "Completions that took too long.", e.timeouts);
  text.counter("redecode_http_drain_cuts_total", "Completions that the drain cancelled.",
               e.cut_by_drain);
  text.histogram("redecode_http_request_seconds", "Body read to answer written, of completions.",
                 e.request_seconds);
  text.counter("redecode_choices_total", "Choices submitted to the engine.", e.choices);
  text.gauge("redecode_choices_waiting", "Choices without a first token.",
             std::to_string(e.waiting_choices));
  text.gauge("redecode_choices_live", "Choices that have not ended.",
             std::to_string(e.live_choices));
  text.histogram("redecode_first_token_seconds", "Submission of a choice to its first token.",
                 e.first_token_seconds);
}

void write_engine(const BackendMetrics& b, MetricsText& text) {
  text.counter("redecode_steps_total", "Steps executed.", b.steps);
  text.counter("redecode_graph_steps_total", "Steps run from a captured graph.", b.graph_steps);
  text.counter("redecode_prompt_tokens_total", "Prompt rows computed.", b.prompt_rows);
  text.counter("redecode_cached_tokens_total", "Prompt tokens found in the prefix cache.",
               b.cached_tokens);
  text.counter("redecode_output_tokens_total", "Tokens sampled.", b.output_tokens);
  text.counter("redecode_requests_total", "Requests submitted to the batcher.", b.submitted);
  text.head("redecode_requests_ended_total", "Requests ended, by reason.", "counter");
  for (size_t i = 0; i < kEnds.size(); ++i)
    text.sample("redecode_requests_ended_total", "end=\"" + std::string(kEnds[i]) + "\"",
                std::to_string(b.ends[i]));
  text.counter("redecode_preemptions_total", "Requests preempted.", b.preemptions);
  text.gauge("redecode_requests_waiting", "Requests in the queue.", std::to_string(b.waiting));
  text.gauge("redecode_requests_running", "Requests that hold pages.", std::to_string(b.running));
  text.histogram("redecode_step_seconds", "Execution of a step.", b.step_seconds);
}

void write_recorder(const BackendMetrics& b, MetricsText& text) {
  text.counter("redecode_recorded_steps_total", "Steps taken by the trace writer.",
               b.steps_recorded);
  text.counter("redecode_recorded_outputs_total", "Outputs taken by the trace writer.",
               b.outputs_recorded);
  text.counter("redecode_dropped_steps_total", "Steps left out of the trace.", b.steps_dropped);
  text.counter("redecode_dropped_outputs_total", "Outputs left out of the trace.",
               b.outputs_dropped);
  text.counter("redecode_trace_bytes_total", "Bytes of the trace written.", b.trace_bytes);
  text.gauge("redecode_ring_records", "Records in the recorder's ring, about.",
             std::to_string(b.ring_records));
  text.gauge("redecode_ring_capacity_records", "Records that the ring holds.",
             std::to_string(b.ring_capacity));
  const double fill = b.ring_capacity == 0 ? 0.0
                                           : static_cast<double>(b.ring_records) /
                                                 static_cast<double>(b.ring_capacity);
  text.gauge("redecode_ring_fill_ratio", "Share of the ring in use.", number(fill));
  text.histogram("redecode_chunk_write_seconds", "Compressing and writing a chunk.",
                 b.chunk_seconds);
}

}  // namespace

std::string render_metrics(const EndpointMetrics& endpoint, const BackendMetrics& backend) {
  MetricsText text;
  write_http(endpoint, text);
  write_engine(backend, text);
  text.gauge("redecode_recording", "1 when a trace is being written.",
             backend.recording ? "1" : "0");
  if (backend.recording) write_recorder(backend, text);
  return text.take();
}

}  // namespace redecode
