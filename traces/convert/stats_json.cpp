#include <string_view>

#include "traces/convert/stats.h"
#include "traces/json_writer.h"
#include "traces/value_text.h"

namespace redecode {
namespace {

void member(JsonWriter& json, std::string_view name, const Distribution& d) {
  json.key(name).begin_object().member("count", d.count()).member("min", d.min());
  json.member("p50", d.percentile(50)).member("p90", d.percentile(90));
  json.member("p99", d.percentile(99)).member("max", d.max()).member("mean", d.mean());
  json.end_object();
}

void member(JsonWriter& json, std::string_view name, const RateOverTime& r) {
  json.key(name).begin_object().member("length", r.length()).key("counts").begin_array();
  for (const uint64_t count : r.counts()) json.value(count);
  json.end_array().end_object();
}

void write_steps(const TraceStats& stats, JsonWriter& json) {
  const StepStats& s = stats.steps;
  json.key("steps").begin_object().member("count", stats.summary.steps).member("rows", s.rows);
  json.key("first");
  if (s.first)
    json.value(*s.first).member("last", *s.last);
  else
    json.null().key("last").null();
  json.key("phases").begin_object();
  for (size_t i = 0; i < s.phases.size(); ++i) {
    json.key(to_text(static_cast<Phase>(i))).begin_object();
    json.member("steps", s.phases[i].steps).member("rows", s.phases[i].rows).end_object();
  }
  json.end_object();
  member(json, "batch_rows", s.batch_rows);
  member(json, "decode_rows", s.decode_rows);
  member(json, "sequence_tokens", s.sequence_tokens);
  json.key("buckets").begin_array();
  for (const auto& [bucket, steps] : s.buckets)
    json.begin_object().member("bucket", bucket).member("steps", steps).end_object();
  json.end_array().member("padding_rows", s.padding_rows);
  json.member("rows_left_out", s.rows_left_out).member("sampled_tokens", s.sampled_tokens);
  json.member("page_changes", s.page_changes).member("shared_pages", s.shared_pages);
  json.member("times_known", s.times_known).member("times_backwards", s.times_backwards);
  member(json, "between_us", s.between_us);
  json.end_object();
}

void write_requests(const RequestStats& s, JsonWriter& json) {
  json.key("requests").begin_object().member("arrivals", s.arrivals);
  json.member("resumed", s.resumed).member("sessions", s.sessions);
  json.member("rounds_max", s.rounds_max).key("departures").begin_object();
  for (size_t i = 0; i < s.departures.size(); ++i)
    json.member(to_text(static_cast<DepartureReason>(i)), s.departures[i]);
  json.end_object();
  member(json, "prompt_tokens", s.prompt_tokens);
  member(json, "asked_tokens", s.asked_tokens);
  json.member("prompt_tokens_sum", s.prompt_tokens_sum);
  json.member("cached_tokens_sum", s.cached_tokens_sum);
  json.member("recomputed_tokens", s.recomputed_tokens);
  member(json, "arrivals_by_us", s.by_time);
  member(json, "arrivals_by_step", s.by_step);
  json.end_object();
}

void write_exchanges(const ExchangeStats& s, JsonWriter& json) {
  json.key("exchanges").begin_object().member("count", s.count).member("streamed", s.streamed);
  json.member("chunks", s.chunks).member("sessions", s.sessions).key("statuses").begin_array();
  for (const auto& [status, count] : s.statuses)
    json.begin_object().member("status", status).member("count", count).end_object();
  json.end_array().key("ends").begin_object();
  for (size_t i = 0; i < s.ends.size(); ++i)
    json.member(to_text(static_cast<ExchangeEnd>(i)), s.ends[i]);
  json.end_object();
  json.member("prompt_tokens", s.prompt_tokens).member("output_tokens", s.output_tokens);
  json.member("prompt_bytes", s.prompt_bytes).member("text_bytes", s.text_bytes);
  member(json, "prompt_lengths", s.prompt_lengths);
  member(json, "output_lengths", s.output_lengths);
  member(json, "first_us", s.first_us);
  member(json, "between_us", s.between_us);
  member(json, "whole_us", s.whole_us);
  member(json, "arrivals_by_us", s.by_time);
  json.end_object();
}

}  // namespace

std::string to_json(const TraceStats& stats) {
  const FileSummary& f = stats.summary;
  JsonWriter json;
  json.begin_object().member("path", stats.path).member("workload", stats.header.workload);
  json.member("end", f.end == FileEnd::clean ? "clean" : "cut").member("file_bytes", f.file_bytes);
  json.member("payload_bytes", f.payload_bytes).member("chunks", f.chunks);
  write_steps(stats, json);
  write_requests(stats.requests, json);
  write_exchanges(stats.exchanges, json);
  json.key("gaps").begin_array();
  for (const auto& [causes, gap] : stats.gaps) {
    json.begin_object().member("causes", gap_causes_text(causes)).member("gaps", gap.gaps);
    json.member("steps", gap.steps).member("bytes", gap.bytes).end_object();
  }
  json.end_array().key("events").begin_object();
  for (const auto& [kind, count] : stats.events) json.member(to_text(kind), count);
  json.end_object().key("records").begin_array();
  for (const KindStats& kind : stats.kinds) {
    json.begin_object().member("kind", kind.kind).member("records", kind.records);
    json.member("bytes", kind.bytes).end_object();
  }
  json.end_array().end_object();
  return json.take();
}

}  // namespace redecode
