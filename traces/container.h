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
#include <vector>

#include "traces/byte_source.h"
#include "traces/chunk_header.h"
#include "traces/trace_file.h"

namespace redecode {

using MessageWords = std::span<const uint64_t>;

// Which steps (runs: outputs) a record holds; count 0: none.
struct StepSpan {
  StepIndex first = 0;
  uint32_t count = 0;
};

// Where a chunk lies and what it holds: what an index says, and what a scan of chunk headers finds.
struct ChunkEntry {
  uint64_t offset_bytes = 0, size_bytes = 0;  // header and frame
  uint64_t number = 0;
  uint8_t kind = 0;  // a ChunkKind
  uint32_t record_count = 0;
  StepSpan steps;
  uint32_t stored_crc = 0;
  bool operator==(const ChunkEntry&) const = default;
};

class ContainerWriter {
 public:
  // Creates the file, locks it against a second writer and writes nothing yet. Errors: usage
  // (exists and not overwrite; another process writes it; options without meaning), missing (no
  // such folder), environment.
  ContainerWriter(const std::filesystem::path& path, FileKind kind, const WriterOptions& options,
                  bool overwrite);
  ~ContainerWriter();  // writes the open chunk if it can, and no end
  ContainerWriter(ContainerWriter&&) noexcept;

  // All errors below: environment with the system's words (disk full); the first one is kept and
  // thrown by every later call, for what follows a hole in a file could not be read. After it the
  // file is cut back to its last whole chunk where the system allows.
  void write_header(
      MessageWords message);  // first, once; the file's uuid is a digest of the message
  void write_schema(MessageWords message);  // right after the header, at most once
  // True where the next record opens a chunk.
  bool starts_chunk() const;
  void throw_if_failed() const;  // the first error again, if there was one
  // False where a record of this size must go into a new chunk: call flush() and encode it again.
  bool fits(MessageWords message) const;
  // Error limit: larger than a chunk may be, or than what the open one has room for.
  void append(MessageWords message, StepSpan steps = {});
  void flush();  // closes the open chunk and hands it to the operating system
  void sync();   // flush, then waits until the disk has it (fdatasync)
  // Flush, index chunk, end chunk, sync if the options say so, close the file. `index` is the
  // record of the index chunk, made from entries(); empty: no index chunk.
  void close(MessageWords index, MessageWords end_record);
  const std::vector<ChunkEntry>& entries() const;  // of the chunks written so far
  uint64_t chunks() const;   // written so far, header and schema chunk included
  uint64_t records() const;  // appended so far, the header included, schema and index left out
  uint64_t payload_bytes() const;  // of the open chunk
  uint64_t bytes_written() const;
  Digest last_chunk() const;  // XXH3 of all bytes of the last chunk written

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A stretch of a file that could not be read, when salvaging.
struct Damage {
  uint64_t offset_bytes = 0, size_bytes = 0;
  // The chunks that are missing, by number, inclusive; last_chunk < first_chunk: none is, the bytes
  // belong to no chunk of this file. At the end of a file more than first_chunk may be missing.
  uint64_t first_chunk = 0, last_chunk = 0;
  std::string reason;  // of the first fault
};

// One record as read; valid until the next call.
struct RecordView {
  MessageWords message;
  bool starts_chunk = false;
  bool in_end_chunk = false;
  std::optional<Damage> damage;  // set: no message; what was skipped before the next record
};

class ContainerReader {
 public:
  // Reads and checks the header chunk. Errors: corrupt (not a redecode file, or damaged), truncated
  // (ends inside the header chunk), version, limit, usage (a run where a trace is expected, or the
  // reverse).
  ContainerReader(std::unique_ptr<ByteSource> source, FileKind expected, ReadOptions options = {});
  ~ContainerReader();
  ContainerReader(ContainerReader&&) noexcept;
  // The header record first; schema and index chunks are passed over. False at the end of the
  // readable part; end() then says how it ended. Errors: corrupt, limit, version: each with file,
  // chunk and byte offset; when salvaging only those of the header chunk.
  bool next(RecordView& out);
  // Continues at the first data chunk of `entries` that holds `step` or a later one. `entries` come
  // from an index or from scan_chunks; the chunk itself is checked as ever, but for its link to the
  // one before. False, and nothing is changed, when there is none or when the entries that decide
  // are not what the chunks' own headers say.
  bool seek(StepIndex step, std::span<const ChunkEntry> entries);
  // Passes over what is left of the current chunk: its records make no sense.
  void skip_chunk();
  FileEnd end() const;
  uint64_t cut_offset_bytes() const;
  uint64_t file_bytes() const;
  uint64_t chunks() const;         // read so far, schema chunk included, index chunk left out
  uint64_t records() const;        // returned so far
  uint64_t payload_bytes() const;  // uncompressed, of the chunks read so far
  const FileUuid& uuid() const;
  Digest last_chunk() const;  // XXH3 of all bytes of the last chunk read that is no index or end
  // "FILE: chunk 3 at byte 4096": where the last record came from.
  std::string context() const;
  ByteSource& source();
  bool has_skipped() const;  // a seek or damage: totals of the end record cannot be compared

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// All whole chunks of the file with a sound header, in file order, by a scan from the start;
// payloads are not looked at. What is no chunk of this file (damaged, of another file, a number
// again) is passed over. Cost: one small read a chunk, and a read of what is passed over.
std::vector<ChunkEntry> scan_chunks(ByteSource& source);

// Where the next chunk's magic stands at `offset_bytes` or behind it, in steps of 8: what follows
// need not be a chunk.
std::optional<uint64_t> next_chunk_magic(ByteSource& source, uint64_t offset_bytes);

// The record of the file's schema or index chunk, checked and unpacked; empty: there is none.
// Errors: corrupt.
std::vector<uint64_t> read_schema_record(ByteSource& source);
std::vector<uint64_t> read_index_record(ByteSource& source);

std::string_view to_text(FileKind kind);  // "trace" or "run"

// Which kind of file this is, from its first bytes. Errors: corrupt, truncated, version.
FileKind peek_file_kind(ByteSource& source);

}  // namespace redecode
