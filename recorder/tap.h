// recorder/tap.h - Tap: takes steps and outputs off the engine's hot path and writes them to a
// trace.
//
// The engine thread copies each record into a bounded ring; one writer thread owns the file.
// Recording a step costs the engine one copy: no lock, no system call, and no allocation once the
// ring's slots have grown to the size of the records. Nothing is lost silently: every record is
// counted as written or dropped, steps that the ring had no room for are a Gap in the trace before
// the next step or at the end, and a failed file is reported on the next call and on close.
//
// scheduled, produced and close belong to one thread at a time; counters may be read from any.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

#include "recorder/spsc_ring.h"
#include "traces/error.h"
#include "traces/event.h"
#include "traces/output.h"
#include "traces/step.h"
#include "traces/trace_file.h"
#include "traces/traffic.h"

namespace redecode {

// Where the writer thread puts records. Called by that thread only; the destructor by the Tap's
// owner.
class TapTarget {
 public:
  virtual ~TapTarget() = default;
  virtual void write(const Step& step) = 0;
  virtual void write(const StepOutput& output) = 0;
  virtual void write(const Gap& gap) = 0;
  virtual void flush() = 0;
  virtual void close() = 0;  // not called after another call has thrown
};

std::unique_ptr<TapTarget> trace_target(TraceWriter writer);

enum class WhenFull : uint8_t {
  block,  // the engine waits: nothing is dropped
  drop,   // the step is left out, and its output with it; the trace then says a Gap. A step is
          // taken only with room for its output, so that no step stands there without one
};

struct TapOptions {
  uint32_t ring_records = 256;  // rounded up to a power of two; a step and its output are two
  WhenFull when_full = WhenFull::block;
  bool outputs = true;             // false records the schedule only
  uint32_t flush_every_steps = 0;  // 0: chunks reach the file as they fill
};

// Written means taken by the trace writer; what of that a broken file still yields, its reader
// says.
struct TapCounters {
  uint64_t steps_written = 0, outputs_written = 0;
  uint64_t steps_dropped = 0, outputs_dropped = 0;  // by a full ring or after an error
  uint64_t gaps_written = 0, steps_in_gaps = 0;     // of the dropped, those that the trace names
  StepIndex first_dropped = UINT64_MAX;             // step where the trace's first gap begins
};

class Tap final : public StepSink {
 public:
  // Starts the writer thread. Errors: usage (ring above 2^20 records), environment (no thread).
  explicit Tap(std::unique_ptr<TapTarget> target, const TapOptions& options = {});
  explicit Tap(TraceWriter writer, const TapOptions& options = {});
  ~Tap() override;  // closes; an error that was not yet reported is lost
  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;

  // Errors: the first error of the writer thread, again on every call after it; CHECK after close.
  void scheduled(const Step& step) override;
  void produced(const StepOutput& output) override;

  // Drains the ring, ends the file cleanly and joins the thread; the second call does nothing more.
  // Errors: the first error of the writer thread; the file is then as readable as it was at that
  // point.
  void close();

  TapCounters counters() const;

 private:
  enum class Kind : uint8_t { step, output, close };
  struct Record {
    Kind kind = Kind::step;
    Gap gap;  // before this record; its count is 0 where nothing was lost
    Step step;
    StepOutput output;
  };

  Record* step_slot();
  Record* slot();
  Record& slot_blocking();
  void throw_if_failed() const;
  void run_writer();
  template <class Act>
  bool attempt(const Act& act);
  void write(const Record& record);
  void write_gap(const Gap& gap);
  bool flush_due(const Record& record) const;
  void discard(const Record& record);
  void drop_step(StepIndex step);
  void leave_out(const Step& step);

  TapOptions options_;
  SpscRing<Record> ring_;
  std::unique_ptr<TapTarget> target_;
  // Of the engine thread.
  StepIndex gap_step_ = UINT64_MAX;  // the last step that was left out
  Gap gap_;                          // since the last step that was taken
  uint32_t outputs_due_ = 0;         // of steps that were taken; each has a slot kept for it
  bool closed_ = false;

  std::optional<Error> error_;  // set once by the writer, before failed_
  std::atomic<bool> failed_{false};
  std::atomic<uint64_t> steps_written_{0}, outputs_written_{0};
  std::atomic<uint64_t> steps_dropped_{0}, outputs_dropped_{0};
  std::atomic<uint64_t> gaps_written_{0}, steps_in_gaps_{0};
  std::atomic<uint64_t> first_dropped_{UINT64_MAX};
  std::thread writer_;  // last: starts when all else is ready
};

}  // namespace redecode
