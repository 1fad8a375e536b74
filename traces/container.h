// traces/container.h - the chunked file under traces and runs: records in, records out, nothing of
// their meaning.
//
// A record is one Cap'n Proto message: unpacked, one segment, as 64-bit words with its segment
// table. Bytes: docs/trace-format.md. A file is a chain of checksummed chunks; every whole chunk is
// readable whatever follows it. Records of a chunk may depend on earlier ones of the same chunk and
// on the header record only, so encoders start anew where starts_chunk() says so.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "traces/byte_source.h"
#include "traces/chunk_header.h"
#include "traces/trace_file.h"

namespace redecode {

using MessageWords = std::span<const uint64_t>;

class ContainerWriter {
 public:
  // Creates the file and writes nothing yet. Errors: usage (exists and not overwrite; options
  // without meaning), missing (no such folder), environment.
  ContainerWriter(const std::filesystem::path& path, FileKind kind, const WriterOptions& options,
                  bool overwrite);
  ~ContainerWriter();  // writes the open chunk if it can, and no end
  ContainerWriter(ContainerWriter&&) noexcept;

  // All errors below: environment with the system's words (disk full); the first one is kept and
  // thrown by every later call, for what follows a hole in a file could not be read.
  void write_header(
      MessageWords message);  // first, once; the file's uuid is a digest of the message
  // True where the next record opens a chunk.
  bool starts_chunk() const;
  // False where a record of this size must go into a new chunk: call flush() and encode it again.
  bool fits(MessageWords message) const;
  // Error limit: larger than a chunk may be. CHECK: fits(message). `step` if the record is a step
  // of a trace or an output of a run.
  void append(MessageWords message, std::optional<StepIndex> step);
  void flush();  // closes the open chunk and hands it to the operating system
  void close(MessageWords end_record);  // flush, end chunk, close the file
  uint64_t chunks() const;              // written so far, the header chunk included
  uint64_t records() const;             // appended so far, the header included
  uint64_t bytes_written() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One record as read; valid until the next call.
struct RecordView {
  MessageWords message;
  bool starts_chunk = false;
  bool in_end_chunk = false;
};

class ContainerReader {
 public:
  // Reads and checks the header chunk. Errors: corrupt (not a redecode file, or damaged), truncated
  // (ends inside the header chunk), version, limit, usage (a run where a trace is expected, or the
  // reverse).
  ContainerReader(std::unique_ptr<ByteSource> source, FileKind expected);
  ~ContainerReader();
  ContainerReader(ContainerReader&&) noexcept;
  // The header record first. False at the end of the readable part; end() then says how it ended.
  // Errors: corrupt, limit, version: each with file, chunk and byte offset.
  bool next(RecordView& out);
  FileEnd end() const;
  uint64_t cut_offset_bytes() const;
  uint64_t file_bytes() const;
  uint64_t chunks() const;         // read so far
  uint64_t records() const;        // returned so far
  uint64_t payload_bytes() const;  // uncompressed, of the chunks read so far
  const FileUuid& uuid() const;
  // "FILE: chunk 3 at byte 4096": where the last record came from.
  std::string context() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::string_view to_text(FileKind kind);  // "trace" or "run"

// Which kind of file this is, from its first bytes. Errors: corrupt, truncated, version.
FileKind peek_file_kind(ByteSource& source);

}  // namespace redecode
