// traces/edit/redact.h - redact: a trace without anybody's words, and the proof of it.
//
// Token ids are prompt text for whoever has the tokenizer. What stays is what replay and the
// structural checks need: schedule, lengths, pages, sampling settings, times. Every token becomes
// 0, which is in every vocabulary; sampled tokens, largest logits, full logits and their digests
// go, for they tell the tokens to who holds the weights; texts of exchanges, events and notes go.
//
// Two ways keep more. Hashes: of each full page of a request's tokens, and of each 256 bytes of an
// exchange's prompt, a note with HMAC-SHA256 under a salt, cut to 64 bits: over all that came
// before, so equal prefixes have equal hashes, and nobody without the salt can guess a text from
// them. Encrypted: tokens and texts are sealed (seal.h) into notes before the record they are of;
// `decrypt` puts them back. Notes are events before the same step: "hash R I H" and "sealed KIND
// N/M TEXT".
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "traces/edit/seal.h"
#include "traces/trace_file.h"

namespace redecode {

struct RedactResult {
  uint64_t steps = 0, tokens = 0, outputs = 0, exchanges = 0, events = 0;
  uint64_t text_bytes = 0;  // taken out
};

struct RedactOptions {
  Redaction keep = Redaction::lengths;  // lengths, hashes or encrypted
  std::vector<uint8_t> salt;            // hashes: at least 16 bytes
  SealKey key{};                        // encrypted
};

// Errors: as TraceReader and TraceWriter; usage (the same file, a salt that is too short).
RedactResult redact(const std::filesystem::path& from, const std::filesystem::path& to,
                    bool overwrite, const RedactOptions& options = {});

// The trace that was encrypted, less what no way keeps: logits, digests, the workload's text.
// Errors: as redact; usage (not an encrypted trace, another key), corrupt (a seal is broken or
// missing), naming the step.
RedactResult decrypt(const std::filesystem::path& from, const std::filesystem::path& to,
                     bool overwrite, const SealKey& key);

struct RedactionProof {
  uint64_t chunks = 0, values = 0;  // looked at
  std::vector<std::string> left;    // a sentence for each thing that is still there, at most 100
  bool holds() const { return left.empty(); }
};

// Reads a whole trace and looks for anything that `redact` should have taken out.
RedactionProof prove_redacted(const std::filesystem::path& path);

}  // namespace redecode
