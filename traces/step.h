// traces/step.h - Step: one engine iteration as it was scheduled, a plain value.
//
// A step holds everything that a decode engine needs, beside its weights and the KV cache that
// earlier steps left behind: rows in batch order, page-table changes, arrivals and departures. It
// says nothing about streams, capture or devices: those are a Mode (mode.h).
//
// Within a step: departures come first, then arrivals, then page changes, then the rows.
#pragma once
#include <cstdint>
#include <vector>

#include "traces/digest.h"

namespace redecode {

using StepIndex = uint64_t;
using RequestId = uint32_t;  // unique within a trace, never reused
using SessionId = uint32_t;  // a session is a chain of requests, each extending the one before
using PageId = uint32_t;     // physical KV page; page 0 is the dummy page that padding rows write
inline constexpr RequestId kNoRequest = UINT32_MAX;

enum class Phase : uint8_t {
  prefill,  // every row belongs to a prompt chunk
  decode,   // one row a request, each the newest token: the only phase that runs from a graph
  mixed,    // both
};

// How the next token of a request is drawn. temperature 0 is argmax and ignores the rest.
struct Sampling {
  float temperature = 0.0f;
  int32_t top_k = 0;   // 0 keeps all
  float top_p = 1.0f;  // (0, 1]
  float min_p = 0.0f;  // [0, 1), share of the largest probability
  uint64_t seed = 0;
  bool operator==(const Sampling&) const = default;
};

// One input token. Rows of one request stand together, positions ascending.
struct Row {
  RequestId request = kNoRequest;
  uint32_t position = 0;      // 0-based place of the token in its sequence
  int32_t token = 0;          // input token
  uint32_t slot = 0;          // KV slot written: page * page_size + position % page_size
  bool wants_output = false;  // logits are computed and a token is sampled
  bool operator==(const Row&) const = default;
  uint32_t seq_len() const { return position + 1; }
};

// Entry `index` of the request's page table becomes `page`.
struct PageChange {
  RequestId request = kNoRequest;
  uint32_t index = 0;
  PageId page = 0;
  bool shared = false;  // the page already holds these tokens: a prefix hit
  bool operator==(const PageChange&) const = default;
};

struct Arrival {
  RequestId request = kNoRequest;
  SessionId session = 0;
  uint32_t round = 0;  // 0-based place of the request in its session
  uint32_t prompt_tokens = 0;
  uint32_t cached_tokens = 0;  // of those, found in the prefix cache: their rows never appear
  uint32_t max_tokens = 0;     // output tokens asked for
  bool resumed = false;        // back after a preemption; prompt_tokens then counts its output too
  Sampling sampling;
  bool operator==(const Arrival&) const = default;
};

enum class DepartureReason : uint8_t { finished, preempted, cancelled, failed };

struct Departure {
  RequestId request = kNoRequest;
  DepartureReason reason = DepartureReason::finished;
  bool operator==(const Departure&) const = default;
};

struct Step {
  StepIndex index = 0;
  Phase phase = Phase::decode;
  uint32_t bucket = 0;   // rows after padding; 0: no bucket holds the batch, it runs eager unpadded
  uint64_t time_us = 0;  // since the recording began; 0: not known. Not in any digest
  uint32_t rows_left_out = 0;  // rows of the batch that sampling or redaction left out
  std::vector<Departure> departures;
  std::vector<Arrival> arrivals;
  std::vector<PageChange> page_changes;
  std::vector<Row> rows;
  bool operator==(const Step&) const = default;
  uint32_t padded_rows() const { return bucket != 0 ? bucket : static_cast<uint32_t>(rows.size()); }
};

}  // namespace redecode
