#include "recorder/ring/assembler.h"

#include <algorithm>

namespace redecode {

Taken Assembler::take(const RawRecord& record) {
  const auto as = [](bool sound) { return sound ? Taken::done : Taken::unsound; };
  switch (record.head.kind) {
    case RecordKind::step:
      return take_step(record);
    case RecordKind::outputs:
      return take_outputs(record);
    case RecordKind::loss:
      return take_loss(record);
    case RecordKind::arrival: {
      Arrival arrival;
      if (!read_arrival(record, arrival)) return Taken::unsound;
      step_.arrivals.push_back(arrival);
      return Taken::done;
    }
    case RecordKind::departure: {
      Departure departure;
      if (!read_departure(record, departure)) return Taken::unsound;
      step_.departures.push_back(departure);
      return Taken::done;
    }
    case RecordKind::page: {
      PageChange change;
      if (!read_page(record, change)) return Taken::unsound;
      step_.page_changes.push_back(change);
      return Taken::done;
    }
    case RecordKind::event: {
      const bool sound = read_event(record, started_ns_, event_);
      if (sound) target_.take(event_);
      return as(sound);
    }
  }
  return Taken::unsound;
}

Taken Assembler::take_step(const RawRecord& record) {
  has_step_ = false;
  if (!read_step(record, started_ns_, step_)) return Taken::unsound;
  if (knows_expected_ && step_.index < expected_) return Taken::unsound;
  if (!knows_expected_) expect(step_.index);
  if (step_.index > expected_) say_gap(step_.index);
  target_.take(step_);
  step_.departures.clear();
  step_.arrivals.clear();
  step_.page_changes.clear();
  expected_ = step_.index + 1;
  has_step_ = true;
  return Taken::done;
}

Taken Assembler::take_outputs(const RawRecord& record) {
  if (record.bytes.size() < sizeof(OutputsRecord)) return Taken::unsound;
  const bool of_last =
      has_step_ && read_outputs(record, &step_, output_) && output_.step == step_.index;
  if (!of_last && !read_outputs(record, nullptr, output_)) return Taken::unsound;
  if (!knows_expected_ || output_.step >= expected_) {
    // Its step was lost, if a loss says so; else it has not come yet.
    if (output_.step >= loss_until_) return Taken::held;
    return Taken::done;
  }
  target_.take(output_);
  return Taken::done;
}

Taken Assembler::take_loss(const RawRecord& record) {
  LossRecord loss;
  if (!read_loss(record, loss)) return Taken::unsound;
  loss_causes_ |= loss.causes;
  loss_bytes_ += loss.bytes;
  if (loss.steps == 0) return Taken::done;
  if (!knows_expected_) expect(loss.first);
  loss_until_ = std::max(loss_until_, loss.last + 1);
  step_.arrivals.clear();
  step_.page_changes.clear();
  return Taken::done;
}

void Assembler::say_gap(StepIndex until) {
  const uint32_t causes = loss_until_ > expected_ ? loss_causes_ : jump_causes_;
  target_.take(Gap{.first = expected_,
                   .last = until - 1,
                   .count = until - expected_,
                   .bytes = loss_bytes_,
                   .causes = causes});
  ++gaps_;
  expected_ = until;
  loss_causes_ = 0;
  loss_bytes_ = 0;
}

void Assembler::finish() {
  if (knows_expected_ && loss_until_ > expected_) say_gap(loss_until_);
}

}  // namespace redecode
