// traces/header.h - what the head of a trace or run file says: enough to replay it and to refuse
// what does not fit.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
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
  // SHA-256 of content, 64 hex digits; empty: not known. Weights and tokenizer: their files;
  // config: its text; what no file holds: a description with the digest of the content.
  // Never a name: two checkpoints may share one.
  std::string weights_sha256{}, tokenizer_sha256{}, config_sha256{};
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

// What was taken out of a trace on purpose, so that a reader knows what it can ask for.
enum class Redaction : uint8_t {
  none,
  lengths,    // tokens are gone: every one is 0
  hashes,     // tokens are gone, salted hashes of the prompt's blocks are kept
  encrypted,  // tokens are there for whoever has the key
};

std::string_view to_text(Redaction);
bool from_text(std::string_view text, Redaction& out);

// A file of a rotated set: files follow each other like the chunks of one.
struct SetPlace {
  std::string set;      // id of the set: file id of its first file, hex; empty: not of a set
  uint32_t number = 0;  // 0, 1, 2 ...
  Digest previous = 0;  // of the last chunk of the file before; 0 in the first
  bool operator==(const SetPlace&) const = default;
};

struct TraceHeader {
  std::string writer;  // "redecode 0.1.0"
  ModelIdentity model;
  EngineSettings engine;
  Mode mode;                             // under which it was recorded
  std::string workload;                  // for people: "agent sessions=60 rounds=4 ..."
  std::vector<std::string> environment;  // "REDECODE_STREAMS=single", sorted
  std::string sampling;                  // what was recorded, for people; empty: all
  int64_t started_unix_us = 0;           // wall clock where time_us is 0; 0: not known
  Redaction redaction = Redaction::none;
  std::vector<uint8_t> redaction_salt;  // of block hashes, or of the key's derivation
  SetPlace place;
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
