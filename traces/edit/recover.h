// traces/edit/recover.h - recover: what a damaged or cut trace still holds, as a clean one.
//
// Everything readable is kept, with its own step numbers; what is missing is a Gap. A set becomes
// one file. Memory: one chunk. Cost: reads and writes the trace once.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "traces/record_target.h"
#include "traces/trace_file.h"

namespace redecode {

// Gives the records that come after the trace's end, `next_step` on: what the rings of a dead
// recorder hold.
using MoreRecords = std::function<void(StepIndex next_step, RecordTarget& target)>;

struct RecoverResult {
  uint64_t steps = 0, outputs = 0, events = 0, exchanges = 0;
  uint64_t steps_from_rings = 0;
  uint64_t outputs_lost = 0;        // their steps are missing
  std::vector<Gap> gaps;            // those that were recorded, too
  uint64_t steps_lost = 0;          // that the gaps count
  std::vector<std::string> damage;  // a sentence each: where, why
  FileEnd end = FileEnd::clean;     // of the input
  uint64_t cut_offset_bytes = 0;    // where an unclean input ends
  bool is_whole() const { return gaps.empty() && damage.empty(); }
};

// Errors: as TraceReader's for the header chunk, and TraceWriter's; usage (both are the same file).
RecoverResult recover(const std::filesystem::path& from, const std::filesystem::path& to,
                      bool overwrite, const MoreRecords& more = {});

std::string to_text(const RecoverResult& result, const std::string& from, const std::string& to);
std::string to_json(const RecoverResult& result, const std::string& from, const std::string& to);

}  // namespace redecode
