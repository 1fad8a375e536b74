#include <cstdio>

#include "compare/report.h"
#include "traces/json_writer.h"

namespace redecode {
namespace {

template <class T>
void optional_member(JsonWriter& json, std::string_view name, const std::optional<T>& value) {
  json.key(name);
  if (value)
    json.value(*value);
  else
    json.null();
}

void bits_member(JsonWriter& json, std::string_view name, const std::optional<uint32_t>& bits) {
  json.key(name);
  if (!bits) {
    json.null();
    return;
  }
  char hex[9];
  std::snprintf(hex, sizeof hex, "%08x", *bits);
  json.value(std::string_view(hex));
}

void digest_member(JsonWriter& json, std::string_view name, const std::optional<Digest>& digest) {
  json.key(name);
  if (digest)
    json.value(digest_hex(*digest));
  else
    json.null();
}

void request_member(JsonWriter& json, RequestId request) {
  optional_member(json, "request",
                  request == kNoRequest ? std::nullopt : std::optional<RequestId>(request));
}

void write_run(JsonWriter& json, std::string_view name, const RunHeader& header) {
  json.key(name).begin_object();
  json.member("mode", describe(header.mode));
  json.member("kernels", to_text(header.mode.kernels));
  json.member("backend", to_text(header.mode.backend));
  json.member("model", header.model.spec);
  json.member("trace_digest", digest_hex(header.trace_digest));
  json.member("writer", header.writer);
  json.end_object();
}

void write_coverage(JsonWriter& json, const Coverage& coverage) {
  json.key("steps").begin_object();
  json.member("common", coverage.common_steps);
  json.member("only_golden", coverage.only_golden);
  json.member("only_candidate", coverage.only_candidate);
  optional_member(json, "first", coverage.first_common);
  optional_member(json, "last", coverage.last_common);
  json.member("golden_cut", coverage.golden_end == FileEnd::cut);
  json.member("candidate_cut", coverage.candidate_end == FileEnd::cut);
  json.end_object();
}

void write_op(JsonWriter& json, const std::optional<DivergingOp>& op) {
  json.key("op");
  if (!op) {
    json.null();
    return;
  }
  json.begin_object();
  json.member("name", op->name);
  json.member("layer", op->layer);
  json.member("occurrence", op->occurrence);
  json.member("golden_command", op->golden_command);
  json.member("golden_stream", op->golden_stream);
  json.member("candidate_command", op->candidate_command);
  json.member("candidate_stream", op->candidate_stream);
  json.end_object();
}

void write_values(JsonWriter& json, const Divergence& d) {
  optional_member(json, "element", d.element);
  json.member("element_size_bytes", d.element_size_bytes);
  bits_member(json, "expected_bits", d.expected_bits);
  bits_member(json, "found_bits", d.found_bits);
  json.member("expected", d.expected_text);
  json.member("found", d.found_text);
  json.member("distance_ulps", d.distance_ulps);
  json.member("elements_differing", d.elements_differing);
  json.member("largest_ulps", d.largest_ulps);
  digest_member(json, "expected_digest", d.expected_digest);
  digest_member(json, "found_digest", d.found_digest);
  optional_member(json, "expected_token", d.expected_token);
  optional_member(json, "found_token", d.found_token);
}

void write_labels(JsonWriter& json, const std::vector<RowLabel>& labels) {
  json.key("labels").begin_array();
  for (const RowLabel& label : labels) {
    json.begin_object();
    json.member("row", label.row);
    request_member(json, label.request);
    json.member("digest", digest_hex(label.digest));
    json.member("nan", label.has_nan);
    json.member("infinity", label.has_infinity);
    json.key("donor");
    if (label.donor) {
      json.begin_object();
      json.member("step", label.donor->step);
      request_member(json, label.donor->request);
      json.member("row", label.donor->row);
      json.member("position", label.donor->position);
      json.end_object();
    } else {
      json.null();
    }
    json.end_object();
  }
  json.end_array();
}

void write_divergence(JsonWriter& json, const CompareResult& result) {
  json.key("divergence");
  if (!result.divergence) {
    json.null();
    return;
  }
  const Divergence& d = *result.divergence;
  json.begin_object();
  json.member("where", to_text(d.place));
  json.member("step", d.step);
  optional_member(json, "row", d.row == kNoRow ? std::nullopt : std::optional<uint32_t>(d.row));
  json.member("padding_row", result.padding_row);
  request_member(json, d.request);
  optional_member(json, "position", d.position);
  const auto& place = result.session;
  optional_member(json, "session", place ? std::optional(place->session) : std::nullopt);
  optional_member(json, "round", place ? std::optional(place->round) : std::nullopt);
  write_op(json, d.op);
  write_values(json, d);
  json.member("probed", result.divergence_probed);
  json.member("step_rows_compared", result.rows_compared);
  json.member("step_rows_differing", result.rows_differing);
  json.member("step_tokens_differing", result.tokens_differing);
  json.member("candidate_order", result.candidate_order);
  write_labels(json, result.labels);
  json.end_object();
}

void write_side(JsonWriter& json, std::string_view name, const FindingSide& side) {
  json.key(name);
  if (side.op.empty()) {
    json.null();
    return;
  }
  json.begin_object();
  json.member("op", side.op);
  json.member("buffer", side.buffer);
  json.member("access", to_text(side.access));
  json.member("layer", side.layer);
  json.member("stream", side.stream);
  json.member("command", side.command);
  json.member("step", side.step);
  json.end_object();
}

void write_explanation(JsonWriter& json, const std::optional<Explanation>& explanation) {
  json.key("explanation");
  if (!explanation) {
    json.null();
    return;
  }
  const Finding& finding = explanation->finding;
  json.begin_object();
  json.member("kind", to_text(finding.kind));
  json.member("matched_by", to_text(explanation->match));
  json.member("sentence", sentence(finding));
  json.member("step", finding.step);
  json.member("layer", finding.layer);
  request_member(json, finding.request);
  write_side(json, "first", finding.first);
  write_side(json, "second", finding.second);
  json.member("offset_bytes", finding.offset_bytes);
  json.member("size_bytes", finding.size_bytes);
  json.member("missing_edge", finding.missing_edge);
  json.member("advice", finding.advice);
  json.end_object();
}

void write_session(JsonWriter& json, const SessionCount& session) {
  json.begin_object();
  json.member("session", session.session);
  json.member("rounds", session.rounds);
  json.member("max_rounds", session.max_rounds);
  json.member("corrupted", session.corrupted);
  json.member("differing", session.differing);
  json.member("error", session.error);
  json.member("rows_compared", session.rows_compared);
  json.member("rows_differing", session.rows_differing);
  json.member("tokens_differing", session.tokens_differing);
  optional_member(json, "first_differing_step", session.first_differing_step);
  optional_member(json, "first_corrupted_step", session.first_corrupted_step);
  json.end_object();
}

void write_sessions(JsonWriter& json, const CompareResult& result) {
  json.key("sessions");
  if (!result.sessions_known) {
    json.null();
    return;
  }
  const SessionSummary& s = result.sessions;
  const RateInterval interval = s.corruption_interval();
  json.begin_object();
  json.member("count", s.sessions.size());
  json.member("rounds", s.rounds);
  json.member("max_rounds", s.max_rounds_reached);
  json.member("corrupted", s.corrupted);
  json.member("differing", s.differing);
  json.member("error", s.errors);
  json.member("corrupted_lower_95", interval.lower);
  json.member("corrupted_upper_95", interval.upper);
  json.member("corrupted_below_95_one_sided", upper_bound(s.corrupted, s.sessions.size()));
  json.key("each").begin_array();
  for (const SessionCount& session : s.sessions) write_session(json, session);
  json.end_array();
  json.end_object();
}

void write_counts(JsonWriter& json, const CompareResult& result) {
  const SessionSummary& s = result.sessions;
  json.key("counts").begin_object();
  json.member("steps_differing", result.steps_differing);
  json.member("requests", s.requests);
  json.member("requests_corrupted", s.requests_corrupted);
  json.member("requests_differing", s.requests_differing);
  json.member("requests_unmapped", s.requests_unmapped);
  json.member("rows_compared", s.rows_compared);
  json.member("rows_differing", s.rows_differing);
  json.member("tokens_differing", s.tokens_differing);
  json.member("ops_compared", result.ops_compared);
  json.member("ops_unmatched_golden", result.ops_unmatched_golden);
  json.member("ops_unmatched_candidate", result.ops_unmatched_candidate);
  json.member("findings", result.findings_total);
  json.member("findings_dropped", result.findings_dropped);
  json.end_object();
}

}  // namespace

std::string report_json(const CompareResult& result) {
  JsonWriter json;
  json.begin_object();
  json.member("verdict", to_text(result.verdict.kind));
  json.member("exit_code", exit_code(result.verdict.kind));
  json.key("reasons").begin_array();
  for (const std::string& reason : result.verdict.reasons) json.value(reason);
  json.end_array();
  json.member("max_ulps", result.max_ulps);
  write_run(json, "golden", result.golden);
  write_run(json, "candidate", result.candidate);
  write_coverage(json, result.coverage);
  write_divergence(json, result);
  write_explanation(json, result.explanation);
  write_sessions(json, result);
  write_counts(json, result);
  json.end_object();
  return json.take();
}

}  // namespace redecode
