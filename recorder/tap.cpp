#include "recorder/tap.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>

#include "traces/check.h"

namespace redecode {
namespace {

constexpr uint32_t kMaxRingRecords = 1u << 20;

uint32_t checked_ring(uint32_t records) {
  if (records > kMaxRingRecords)
    throw Error(ErrorCode::usage,
                "A tap's ring holds at most " + std::to_string(kMaxRingRecords) + " records");
  return records;
}

// Waits longer the longer nothing happens: yields first, then sleeps up to a millisecond.
class Backoff {
 public:
  void wait() {
    if (turns_ < 16) {
      ++turns_;
      std::this_thread::yield();
      return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(sleep_us_));
    sleep_us_ = std::min(sleep_us_ * 2, 1000);
  }

 private:
  int turns_ = 0;
  int sleep_us_ = 32;
};

template <class Item>
uint64_t bytes_of(const std::vector<Item>& items) {
  return items.size() * sizeof(Item);
}

uint64_t raw_bytes(const Step& step) {
  return sizeof(StepIndex) + bytes_of(step.departures) + bytes_of(step.arrivals) +
         bytes_of(step.page_changes) + bytes_of(step.rows);
}

uint64_t raw_bytes(const StepOutput& output) {
  uint64_t bytes = sizeof(StepIndex) + bytes_of(output.rows) + output.order.size();
  for (const RowOutput& row : output.rows) bytes += bytes_of(row.top) + bytes_of(row.logits);
  for (const OpProbe& op : output.ops)
    bytes += sizeof op + op.op.size() + bytes_of(op.row_digests) + op.values.size();
  return bytes;
}

class TraceTarget final : public TapTarget {
 public:
  explicit TraceTarget(TraceWriter writer) : writer_(std::move(writer)) {}
  void write(const Step& step) override { writer_.write(step); }
  void write(const StepOutput& output) override { writer_.write(output); }
  void write(const Gap& gap) override { writer_.write(gap); }
  void flush() override { writer_.flush(); }
  void close() override { writer_.close(); }

 private:
  TraceWriter writer_;
};

}  // namespace

std::unique_ptr<TapTarget> trace_target(TraceWriter writer) {
  return std::make_unique<TraceTarget>(std::move(writer));
}

Tap::Tap(std::unique_ptr<TapTarget> target, const TapOptions& options)
    : options_(options), ring_(checked_ring(options.ring_records)), target_(std::move(target)) {
  REDECODE_CHECK(target_ != nullptr);
  try {
    writer_ = std::thread([this] { run_writer(); });
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::environment, std::string("No thread for the recorder: ") + error.what());
  }
}

Tap::Tap(TraceWriter writer, const TapOptions& options)
    : Tap(trace_target(std::move(writer)), options) {}

Tap::~Tap() {
  try {
    close();
  } catch (const Error&) {  // close has been the place to ask
  }
}

void Tap::throw_if_failed() const {
  if (failed_.load(std::memory_order_acquire)) throw Error(*error_);
}

// A slot for a step, where its output and those that are still due fit as well.
Tap::Record* Tap::step_slot() {
  const uint32_t due = options_.outputs ? outputs_due_ + 1 : 0;
  if (options_.when_full == WhenFull::drop && ring_.free_slots() < due + 1) return nullptr;
  return slot();
}

Tap::Record* Tap::slot() {
  if (Record* record = ring_.free_slot()) return record;
  return options_.when_full == WhenFull::drop ? nullptr : &slot_blocking();
}

Tap::Record& Tap::slot_blocking() {
  for (Backoff backoff;; backoff.wait())
    if (Record* record = ring_.free_slot()) return *record;
}

void Tap::scheduled(const Step& step) {
  REDECODE_CHECK(!closed_);
  if (failed_.load(std::memory_order_acquire)) drop_step(step.index);
  throw_if_failed();
  Record* record = step_slot();
  if (record == nullptr) return leave_out(step);
  record->kind = Kind::step;
  record->gap = std::exchange(gap_, {});
  record->step = step;
  if (options_.outputs && !step.rows.empty()) ++outputs_due_;
  ring_.commit();
}

void Tap::produced(const StepOutput& output) {
  REDECODE_CHECK(!closed_);
  if (!options_.outputs) return throw_if_failed();
  if (failed_.load(std::memory_order_acquire)) ++outputs_dropped_;
  throw_if_failed();
  const bool lost_step = output.step == gap_step_;
  if (!lost_step && outputs_due_ != 0) --outputs_due_;
  Record* record = lost_step ? nullptr : slot();
  if (record == nullptr) {
    ++outputs_dropped_;
    if (gap_.count != 0) gap_.bytes += raw_bytes(output);
    return;
  }
  record->kind = Kind::output;
  record->gap = {};
  record->output = output;
  ring_.commit();
}

void Tap::close() {
  if (!closed_) {
    closed_ = true;
    Record& record = slot_blocking();
    record.kind = Kind::close;
    record.gap = std::exchange(gap_, {});
    ring_.commit();
    writer_.join();
    target_.reset();
  }
  throw_if_failed();
}

TapCounters Tap::counters() const {
  return {.steps_written = steps_written_.load(),
          .outputs_written = outputs_written_.load(),
          .steps_dropped = steps_dropped_.load(),
          .outputs_dropped = outputs_dropped_.load(),
          .gaps_written = gaps_written_.load(),
          .steps_in_gaps = steps_in_gaps_.load(),
          .first_dropped = first_dropped_.load()};
}

void Tap::run_writer() {
  for (;;) {
    const Record* record = ring_.filled_slot();
    for (Backoff backoff; record == nullptr; record = ring_.filled_slot()) backoff.wait();
    const bool last = record->kind == Kind::close;
    const bool written = attempt([&] { write(*record); });
    if (!written) discard(*record);
    if (written && flush_due(*record)) attempt([&] { target_->flush(); });
    if (last) return;
    ring_.pop();
  }
}

// Runs `act` unless something has failed before; false when it did not succeed.
template <class Act>
bool Tap::attempt(const Act& act) {
  if (error_) return false;
  try {
    act();
    return true;
  } catch (const Error& error) {
    error_.emplace(error);
  } catch (const std::exception& error) {
    error_.emplace(ErrorCode::environment, std::string("The recorder failed: ") + error.what());
  }
  failed_.store(true, std::memory_order_release);
  return false;
}

void Tap::write_gap(const Gap& gap) {
  target_->write(gap);
  ++gaps_written_;
  steps_in_gaps_ += gap.count;
}

void Tap::write(const Record& record) {
  if (record.gap.count != 0) write_gap(record.gap);
  switch (record.kind) {
    case Kind::step:
      target_->write(record.step);
      ++steps_written_;
      break;
    case Kind::output:
      target_->write(record.output);
      ++outputs_written_;
      break;
    case Kind::close:
      target_->close();
      break;
  }
}

bool Tap::flush_due(const Record& record) const {
  if (options_.flush_every_steps == 0) return false;
  if (record.kind != (options_.outputs ? Kind::output : Kind::step)) return false;
  const uint64_t records = options_.outputs ? outputs_written_.load() : steps_written_.load();
  return records % options_.flush_every_steps == 0;
}

void Tap::discard(const Record& record) {
  if (record.kind == Kind::step) drop_step(record.step.index);
  if (record.kind == Kind::output) ++outputs_dropped_;
}

void Tap::leave_out(const Step& step) {
  gap_step_ = step.index;
  if (gap_.count == 0) gap_.first = step.index;
  gap_.last = step.index;
  ++gap_.count;
  gap_.bytes += raw_bytes(step);
  gap_.causes |= kGapRingFull;
  drop_step(step.index);
}

void Tap::drop_step(StepIndex step) {
  ++steps_dropped_;
  uint64_t first = first_dropped_.load();
  while (step < first && !first_dropped_.compare_exchange_weak(first, step)) {
  }
}

}  // namespace redecode
