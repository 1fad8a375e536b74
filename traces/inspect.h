// traces/inspect.h - what is in a trace or run file: the functions behind `redecode trace info`,
// `dump` and `verify`, as values, text for people and JSON.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "traces/chunk_header.h"
#include "traces/error.h"
#include "traces/header.h"
#include "traces/json_writer.h"
#include "traces/trace_file.h"

namespace redecode {

// A file read from end to end.
struct FileInfo {
  std::string path;
  FileKind kind = FileKind::trace;
  std::optional<TraceHeader> trace_header;  // exactly one of the two is set
  std::optional<RunHeader> run_header;
  FileSummary summary;
  std::optional<StepIndex> first_step, last_step;  // of steps in a trace, of outputs in a run
  std::array<uint64_t, 3> steps_by_phase{};        // prefill, decode, mixed
  uint64_t requests = 0;                           // arrivals that are not resumed
  uint64_t departures = 0;
  std::array<uint64_t, 7> findings_by_kind{};  // by FindingKind
  std::vector<Gap> gaps;                       // traces only
};

// Reads the whole file. Errors: as TraceReader and RunReader.
FileInfo inspect_file(const std::filesystem::path& path);

// Whole file bytes, headers included, to steps (runs: outputs); 0 when there are none.
double bytes_per_step(const FileInfo& info);

std::string to_text(const FileInfo& info);  // aligned lines, each ended
void write_json(const FileInfo& info, JsonWriter& json);
std::string to_json(const FileInfo& info);

struct DumpOptions {
  StepIndex first = 0;
  StepIndex last = UINT64_MAX;  // inclusive
  uint64_t limit = 1000;        // records shown; the text says when more were there
  bool json = false;            // one object: {"kind", "records": [...], "more": bool}
};

// Steps, outputs and findings of steps first..last. Errors: as TraceReader; usage (first > last).
std::string dump_file(const std::filesystem::path& path, const DumpOptions& options);

// Verdict on a file: every chunk read, every checksum and every step checked (validate.h; outputs
// of a run must ascend).
struct VerifyResult {
  bool sound = false;  // no fault; a cut file is sound, and info.summary.end says that it is cut
  ErrorCode code = ErrorCode::corrupt;  // of the fault, when not sound
  std::string fault, where;             // when not sound
  FileInfo info;                        // of what was read before the fault
};
// Errors: missing, environment, usage; all else is in the result.
VerifyResult verify_file(const std::filesystem::path& path);

std::string to_text(const VerifyResult& result);
std::string to_json(const VerifyResult& result);

}  // namespace redecode
