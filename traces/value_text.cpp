#include "traces/value_text.h"

#include <charconv>

namespace redecode {
namespace {

std::string number(uint64_t value) { return std::to_string(value); }

std::string shortest(float value) {
  char text[48];
  const auto result = std::to_chars(text, text + sizeof text, value);
  return std::string(text, result.ptr);
}

std::string row_text(const Step& step, size_t first, size_t last) {
  const Row& row = step.rows[first];
  std::string out = " r" + number(row.request) + '@' + number(row.position);
  out += last > first ? ".." + number(step.rows[last].position) : '=' + std::to_string(row.token);
  if (!step.rows[last].wants_output) out += '*';
  return out;
}

std::string arrival_text(const Arrival& a) {
  std::string out = " +r" + number(a.request) + " session " + number(a.session) + " round " +
                    number(a.round) + " prompt " + number(a.prompt_tokens) + " cached " +
                    number(a.cached_tokens) + " max " + number(a.max_tokens);
  return a.resumed ? out + " resumed" : out;
}

void write_sampling(const Sampling& s, JsonWriter& json) {
  json.begin_object();
  json.member("temperature", s.temperature).member("top_k", s.top_k);
  json.member("top_p", s.top_p).member("min_p", s.min_p);
  json.member("seed", std::to_string(s.seed)).end_object();
}

void write_arrival(const Arrival& a, JsonWriter& json) {
  json.begin_object();
  json.member("request", a.request).member("session", a.session).member("round", a.round);
  json.member("prompt_tokens", a.prompt_tokens).member("cached_tokens", a.cached_tokens);
  json.member("max_tokens", a.max_tokens).member("resumed", a.resumed);
  json.key("sampling");
  write_sampling(a.sampling, json);
  json.end_object();
}

}  // namespace

std::string_view to_text(Phase phase) {
  switch (phase) {
    case Phase::prefill:
      return "prefill";
    case Phase::decode:
      return "decode";
    case Phase::mixed:
      return "mixed";
  }
  return "unknown";
}

std::string_view to_text(DepartureReason reason) {
  switch (reason) {
    case DepartureReason::finished:
      return "finished";
    case DepartureReason::preempted:
      return "preempted";
    case DepartureReason::cancelled:
      return "cancelled";
    case DepartureReason::failed:
      return "failed";
  }
  return "unknown";
}

std::string to_text(const Step& step) {
  std::string out = "step " + number(step.index) + ' ';
  out += to_text(step.phase);
  out += " bucket " + number(step.bucket) + " rows " + number(step.rows.size());
  if (!step.departures.empty()) out += " |";
  for (const Departure& d : step.departures) {
    out += " -r" + number(d.request) + ' ';
    out += to_text(d.reason);
  }
  if (!step.arrivals.empty()) out += " |";
  for (const Arrival& a : step.arrivals) out += arrival_text(a);
  if (!step.page_changes.empty()) out += " |";
  for (const PageChange& c : step.page_changes)
    out += " r" + number(c.request) + '[' + number(c.index) + "]=page " + number(c.page) +
           (c.shared ? " shared" : "");
  if (!step.rows.empty()) out += " |";
  for (size_t first = 0; first < step.rows.size();) {
    size_t last = first;
    while (last + 1 < step.rows.size() && step.rows[last + 1].request == step.rows[first].request &&
           step.rows[last + 1].position == step.rows[last].position + 1)
      ++last;
    out += row_text(step, first, last);
    first = last + 1;
  }
  return out;
}

std::string to_text(const StepOutput& output) {
  std::string out = "output " + number(output.step);
  if (!output.rows.empty()) out += " |";
  for (const RowOutput& row : output.rows) {
    out += " r" + number(row.request) + '@' + number(row.position) + " -> " +
           std::to_string(row.token);
    for (const TopLogit& top : row.top) {
      if (top.token != row.token) continue;
      out += " (" + shortest(top.logit - row.log_sum_exp) + ')';
      break;
    }
  }
  if (!output.ops.empty()) out += " | " + number(output.ops.size()) + " probes";
  if (!output.order.empty()) out += " | order " + output.order;
  return out;
}

void write_json(const Step& step, JsonWriter& json) {
  json.begin_object();
  json.member("step", step.index).member("phase", to_text(step.phase));
  json.member("bucket", step.bucket);
  json.key("departures").begin_array();
  for (const Departure& d : step.departures)
    json.begin_object()
        .member("request", d.request)
        .member("reason", to_text(d.reason))
        .end_object();
  json.end_array();
  json.key("arrivals").begin_array();
  for (const Arrival& a : step.arrivals) write_arrival(a, json);
  json.end_array();
  json.key("page_changes").begin_array();
  for (const PageChange& c : step.page_changes) {
    json.begin_object().member("request", c.request).member("index", c.index);
    json.member("page", c.page).member("shared", c.shared).end_object();
  }
  json.end_array();
  json.key("rows").begin_array();
  for (const Row& r : step.rows) {
    json.begin_object().member("request", r.request).member("position", r.position);
    json.member("token", r.token).member("slot", r.slot);
    json.member("wants_output", r.wants_output).end_object();
  }
  json.end_array().end_object();
}

void write_json(const StepOutput& output, JsonWriter& json) {
  json.begin_object();
  json.member("step", output.step);
  json.key("rows").begin_array();
  for (const RowOutput& r : output.rows) {
    json.begin_object().member("row", r.row).member("request", r.request);
    json.member("position", r.position).member("token", r.token);
    json.member("logits_digest", digest_hex(r.logits_digest));
    json.member("log_sum_exp", r.log_sum_exp);
    json.key("top").begin_array();
    for (const TopLogit& t : r.top)
      json.begin_object().member("token", t.token).member("logit", t.logit).end_object();
    json.end_array().end_object();
  }
  json.end_array();
  json.key("ops").begin_array();
  for (const OpProbe& p : output.ops) {
    json.begin_object().member("command", p.command).member("op", p.op);
    json.member("layer", p.layer).member("stream", p.stream);
    json.member("digest", digest_hex(p.digest)).end_object();
  }
  json.end_array();
  json.member("order", output.order).end_object();
}

}  // namespace redecode
