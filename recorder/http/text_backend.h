// recorder/http/text_backend.h - TextBackend: what the HTTP endpoint needs of an engine, in values.
//
//   encode -> submit -> (engine) -> event_fd readable -> take_events -> decode
//
// All calls come from one thread, the endpoint's; none of them may wait for the engine.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recorder/http/histogram.h"
#include "recorder/http/openai.h"
#include "traces/step.h"
#include "traces/traffic.h"

namespace redecode {

using JobId = uint32_t;  // one choice of a request; ascends in order of submission

struct TextJob {
  std::vector<int32_t> prompt;
  uint32_t max_tokens = 1;
  Sampling sampling;
  bool ignore_eos = false;
  int32_t logprobs = -1;  // likeliest tokens to name with each token; -1: no log probabilities
};

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0.0f;
};

// A token, an end, or both.
struct BackendEvent {
  JobId job = 0;
  bool has_token = false;
  TokenLogprob token;             // its logprob: 0 unless asked for
  std::vector<TokenLogprob> top;  // descending
  std::optional<RequestEnd> end;  // nothing follows
};

struct BackendInfo {
  std::vector<std::string> models;  // names that requests may use; the first is listed
  std::string fingerprint;          // changes when answers may change
  uint32_t context_tokens = 0;      // prompt and output of a choice together
  uint32_t vocab = 0;
  uint32_t token_bytes = 0;  // of the longest token
  int32_t end_token = -1;    // ends a text unless ignore_eos
};

// A moment's state; counters only grow.
struct BackendMetrics {
  uint64_t steps = 0, graph_steps = 0;
  uint64_t prompt_rows = 0, cached_tokens = 0, output_tokens = 0;
  uint64_t submitted = 0, preemptions = 0;
  std::array<uint64_t, 5> ends{};  // by RequestEnd
  uint32_t waiting = 0, running = 0;
  Histogram step_seconds;
  bool recording = false;
  uint64_t steps_recorded = 0, outputs_recorded = 0, steps_dropped = 0, outputs_dropped = 0;
  uint64_t trace_bytes = 0;
  uint64_t ring_records = 0, ring_capacity = 0;
  Histogram chunk_seconds;  // from the first byte of a chunk written to its last
};

class TextBackend {
 public:
  virtual ~TextBackend() = default;
  virtual const BackendInfo& info() const = 0;
  // Token ids with what the model wants in front. Cost: O(text) or a little more.
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  virtual std::string chat_prompt(const std::vector<ChatMessage>& messages) const = 0;
  // Bytes of a token behind another (-1: none); they may begin or end inside a character.
  virtual std::string decode(int32_t previous, int32_t token) const = 0;
  // Nothing when it takes no more jobs; prompt and max_tokens must fit context_tokens.
  virtual std::optional<JobId> submit(TextJob job) = 0;
  virtual void cancel(JobId job) = 0;  // an ended or unknown one: no effect
  // Readable when take_events has something to give; take_events resets it.
  virtual int event_fd() const = 0;
  virtual void take_events(std::vector<BackendEvent>& out) = 0;
  virtual BackendMetrics metrics() const = 0;
  virtual bool failed() const = 0;  // it has ended by an error; every job has
};

}  // namespace redecode
