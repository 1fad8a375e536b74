// traces/header.h - what the head of a trace or run file says: enough to replay it and to refuse
// what does not fit.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "traces/digest.h"
#include "traces/mode.h"

namespace redecode {

// Which model: how to make it again, and digests that prove that it is the same.
struct ModelIdentity {
  std::string family;  // "llama" or "dsv4"
  std::string spec;    // e.g. "dsv4-small:seed=1", "llama2c:stories260K.bin"
  Digest config_digest = 0;
  Digest weights_digest = 0;
  uint32_t vocab = 0;
  uint32_t layers = 0;
  bool operator==(const ModelIdentity&) const = default;
};

// Engine settings that decide the schedule and the padding.
struct EngineSettings {
  uint32_t page_size = 0;   // tokens a KV page
  uint32_t page_count = 0;  // including the dummy page 0
  uint32_t max_batch_rows = 0;
  uint32_t max_seq_len = 0;
  std::vector<uint32_t> buckets;  // ascending
  bool operator==(const EngineSettings&) const = default;
};

struct TraceHeader {
  std::string writer;  // "redecode 0.1.0"
  ModelIdentity model;
  EngineSettings engine;
  Mode mode;                             // under which it was recorded
  std::string workload;                  // for people: "agent sessions=60 rounds=4 ..."
  std::vector<std::string> environment;  // "REDECODE_STREAMS=single", sorted
  bool operator==(const TraceHeader&) const = default;
};

struct RunHeader {
  std::string writer;
  ModelIdentity model;
  EngineSettings engine;
  Mode mode;
  Digest trace_digest = 0;  // of all steps of the trace in order: equal digests, same trace
  std::vector<std::string> environment;
  bool operator==(const RunHeader&) const = default;
};

}  // namespace redecode
