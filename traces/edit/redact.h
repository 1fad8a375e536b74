// traces/edit/redact.h - redact: a trace without anybody's words, and the proof of it.
//
// Token ids are prompt text for whoever has the tokenizer. What stays is what replay and the
// structural checks need: schedule, lengths, pages, sampling settings, times. Every token becomes
// 0, which is in every vocabulary; sampled tokens, largest logits, full logits and their digests
// go, for they tell the tokens to who holds the weights; texts of exchanges, events and notes go.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "traces/trace_file.h"

namespace redecode {

struct RedactResult {
  uint64_t steps = 0, tokens = 0, outputs = 0, exchanges = 0, events = 0;
  uint64_t text_bytes = 0;  // taken out
};

// Lengths only. Errors: as TraceReader and TraceWriter; usage (the same file).
RedactResult redact(const std::filesystem::path& from, const std::filesystem::path& to,
                    bool overwrite);

struct RedactionProof {
  uint64_t chunks = 0, values = 0;  // looked at
  std::vector<std::string> left;    // a sentence for each thing that is still there, at most 100
  bool holds() const { return left.empty(); }
};

// Reads a whole trace and looks for anything that `redact` should have taken out.
RedactionProof prove_redacted(const std::filesystem::path& path);

}  // namespace redecode
