// traces/convert/record_stream.h - RecordStream: the records of a trace, a rotated set or a run,
// one after the other.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "traces/chunk_header.h"
#include "traces/finding.h"
#include "traces/run_file.h"
#include "traces/trace_file.h"

namespace redecode {

// Exactly one is set; findings come from runs only.
struct AnyRecord : TraceRecord {
  std::optional<Finding> finding;
};

// Holds one chunk at a time.
class RecordStream {
 public:
  // Errors: as TraceReader and RunReader.
  explicit RecordStream(const std::filesystem::path& path);
  FileKind kind() const { return trace_ ? FileKind::trace : FileKind::run; }
  bool next(AnyRecord& out);
  const FileSummary& summary() const { return trace_ ? trace_->summary() : run_->summary(); }
  // nullptr for a run.
  const TraceReader* trace() const { return trace_ ? &*trace_ : nullptr; }

 private:
  std::optional<TraceReader> trace_;
  std::optional<RunReader> run_;
};

// The trace in `path`. Errors: as RecordStream; usage where it is a run, with `instead` as advice.
RecordStream trace_stream(const std::filesystem::path& path, const std::string& instead);

}  // namespace redecode
