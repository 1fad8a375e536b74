#include "recorder/abi/trace_target.h"

namespace redecode {

void TraceTarget::take(const Step& step) {
  if (all_) {
    writer_.write(step);
    ++steps_;
    return;
  }
  step_ = step;
  if (!sampler_.apply(step_)) {
    ++skipped_;
    if (!skipping_)
      skipping_ = Gap{.first = step.index,
                      .last = step.index,
                      .count = 0,
                      .bytes = 0,
                      .causes = kGapNotSampled};
    skipping_->last = step.index;
    ++skipping_->count;
    return;
  }
  write_skipped();
  writer_.write(step_);
  ++steps_;
}

void TraceTarget::take(const StepOutput& output) {
  if (all_) {
    writer_.write(output);
  } else {
    output_ = output;
    if (!sampler_.apply(output_)) return;
    writer_.write(output_);
  }
  ++outputs_;
}

void TraceTarget::take(const Event& event) {
  if (event.kind == EventKind::registered) sampler_.name(event.request, event.text);
  writer_.write(event);
  ++events_;
}

void TraceTarget::take(const Gap& gap) {
  write_skipped();
  writer_.write(gap);
  ++gaps_;
}

void TraceTarget::write_skipped() {
  if (!skipping_) return;
  writer_.write(*skipping_);
  ++gaps_;
  skipping_.reset();
}

void TraceTarget::finish() { write_skipped(); }

}  // namespace redecode
