#include "cli/serve_record.h"

#include <bit>
#include <chrono>
#include <utility>

#include "traces/error.h"
#include "traces/trace_file.h"

namespace redecode {

// The writer; a write that made the file grow wrote a chunk, and its time counts as that chunk's.
class ServeRecord::Target final : public TapTarget {
 public:
  Target(TraceWriter writer, Written& written) : writer_(std::move(writer)), written_(written) {}
  void write(const Step& step) override {
    timed([&] { writer_.write(step); });
  }
  void write(const StepOutput& output) override {
    timed([&] { writer_.write(output); });
  }
  void write(const Gap& gap) override {
    timed([&] { writer_.write(gap); });
  }
  void flush() override {
    timed([&] { writer_.flush(); });
  }
  void close() override {
    timed([&] { writer_.close(); });
    const std::lock_guard lock(written_.guard);
    written_.totals.digest = writer_.trace_digest();
  }

 private:
  template <class Act>
  void timed(const Act& act) {
    const auto start = std::chrono::steady_clock::now();
    act();
    const uint64_t bytes = writer_.bytes_written();
    if (bytes == bytes_) return;
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    const std::lock_guard lock(written_.guard);
    bytes_ = written_.totals.bytes = bytes;
    written_.chunk_seconds.add(taken.count());
  }

  TraceWriter writer_;
  Written& written_;
  uint64_t bytes_ = 0;
};

ServeRecord::ServeRecord(const std::filesystem::path& path, const TraceHeader& header, bool force,
                         const TapOptions& options)
    : ring_capacity_(std::bit_ceil(uint64_t{options.ring_records})) {
  if (!force && std::filesystem::exists(path))
    throw Error(ErrorCode::usage, "the file exists; --force replaces it", path.string());
  tap_ = std::make_unique<Tap>(
      std::make_unique<Target>(TraceWriter(path, header, {}, force), written_), options);
}

void ServeRecord::scheduled(const Step& step) {
  taken_.fetch_add(1, std::memory_order_relaxed);
  tap_->scheduled(step);
}

void ServeRecord::produced(const StepOutput& output) {
  taken_.fetch_add(1, std::memory_order_relaxed);
  tap_->produced(output);
}

void ServeRecord::close() { tap_->close(); }

ServeRecord::Totals ServeRecord::totals() const {
  const std::lock_guard lock(written_.guard);
  return written_.totals;
}

void ServeRecord::add_to(BackendMetrics& metrics) const {
  const uint64_t taken = taken_.load(std::memory_order_relaxed);
  const TapCounters counters = tap_->counters();
  metrics.recording = true;
  metrics.steps_recorded = counters.steps_written;
  metrics.outputs_recorded = counters.outputs_written;
  metrics.steps_dropped = counters.steps_dropped;
  metrics.outputs_dropped = counters.outputs_dropped;
  const uint64_t done = counters.steps_written + counters.outputs_written + counters.steps_dropped +
                        counters.outputs_dropped;
  metrics.ring_records = taken > done ? taken - done : 0;
  metrics.ring_capacity = ring_capacity_;
  const std::lock_guard lock(written_.guard);
  metrics.trace_bytes = written_.totals.bytes;
  metrics.chunk_seconds = written_.chunk_seconds;
}

}  // namespace redecode
