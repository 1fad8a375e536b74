// traces/exchange.h - Exchange: one request to an OpenAI-compatible server and what came back, as
// seen from outside.
//
// The recording proxy writes these, importers make them, `redecode traffic` sends them again. HTTP
// headers are never kept, so no key can be in one. Times are microseconds since the recording
// began.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/step.h"

namespace redecode {

enum class ExchangeEnd : uint8_t {
  complete,       // the answer ended as HTTP says
  client_gone,    // the client left before that
  upstream_gone,  // the server left before that, or could not be reached
  not_sent,       // imported: a request without an answer
};

struct ExchangeChoice {
  std::string text;           // all of it, as it was streamed or sent; empty when lengths only
  uint64_t text_bytes = 0;    // of `text` before any redaction
  std::string finish_reason;  // "stop", "length", ...; empty when none came
  bool operator==(const ExchangeChoice&) const = default;
};

struct Exchange {
  uint64_t number = 0;    // 0, 1, 2 ... in order of arrival
  uint64_t start_us = 0;  // the request's last byte
  uint64_t first_us = 0;  // the answer's first body byte; 0: none came
  uint64_t end_us = 0;    // the answer's last byte; 0: it did not end
  std::string path;       // "/v1/completions", without query
  std::string model;      // as the request names it
  uint32_t status = 0;    // of HTTP; 0: none came
  bool streamed = false;
  ExchangeEnd end = ExchangeEnd::complete;

  SessionId session = 0;  // imported traces: a chain of requests; else the number
  uint32_t round = 0;
  std::string prompt;          // JSON text of `prompt` or `messages`; empty when lengths only
  uint64_t prompt_bytes = 0;   // of it, before any redaction
  uint32_t prompt_tokens = 0;  // as the answer's usage or the import says; 0: not known
  uint32_t output_tokens = 0;  // the same
  std::vector<uint64_t> block_hashes;  // of the prompt's blocks, salted; equal blocks, equal hashes
  uint32_t max_tokens = 0;             // 0: not said
  uint32_t choice_count = 1;           // n
  Sampling sampling;
  bool has_seed = false;
  std::vector<std::string> stop;

  std::vector<ExchangeChoice> choices;
  std::vector<uint64_t> chunk_us;  // arrival of each streamed event, ascending
  bool operator==(const Exchange&) const = default;
};

std::string_view to_text(ExchangeEnd);
bool from_text(std::string_view text, ExchangeEnd& out);

}  // namespace redecode
