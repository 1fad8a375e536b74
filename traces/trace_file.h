// traces/trace_file.h - writing and reading .rdt traces: one header, then steps, with their
// outputs.
//
// Bytes: docs/trace-format.md. A file is usable up to its last whole chunk whatever happened to its
// writer; readers check every length before they allocate.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "traces/header.h"
#include "traces/output.h"
#include "traces/step.h"

namespace redecode {

class ByteSource;  // traces/byte_source.h

struct WriterOptions {
  uint64_t chunk_bytes = uint64_t{1} << 20;  // uncompressed; a chunk closes when it passes this
  uint32_t chunk_steps = 1024;               // or holds this many steps
  int zstd_level = 1;
};

// How a file ended.
enum class FileEnd : uint8_t {
  clean,  // its end record was read
  cut,    // bytes stop inside a chunk, or before the end record
};

struct FileSummary {
  uint64_t file_bytes = 0, chunks = 0, records = 0, payload_bytes = 0;
  uint64_t steps = 0, rows = 0, outputs = 0;  // rows: of steps in a trace, of outputs in a run
  uint64_t findings = 0;                      // runs only
  FileEnd end = FileEnd::cut;
  uint64_t cut_offset_bytes = 0;  // where the unreadable tail begins; file size when clean
  Digest trace_digest = 0;        // of all steps; in a run, of the trace as its header says
  Digest run_digest = 0;          // runs only: digest_output of all outputs, combined in order
};

class TraceWriter {
 public:
  // Creates the file; refuses to replace one unless `overwrite`.
  // Errors: environment (cannot create, disk full: on any later call as well), missing (no such
  // folder).
  TraceWriter(const std::filesystem::path& path, const TraceHeader& header,
              WriterOptions options = {}, bool overwrite = false);
  ~TraceWriter();  // closes without the end record if close was not called
  TraceWriter(TraceWriter&&) noexcept;
  void write(const Step& step);
  void write(const StepOutput& output);
  void flush();  // closes the open chunk and hands it to the operating system
  void close();  // flush and end record
  Digest trace_digest() const;
  uint64_t bytes_written() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One record of a trace in file order: exactly one of the two is set.
struct TraceRecord {
  std::optional<Step> step;
  std::optional<StepOutput> output;
};

class TraceReader {
 public:
  // Reads and checks the header chunk. Errors: missing, corrupt, truncated (no whole header chunk),
  // version (names both versions), limit; each with file and byte offset.
  explicit TraceReader(const std::filesystem::path& path);
  explicit TraceReader(std::unique_ptr<ByteSource> source);
  ~TraceReader();
  TraceReader(TraceReader&&) noexcept;
  const TraceHeader& header() const;
  // False at the end of the readable part; then summary().end says how the file ended.
  // Errors: corrupt (bad checksum or order in a whole chunk), naming offset and chunk number.
  bool next(TraceRecord& out);
  const FileSummary& summary() const;  // complete once next returned false
  // "FILE: chunk 3 at byte 4096": where the last record came from.
  std::string context() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A whole trace in memory, for replays that look back.
struct Trace {
  TraceHeader header;
  std::vector<Step> steps;
  // outputs[i] belongs to steps[i]; may be shorter than steps or empty. A step without an output
  // before one with an output has a StepOutput without rows.
  std::vector<StepOutput> outputs;
  Digest digest = 0;
  FileEnd end = FileEnd::clean;
  uint64_t cut_offset_bytes = 0;
};
// Also checks the steps against each other and the header: see validate.h. Errors: as TraceReader,
// and corrupt (naming step and row). A cut trace is no error: `end` says so.
Trace load_trace(const std::filesystem::path& path);

// Digest of one step's value; a trace's digest combines these in order, starting from 0.
Digest digest_step(const Step& step);

}  // namespace redecode
