// compare/run_source.h - RunSource: a run read forward once, from a file or from memory.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "traces/run_file.h"

namespace redecode {

class RunSource {
 public:
  virtual ~RunSource() = default;
  virtual const RunHeader& header() const = 0;
  // False at the end of the readable part. Errors: corrupt.
  virtual bool next(RunRecord& out) = 0;
  // How the run ended; known once next returned false.
  virtual FileEnd end() const = 0;
};

// Opens the same run from its start, each time it is called.
using OpenRun = std::function<std::unique_ptr<RunSource>()>;

// A run held in memory. Findings are handed out before the outputs.
struct MemoryRun {
  RunHeader header;
  std::vector<StepOutput> outputs;
  std::vector<Finding> findings;
  FileEnd end = FileEnd::clean;
};

// Keeps a reference to `run`, which must outlive every source opened.
OpenRun open_run_in_memory(const MemoryRun& run);

// A .rdr file. Errors when opened: missing, corrupt, truncated, version, limit.
OpenRun open_run_file(const std::filesystem::path& path);

}  // namespace redecode
