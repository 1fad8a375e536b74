// cli/serve_record.h - ServeRecord: the trace of a serving engine, and what /metrics says of its
// writing.
#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>

#include "recorder/http/histogram.h"
#include "recorder/http/text_backend.h"
#include "recorder/tap.h"
#include "traces/digest.h"
#include "traces/header.h"

namespace redecode {

class ServeRecord {
 public:
  struct Totals {
    uint64_t bytes = 0;
    Digest digest = 0;  // of all steps; after close
  };

  // Errors: as TraceWriter and Tap; usage when the file exists, unless `force`.
  ServeRecord(const std::filesystem::path& path, const TraceHeader& header, bool force,
              const TapOptions& options);

  // From one thread; errors as Tap.
  void scheduled(const Step& step);
  void produced(const StepOutput& output);
  void close();

  // From any thread.
  void add_to(BackendMetrics& metrics) const;
  Totals totals() const;

 private:
  class Target;
  // Of the writer thread, for others.
  struct Written {
    mutable std::mutex guard;
    Totals totals;
    Histogram chunk_seconds;
  };

  const uint64_t ring_capacity_;
  Written written_;
  std::atomic<uint64_t> taken_{0};  // records given to the tap
  std::unique_ptr<Tap> tap_;        // last: its thread uses the rest
};

}  // namespace redecode
