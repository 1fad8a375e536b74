// recorder/abi/recorder.h - Recorder: lanes, the thread that empties them into a trace, and what it
// all came to; behind rr_recorder.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "recorder/abi/lane.h"
#include "recorder/abi/trace_target.h"
#include "recorder/ring/assembler.h"
#include "traces/header.h"
#include "traces/trace_set.h"

namespace redecode {

struct RecorderOptions {
  std::filesystem::path path;
  std::filesystem::path ring_dir;  // empty: /dev/shm where it can be written, else beside path
  uint64_t ring_bytes = uint64_t{8} << 20;
  Policy policy = Policy::drop;
  uint32_t block_timeout_us = 0;
  bool overwrite = false;
  WriterOptions writer;
  RotateOptions rotate;
  uint32_t flush_ms = 1000;
  uint32_t sync_ms = 0;
  std::string sampling;
  std::string trigger;
  TraceHeader header;
};

class Recorder {
 public:
  // Errors: usage, missing, environment: as TraceSetWriter, Sampler and read_triggers.
  explicit Recorder(const RecorderOptions& options);
  ~Recorder();  // as close
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  Lane& open_lane();  // errors: environment
  void close_lane(Lane& lane);
  uint32_t request_id(std::string_view engine_id);
  void trigger();
  // False when it took longer than `timeout_ms`, or the file cannot be written.
  bool flush(uint32_t timeout_ms, bool sync);
  rr_stats stats() const;
  std::string error_text() const;
  // True when everything that was taken is in the trace. Ring files are left where it is not: what
  // they hold can be recovered.
  bool close();

 private:
  struct Producer {
    std::unique_ptr<Lane> lane;
    uint64_t position = 0;                 // read so far
    uint64_t books_position = UINT64_MAX;  // of the first record that waits for a step
    uint64_t sequence = 0;
    bool in_use = true;
  };

  void run();
  bool pass();
  bool drain(Producer& producer, uint64_t until);
  void drain_triggered();
  void pin_books(Producer& producer);
  void after_step();
  void give_back();
  void flush_chunk(bool sync);
  void flush_when_due(uint64_t now_ms);
  void fail(const std::string& text);
  void serve_flush_request();
  void count_files();
  std::filesystem::path ring_path(uint32_t lane) const;
  void write_breadcrumb() const;

  RecorderOptions options_;
  RecorderShared shared_;
  uint64_t started_ns_ = 0;
  TraceTarget target_;
  Assembler assembler_;

  mutable std::mutex mutex_;  // of what follows; never taken by a producer's record
  std::vector<std::unique_ptr<Producer>> producers_;
  std::string error_;
  bool closing_ = false, closed_ = false;
  uint64_t flush_asked_ = 0, flush_done_ = 0;
  bool flush_sync_ = false;
  std::condition_variable flushed_;
  rr_stats counts_{};  // of the consumer

  std::mutex ids_mutex_;
  std::map<std::string, uint32_t, std::less<>> ids_;
  uint32_t next_id_ = 0;
  static constexpr size_t kLeastSweep = 1024;
  size_t sweep_at_ = kLeastSweep;

  bool has_pins_ = false;
  uint64_t last_flush_ms_ = 0, last_sync_ms_ = 0;  // of the thread
  std::thread thread_;
};

// Reads RecorderOptions::trigger into `shared`. `signal` is the number of a signal to react to, 0
// for none. Errors: usage.
void read_triggers(std::string_view text, RecorderShared& shared, int& signal);

}  // namespace redecode
