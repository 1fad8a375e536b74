// recorder/abi/trace_target.h - TraceTarget: the records of a recorder, sampled and written to its
// trace.
#pragma once
#include <optional>

#include "recorder/ring/assembler.h"
#include "recorder/sampler.h"
#include "traces/trace_set.h"

namespace redecode {

class TraceTarget final : public RecordTarget {
 public:
  TraceTarget(TraceSetWriter writer, Sampler sampler)
      : writer_(std::move(writer)), sampler_(std::move(sampler)), all_(sampler_.keeps_all()) {}
  void take(const Step& step) override;
  void take(const StepOutput& output) override;
  void take(const Event& event) override;
  void take(const Gap& gap) override;
  void finish();  // says the last window's gap

  TraceSetWriter& writer() { return writer_; }
  const TraceSetWriter& writer() const { return writer_; }
  uint64_t steps() const { return steps_; }
  uint64_t steps_skipped() const { return skipped_; }
  uint64_t outputs() const { return outputs_; }
  uint64_t events() const { return events_; }
  uint64_t gaps() const { return gaps_; }

 private:
  void write_skipped();

  TraceSetWriter writer_;
  Sampler sampler_;
  bool all_;
  Step step_;
  StepOutput output_;
  std::optional<Gap> skipping_;  // steps outside the window since the last one inside
  uint64_t steps_ = 0, skipped_ = 0, outputs_ = 0, events_ = 0, gaps_ = 0;
};

}  // namespace redecode
