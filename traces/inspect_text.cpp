#include <cstdio>

#include "traces/container.h"
#include "traces/finding.h"
#include "traces/inspect.h"
#include "traces/thousands.h"

namespace redecode {
namespace {

constexpr size_t kLabelColumns = 14;

void line(std::string& out, std::string_view label, const std::string& value) {
  if (value.empty()) return;
  out += label;
  out.append(label.size() < kLabelColumns ? kLabelColumns - label.size() : 1, ' ');
  out += value + '\n';
}

std::string number(uint64_t value) { return with_thousands(value); }

std::string joined(const std::vector<std::string>& values) {
  std::string out;
  for (const std::string& value : values) out += (out.empty() ? "" : " ") + value;
  return out;
}

std::string end_text(const FileSummary& s) {
  if (s.end == FileEnd::clean) return "clean";
  return "cut: readable up to byte " + number(s.cut_offset_bytes) + " of " + number(s.file_bytes);
}

std::string tenths(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string model_text(const ModelIdentity& model) {
  if (model.layers == 0 && model.vocab == 0) return model.family;
  return model.spec + " (" + model.family + ", " + number(model.layers) + " layers, vocab " +
         number(model.vocab) + ", weights " + digest_hex(model.weights_digest) + ')';
}

std::string engine_text(const EngineSettings& engine) {
  if (engine.page_size == 0) return {};  // seen from outside only
  std::string out = number(engine.page_count) + " pages of " + number(engine.page_size) +
                    " tokens, " + number(engine.max_batch_rows) + " rows, sequences up to " +
                    number(engine.max_seq_len);
  if (engine.buckets.empty()) return out;
  out += ", buckets";
  for (const uint32_t bucket : engine.buckets) out += ' ' + std::to_string(bucket);
  return out;
}

template <class Header>
void header_lines(std::string& out, const Header& header) {
  line(out, "writer", header.writer);
  line(out, "model", model_text(header.model));
  line(out, "engine", engine_text(header.engine));
  if (header.engine.page_size != 0) line(out, "mode", describe(header.mode));
  line(out, "environment", joined(header.environment));
}

std::string step_range(const FileInfo& info) {
  if (!info.first_step) return {};
  return ", " + number(*info.first_step) + " to " + number(*info.last_step);
}

void trace_lines(std::string& out, const FileInfo& info) {
  line(out, "workload", info.trace_header->workload);
  line(out, "steps",
       number(info.summary.steps) + step_range(info) + " (" + number(info.steps_by_phase[0]) +
           " prefill, " + number(info.steps_by_phase[1]) + " decode, " +
           number(info.steps_by_phase[2]) + " mixed)");
  line(out, "rows", number(info.summary.rows));
  line(out, "outputs", number(info.summary.outputs));
  line(out, "requests", number(info.requests));
  const FileSummary& s = info.summary;
  if (s.exchanges != 0) line(out, "exchanges", number(s.exchanges));
  if (s.events != 0) line(out, "events", number(s.events));
  for (const Gap& gap : info.gaps) line(out, "gap", to_text(gap));
  const TraceHeader& h = *info.trace_header;
  if (!h.sampling.empty()) line(out, "sampling", h.sampling);
  if (h.redaction != Redaction::none) line(out, "redaction", std::string(to_text(h.redaction)));
  if (!h.place.set.empty()) line(out, "set", h.place.set);
  for (const auto& [name, sha] : {std::pair{"weights sha256", h.model.weights_sha256},
                                  std::pair{"tokenizer sha256", h.model.tokenizer_sha256},
                                  std::pair{"config sha256", h.model.config_sha256}})
    if (!sha.empty()) line(out, name, sha);
}

void run_lines(std::string& out, const FileInfo& info) {
  line(out, "outputs", number(info.summary.outputs) + step_range(info));
  line(out, "rows", number(info.summary.rows));
  std::string kinds;
  for (size_t i = 0; i < info.findings_by_kind.size(); ++i) {
    if (info.findings_by_kind[i] == 0) continue;
    kinds += (kinds.empty() ? " (" : ", ") + number(info.findings_by_kind[i]) + ' ';
    kinds += to_text(static_cast<FindingKind>(i));
  }
  if (!kinds.empty()) kinds += ')';
  line(out, "findings", number(info.summary.findings) + kinds);
}

}  // namespace

std::string to_text(const FileInfo& info) {
  std::string out;
  line(out, "file", info.path);
  line(out, "kind", std::string(to_text(info.kind)));
  if (info.trace_header) {
    header_lines(out, *info.trace_header);
    trace_lines(out, info);
  }
  if (info.run_header) {
    header_lines(out, *info.run_header);
    run_lines(out, info);
    line(out, "run digest", digest_hex(info.summary.run_digest));
  }
  if (info.run_header || info.summary.steps != 0)  // that of no steps says nothing
    line(out, "trace digest", digest_hex(info.summary.trace_digest));
  line(out, "chunks", number(info.summary.chunks));
  line(out, "size",
       number(info.summary.file_bytes) + " bytes, " + tenths(bytes_per_step(info)) + " a step; " +
           number(info.summary.payload_bytes) + " uncompressed");
  line(out, "end", end_text(info.summary));
  return out;
}

std::string to_text(const VerifyResult& result) {
  const FileSummary& s = result.info.summary;
  std::string out = result.info.path + ": ";
  if (!result.sound) {
    out += std::string(error_name(result.code)) + ": " + result.fault + '\n';
    line(out, "where", result.where);
  } else {
    out += s.end == FileEnd::clean ? "sound\n" : "sound up to a cut end\n";
  }
  line(out, "kind", std::string(to_text(result.info.kind)));
  line(out, "read",
       number(s.chunks) + " chunks, " + number(s.records) + " records, " + number(s.steps) +
           " steps, " + number(s.outputs) + " outputs, " + number(s.findings) + " findings");
  if (result.sound) line(out, "end", end_text(s));
  return out;
}

}  // namespace redecode
