#include "traces/thousands.h"
#include "traces/value_text.h"

// Events, gaps and exchanges; steps and outputs are in value_text.cpp.

namespace redecode {

std::string to_text(const Event& event) {
  std::string out = "event before step " + std::to_string(event.before_step) + ": " +
                    std::string(to_text(event.kind));
  if (event.request != kNoRequest) out += " r" + std::to_string(event.request);
  if (event.a != 0 || event.b != 0)
    out += " " + std::to_string(event.a) + " " + std::to_string(event.b);
  return event.text.empty() ? out : out + " '" + event.text + "'";
}

std::string to_text(const Exchange& e) {
  std::string out = "exchange " + std::to_string(e.number) + ": " + e.path + " " +
                    (e.status == 0 ? "no status" : std::to_string(e.status));
  out += ", " + with_thousands(e.prompt_tokens) + " prompt tokens, " +
         with_thousands(e.output_tokens) + " output tokens";
  if (e.end_us > e.start_us) out += ", " + with_thousands((e.end_us - e.start_us) / 1000) + " ms";
  return e.end == ExchangeEnd::complete ? out : out + ", " + std::string(to_text(e.end));
}

void write_json(const Event& event, JsonWriter& json) {
  json.begin_object();
  json.member("before_step", event.before_step).member("time_us", event.time_us);
  json.member("kind", to_text(event.kind)).key("request");
  if (event.request == kNoRequest)
    json.null();
  else
    json.value(event.request);
  json.member("a", event.a).member("b", event.b).member("text", event.text).end_object();
}

void write_json(const Gap& gap, JsonWriter& json) {
  json.begin_object();
  json.member("first", gap.first).member("last", gap.last).member("count", gap.count);
  json.member("bytes", gap.bytes).member("causes", gap_causes_text(gap.causes)).end_object();
}

void write_json(const Exchange& e, JsonWriter& json) {
  json.begin_object();
  json.member("number", e.number).member("start_us", e.start_us).member("first_us", e.first_us);
  json.member("end_us", e.end_us).member("path", e.path).member("model", e.model);
  json.member("status", e.status).member("streamed", e.streamed).member("end", to_text(e.end));
  json.member("session", e.session).member("round", e.round).member("prompt", e.prompt);
  json.member("prompt_bytes", e.prompt_bytes).member("prompt_tokens", e.prompt_tokens);
  json.member("output_tokens", e.output_tokens).member("max_tokens", e.max_tokens);
  json.member("n", e.choice_count).member("temperature", e.sampling.temperature);
  json.member("top_p", e.sampling.top_p).key("seed");
  if (e.has_seed)
    json.value(std::to_string(e.sampling.seed));
  else
    json.null();
  json.key("stop").begin_array();
  for (const std::string& stop : e.stop) json.value(stop);
  json.end_array().key("choices").begin_array();
  for (const ExchangeChoice& choice : e.choices) {
    json.begin_object().member("text", choice.text).member("text_bytes", choice.text_bytes);
    json.member("finish_reason", choice.finish_reason).end_object();
  }
  json.end_array().key("block_hashes").begin_array();
  for (const uint64_t hash : e.block_hashes) json.value(digest_hex(hash));
  json.end_array().key("chunk_us").begin_array();
  for (const uint64_t time_us : e.chunk_us) json.value(time_us);
  json.end_array().end_object();
}

}  // namespace redecode
