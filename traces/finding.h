// traces/finding.h - Finding: one fault seen in the structure of a run, and the sentence that says
// it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "traces/program.h"
#include "traces/step.h"

namespace redecode {

enum class FindingKind : uint8_t {
  race,            // two conflicting accesses that no path orders
  use_after_free,  // a command names a buffer after the host freed it
  unwritten,       // a read of bytes that nobody wrote since they were allocated
  stale,           // a read of bytes that hold another buffer's content, although ordered
  foreign,         // a row reads or writes a KV page of another request, or leaves its page
  frozen,          // a graph holds a value of capture time where this step needs its own
  numeric,         // a reduction whose shape follows the batch
  hang,            // a launch that cannot become resident, or a wait that nothing ends
};

enum class Severity : uint8_t {
  conflicting,  // the result can be wrong
  unusual,      // nothing is wrong by itself: worth a look, no reason to fail
};

// One of the (at most two) accesses of a finding.
struct FindingSide {
  std::string op;      // e.g. "indexer.logits"
  std::string buffer;  // e.g. "index_q"
  uint32_t layer = 0;
  uint32_t stream = 0;
  uint32_t command = 0;  // index into the program of `step`
  StepIndex step = 0;
  Access access = Access::read;
  uint64_t generation = 0;  // of the pool block behind `buffer`; 0 for persistent buffers
  uint32_t version = 0;     // of the content, where the program states it; not written to files
  bool operator==(const FindingSide&) const = default;
};

struct Finding {
  FindingKind kind = FindingKind::race;
  StepIndex step = 0;
  RequestId request = kNoRequest;  // kNoRequest where every row is concerned
  uint32_t layer = 0;              // layer of `first`
  FindingSide first;               // in program order
  FindingSide second;              // empty op where the finding has one side
  uint64_t offset_bytes = 0;       // of the conflict within first.buffer
  uint64_t size_bytes = 0;         // bytes concerned
  std::string missing_edge;        // "indexer.logits (stream 3) -> wq_b (stream 0)"; races only
  std::string advice;              // what to change
  std::string check;               // that found it, see engine/checks; empty: the kind's own
  Severity severity = Severity::conflicting;
  bool operator==(const Finding&) const = default;
};

std::string_view to_text(FindingKind kind);
std::string_view to_text(Severity severity);
// Name of the check that found it: finding.check, or the plain check of its kind.
std::string_view check_of(const Finding& finding);
bool from_text(std::string_view text, FindingKind& out);

// "layer 3: `indexer.logits` on stream 3 reads 196,608 bytes of `index_q` that `wq_b` overwrites on
// stream 0; no edge orders them. Add a wait ...". Starts with the step, one line, no newline.
std::string sentence(const Finding& finding);

}  // namespace redecode
