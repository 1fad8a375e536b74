// recorder/http/endpoint.h - run_endpoint: the OpenAI-compatible HTTP server over a TextBackend.
//
//   POST /v1/completions, /v1/chat/completions   GET /v1/models, /v1/models/ID, /health, /metrics
//
// One thread, the caller's, runs everything here. Each error is JSON as the API has it:
//   400 a body that cannot be served (code context_length_exceeded where that is why)
//   401 no or another bearer token   404 no such path, or model (model_not_found)
//   405 another method   408 the body came too slowly   413 the body is too large
//   415 not application/json   429 too many choices wait (with Retry-After)   500 the engine failed
//   503 draining, or the engine has ended   504 the answer took too long
// An error after a stream has begun is an event with an "error" member, the last of the stream.
//
// Back-pressure: the answer of a slow reader waits here, bounded by its max_tokens; nobody else
// waits for it. A client that closes its connection, or the sending half of it, cancels its
// choices within a quarter of a second.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "recorder/http/openai.h"
#include "recorder/http/text_backend.h"

namespace redecode {

struct EndpointOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 0;            // 0: any free one
  std::string token;            // clients must send it as a bearer token; empty: none
  RequestLimits request;        // of a body
  uint32_t max_waiting = 1024;  // choices without a first token; more are answered 429
  uint32_t max_connections = 4096;
  uint64_t max_body_bytes = uint64_t{256} << 20;  // of all bodies being read
  uint32_t header_timeout_ms = 15'000;
  uint32_t idle_timeout_ms = 60'000;      // between requests of a connection
  uint32_t body_timeout_ms = 30'000;      // to read a body
  uint32_t request_timeout_ms = 600'000;  // from the last byte of a body to that of the answer
  uint32_t drain_timeout_ms = 30'000;     // for requests that run when stop says so
  uint64_t seed_key = 0;                  // of requests that give no seed
};

struct EndpointSummary {
  uint64_t connections = 0, requests = 0;
  uint64_t choices = 0;       // submitted to the backend
  uint64_t disconnects = 0;   // requests that their client gave up
  uint64_t cut_by_drain = 0;  // requests that the end of the drain cancelled
};

// Serves until stop() is true or the backend has failed; then drains: new requests are refused,
// running ones end, or are cancelled after drain_timeout_ms. `stop` is asked about every 10 ms.
// `listening` is called once with the port. Errors: usage (no such address), environment (the
// address is taken).
EndpointSummary run_endpoint(const EndpointOptions& options, TextBackend& backend,
                             const std::function<void(uint16_t port)>& listening,
                             const std::function<bool()>& stop);

// True when equal; takes as long whatever the difference is.
bool same_token(const std::string& given, const std::string& wanted);

}  // namespace redecode
