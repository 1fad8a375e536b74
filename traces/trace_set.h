// traces/trace_set.h - rotated sets: one trace in several files of a folder, each complete by
// itself.
//
//   fleet.rdt/  manifest.json  00000000.rdt  00000001.rdt ...
//
// Every file opens with the header (SetPlace says which one it is) and a keyframe, so that old ones
// can be deleted and any one can be read alone. The manifest is a cache for people and tools: what
// it says follows from the files, and it is written anew, by rename, whenever a file is closed.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "traces/trace_file.h"

namespace redecode {

struct RotateOptions {
  uint64_t file_bytes = 0;  // a new file once one has this size; 0: never by size
  uint64_t file_us = 0;     // or once its steps span this time (Step::time_us, as read); 0: never
  uint32_t keep_files = 0;  // delete the oldest above this many; 0: keep all
  bool any() const { return file_bytes != 0 || file_us != 0; }
};

struct SetFile {
  std::string name;  // in the folder
  uint32_t number = 0;
  uint64_t size_bytes = 0;
  StepIndex first_step = 0;
  uint64_t steps = 0;
  uint64_t first_us = 0, last_us = 0;  // time_us of its steps
  FileEnd end = FileEnd::cut;
};

struct Manifest {
  std::string set;
  std::vector<SetFile> files;  // number ascending; numbers that are missing were deleted or lost
};

// The manifest as the files themselves tell it. Errors: missing, corrupt (files of two sets).
Manifest scan_set(const std::filesystem::path& folder);
std::string to_json(const Manifest& manifest);

// True for a folder and for a file named manifest.json: what TraceReader reads as a set.
bool is_set(const std::filesystem::path& path);

// A TraceWriter that starts a new file where `rotate` says. Without any rotation it writes the one
// file `path`; with rotation `path` is the folder, which it makes.
class TraceSetWriter {
 public:
  // Errors: as TraceWriter; usage when the folder holds a set already and not `overwrite`.
  TraceSetWriter(const std::filesystem::path& path, const TraceHeader& header,
                 const WriterOptions& options, const RotateOptions& rotate, bool overwrite);
  ~TraceSetWriter();
  TraceSetWriter(TraceSetWriter&&) noexcept;
  void write(const Step& step);  // a new file begins with a step
  void write(const StepOutput& output);
  void write(const Event& event);
  void write(const Gap& gap);
  void write(const Exchange& exchange);
  void flush();
  void sync();
  void close();
  Digest trace_digest() const;     // over all files
  uint64_t bytes_written() const;  // over all files
  uint64_t open_bytes() const;
  uint32_t files() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace redecode
