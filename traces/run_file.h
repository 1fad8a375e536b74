// traces/run_file.h - writing and reading .rdr runs: one header, then step outputs and findings.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>

#include "traces/finding.h"
#include "traces/header.h"
#include "traces/output.h"
#include "traces/trace_file.h"

namespace redecode {

class RunWriter {
 public:
  RunWriter(const std::filesystem::path& path, const RunHeader& header, WriterOptions options = {},
            bool overwrite = false);
  ~RunWriter();
  RunWriter(RunWriter&&) noexcept;
  void write(const StepOutput& output);
  void write(const Finding& finding);
  void flush();
  void close();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Exactly one of the two is set.
struct RunRecord {
  std::optional<StepOutput> output;
  std::optional<Finding> finding;
};

class RunReader {
 public:
  explicit RunReader(const std::filesystem::path& path);  // errors as TraceReader
  explicit RunReader(std::unique_ptr<ByteSource> source);
  ~RunReader();
  RunReader(RunReader&&) noexcept;
  const RunHeader& header() const;
  bool next(RunRecord& out);
  const FileSummary& summary() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Digest of tokens and logits of a step's output (probes and order left out); combined over a run
// in order it is the run's digest: equal digests mean equal bits in every row.
Digest digest_output(const StepOutput& output);

}  // namespace redecode
