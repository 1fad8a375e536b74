// recorder/http/load_body.h - LoadBody: the JSON body of one completion request. Internal to
// recorder/http.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "traces/json_writer.h"
#include "traces/step.h"

namespace redecode {

struct LoadBody {
  bool chat = false;
  std::string model;        // empty: not said
  std::string prompt_json;  // of "prompt", or of "messages" when chat
  uint32_t max_tokens = 0;  // 0: not said
  uint32_t n = 1;
  bool stream = true;
  bool has_seed = false;
  Sampling sampling;
  std::vector<std::string> stop;
};

inline std::string quoted_json(const std::string& text) {
  JsonWriter json;
  json.value(text);
  return json.take();
}

// Servers hold seeds as 64-bit, 32-bit or floating numbers; this fits all of them.
inline uint64_t short_seed(uint64_t bits) { return bits >> 33; }

inline std::string to_json(const LoadBody& body) {
  JsonWriter json;
  json.begin_object();
  if (!body.model.empty()) json.member("model", body.model);
  json.key(body.chat ? "messages" : "prompt").raw(body.prompt_json);
  if (body.max_tokens != 0) json.member("max_tokens", body.max_tokens);
  json.member("temperature", body.sampling.temperature);
  if (body.sampling.top_p != 1.0f) json.member("top_p", body.sampling.top_p);
  if (body.sampling.top_k != 0) json.member("top_k", body.sampling.top_k);
  if (body.sampling.min_p != 0.0f) json.member("min_p", body.sampling.min_p);
  if (body.has_seed) json.member("seed", body.sampling.seed);
  if (body.n != 1) json.member("n", body.n);
  if (!body.stop.empty()) {
    json.key("stop").begin_array();
    for (const std::string& stop : body.stop) json.value(stop);
    json.end_array();
  }
  json.member("stream", body.stream);
  if (body.stream)
    json.key("stream_options").begin_object().member("include_usage", true).end_object();
  json.end_object();
  return json.take();
}

}  // namespace redecode
