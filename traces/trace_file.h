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

#include "traces/event.h"
#include "traces/exchange.h"
#include "traces/header.h"
#include "traces/keyframe.h"
#include "traces/output.h"
#include "traces/step.h"

namespace redecode {

class ByteSource;  // traces/byte_source.h

// How steps lie in a file; either reads back as the same values.
enum class StepLayout : uint8_t {
  rows,     // one record a step: readable by eye, and by readers of format 1.0
  columns,  // one record for all steps of a chunk, a column a property: about half the size
};

struct WriterOptions {
  uint64_t chunk_bytes = uint64_t{1} << 20;  // uncompressed; a chunk closes when it passes this
  uint32_t chunk_steps = 1024;               // or holds this many steps
  int zstd_level = 0;                        // 0: 3 for a trace whose steps are rows, else 1
  StepLayout layout = StepLayout::rows;
  bool schema = true;  // embed the compiled schema
  bool index = true;   // write the index on close
  bool sync_on_close = false;
};

struct ReadOptions {
  // A damaged chunk is skipped and reported instead of thrown: the reader goes on at the next chunk
  // of the same file whose header and payload are sound.
  bool salvage = false;
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
  uint64_t events = 0, exchanges = 0;         // traces only
  uint64_t gaps = 0, steps_lost = 0;          // gap records, and the steps that they count
  uint64_t damaged_chunks = 0;                // skipped, when salvaging
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
  void write(const Event& event);
  void write(const Gap& gap);  // steps after it begin with gap.last + 1
  void write(const Exchange& exchange);
  void flush();  // closes the open chunk and hands it to the operating system
  void sync();   // flush, then waits for the disk
  void close();  // flush, index and end record
  // Continues the schedule of another file: what was running there before this one's first step.
  // Before the first write, at most once.
  void restore(const Keyframe& keyframe);
  Keyframe keyframe() const;  // after all that was written
  Digest trace_digest() const;
  uint64_t bytes_written() const;
  uint64_t open_bytes() const;  // of the chunk that is not closed yet, uncompressed, about
  std::string id() const;       // the file's, hex
  Digest last_chunk() const;    // for SetPlace::previous

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One record of a trace in file order: exactly one of these is set.
struct TraceRecord {
  std::optional<Step> step;
  std::optional<StepOutput> output;
  std::optional<Event> event;
  std::optional<Gap> gap;
  std::optional<Exchange> exchange;
};

class TraceReader {
 public:
  // Reads and checks the header chunk. Errors: missing, corrupt, truncated (no whole header chunk),
  // version (names both versions), limit; each with file and byte offset.
  // A folder or a manifest.json is a rotated set (trace_set.h), read as one trace.
  explicit TraceReader(const std::filesystem::path& path, ReadOptions options = {});
  explicit TraceReader(std::unique_ptr<ByteSource> source, ReadOptions options = {});
  ~TraceReader();
  TraceReader(TraceReader&&) noexcept;
  const TraceHeader& header() const;
  std::string id() const;  // the file's (the first one's of a set), hex
  // False at the end of the readable part; then summary().end says how the file ended.
  // Errors: corrupt (bad checksum or order in a whole chunk), naming offset and chunk number.
  // When salvaging, a damaged chunk or a missing file of a set comes as a Gap with what is known of
  // it; all records after it are whole.
  bool next(TraceRecord& out);
  // Continues at `step`, or at the first one behind it. Totals and digests cover only what is read.
  // False when there is none.
  bool seek(StepIndex step);
  // Before the next record: what runs, and where. Of the last chunk's keyframe after a gap or seek.
  const ScheduleState& state() const;
  // What ran before the first step, as the first keyframe says. Once next was called.
  const Keyframe& start() const;
  // What was passed over when salvaging, one sentence each: file, byte, reason.
  const std::vector<std::string>& damage() const;
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
  std::vector<Event> events;
  std::vector<Gap> gaps;  // a step after a gap need not follow the one before it
  std::vector<Exchange> exchanges;
  Keyframe start;  // before steps.front(); a trace that was cut out of another may not start empty
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
