#include "traces/container.h"
#include "traces/finding.h"
#include "traces/inspect.h"
#include "traces/value_text.h"

namespace redecode {
namespace {

void write_strings(const std::vector<std::string>& values, JsonWriter& json) {
  json.begin_array();
  for (const std::string& value : values) json.value(value);
  json.end_array();
}

void write_model(const ModelIdentity& model, JsonWriter& json) {
  json.begin_object();
  json.member("family", model.family).member("spec", model.spec);
  json.member("config_digest", digest_hex(model.config_digest));
  json.member("weights_digest", digest_hex(model.weights_digest));
  json.member("vocab", model.vocab).member("layers", model.layers);
  json.end_object();
}

void write_engine(const EngineSettings& engine, JsonWriter& json) {
  json.begin_object();
  json.member("page_size", engine.page_size).member("page_count", engine.page_count);
  json.member("max_batch_rows", engine.max_batch_rows).member("max_seq_len", engine.max_seq_len);
  json.key("buckets").begin_array();
  for (const uint32_t bucket : engine.buckets) json.value(bucket);
  json.end_array().end_object();
}

void write_mode(const Mode& mode, JsonWriter& json) {
  json.begin_object();
  json.member("streams", to_text(mode.streams)).member("capture", to_text(mode.capture));
  json.member("backend", to_text(mode.backend)).member("index_key", to_text(mode.index_key));
  json.member("topk", to_text(mode.topk)).member("kernels", to_text(mode.kernels));
  json.member("feedback", to_text(mode.feedback)).member("probe", to_text(mode.probe));
  json.member("order", mode.order);
  json.key("inject");
  write_strings(mode.inject, json);
  json.member("poison", mode.poison).member("full_logits", mode.full_logits);
  json.end_object();
}

template <class Header>
void write_header(const Header& header, JsonWriter& json) {
  json.member("writer", header.writer);
  json.key("model");
  write_model(header.model, json);
  json.key("engine");
  write_engine(header.engine, json);
  json.key("mode");
  write_mode(header.mode, json);
  json.key("environment");
  write_strings(header.environment, json);
}

void write_optional(std::string_view name, const std::optional<StepIndex>& step, JsonWriter& json) {
  json.key(name);
  if (step)
    json.value(*step);
  else
    json.null();
}

void write_summary(const FileInfo& info, JsonWriter& json) {
  const FileSummary& s = info.summary;
  json.member("file_bytes", s.file_bytes).member("payload_bytes", s.payload_bytes);
  json.member("bytes_per_step", bytes_per_step(info));
  json.member("chunks", s.chunks).member("records", s.records);
  json.member("steps", s.steps).member("rows", s.rows).member("outputs", s.outputs);
  json.member("findings", s.findings);
  write_optional("first_step", info.first_step, json);
  write_optional("last_step", info.last_step, json);
  json.key("trace_digest");
  if (info.run_header || s.steps != 0)
    json.value(digest_hex(s.trace_digest));
  else
    json.null();
  json.member("end", s.end == FileEnd::clean ? "clean" : "cut");
  json.member("cut_offset_bytes", s.cut_offset_bytes);
}

}  // namespace

void write_json(const FileInfo& info, JsonWriter& json) {
  json.begin_object();
  json.member("file", info.path).member("kind", to_text(info.kind));
  if (info.trace_header) {
    write_header(*info.trace_header, json);
    json.member("workload", info.trace_header->workload);
    json.key("steps_by_phase").begin_object();
    json.member("prefill", info.steps_by_phase[0]).member("decode", info.steps_by_phase[1]);
    json.member("mixed", info.steps_by_phase[2]).end_object();
    json.member("requests", info.requests).member("departures", info.departures);
    json.member("exchanges", info.summary.exchanges).member("events", info.summary.events);
    json.member("steps_lost", info.summary.steps_lost).key("gaps").begin_array();
    for (const Gap& gap : info.gaps) write_json(gap, json);
    json.end_array().member("redaction", to_text(info.trace_header->redaction));
    json.member("sampling", info.trace_header->sampling);
    json.member("weights_sha256", info.trace_header->model.weights_sha256);
    json.member("tokenizer_sha256", info.trace_header->model.tokenizer_sha256);
    json.member("config_sha256", info.trace_header->model.config_sha256);
  }
  if (info.run_header) {
    write_header(*info.run_header, json);
    json.member("run_digest", digest_hex(info.summary.run_digest));
    json.key("findings_by_kind").begin_object();
    for (size_t i = 0; i < info.findings_by_kind.size(); ++i)
      json.member(to_text(static_cast<FindingKind>(i)), info.findings_by_kind[i]);
    json.end_object();
  }
  write_summary(info, json);
  json.end_object();
}

std::string to_json(const FileInfo& info) {
  JsonWriter json;
  write_json(info, json);
  return json.take();
}

std::string to_json(const VerifyResult& result) {
  JsonWriter json;
  json.begin_object();
  json.member("sound", result.sound);
  if (!result.sound) {
    json.key("fault").begin_object();
    json.member("code", error_name(result.code)).member("message", result.fault);
    json.member("where", result.where).end_object();
  }
  json.key("file");
  write_json(result.info, json);
  json.end_object();
  return json.take();
}

}  // namespace redecode
