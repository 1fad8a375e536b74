// traces/edit/cut.h - cut and merge: parts of a trace as traces, and back.
//
// A cut trace can be replayed by itself. Steps keep their numbers: what the kept rows need of
// earlier steps stays there as rows without outputs, everything else of those steps is left out. A
// replay of the cut steps therefore gives the bits that the whole trace gives.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "traces/trace_file.h"

namespace redecode {

struct CutOptions {
  StepIndex first = 0, last = UINT64_MAX;         // inclusive
  std::optional<uint64_t> first_us{}, last_us{};  // by Step::time_us instead
  std::set<RequestId> requests{};                 // with `sessions`: rows of these only; none: all
  std::set<SessionId> sessions{};
};

struct CutResult {
  Trace trace;
  StepIndex first = 0, last = 0;     // as found
  uint64_t steps = 0, rows = 0;      // from `first` on
  uint64_t history_rows = 0;         // before it, of requests that these need
  std::set<RequestId> kept_writers;  // not asked for; they wrote pages that others share
  std::set<RequestId> broken;        // asked for and left out: steps of them are missing
};

// Errors: usage (nothing is left; times asked for and none recorded).
CutResult cut(const Trace& trace, const CutOptions& options);

// Writes `trace`: what load_trace reads is the same again.
void save_trace(const Trace& trace, const std::filesystem::path& path, bool overwrite);

struct MergeResult {
  uint64_t steps = 0, overlapping = 0;
  std::vector<Gap> gaps;
};

// Parts of one recording, in any order, as one trace. Steps that two parts hold must agree; steps
// that none holds become a gap. Errors: incomparable (parts of different recordings, steps that
// differ), as TraceReader and TraceWriter.
MergeResult merge(std::span<const std::filesystem::path> parts, const std::filesystem::path& to,
                  bool overwrite);

}  // namespace redecode
