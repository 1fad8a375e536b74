// recorder/ring/ring_reader.h - records of a ring, checked: nothing in them is trusted, for a ring
// may come from a dead process.
#pragma once
#include <cstdint>
#include <span>

#include "recorder/ring/ring_record.h"
#include "traces/event.h"
#include "traces/output.h"
#include "traces/step.h"

namespace redecode {

struct RawRecord {
  RecordHead head;
  std::span<const uint8_t> bytes;  // all of it
};

// Takes the first record off `bytes`. False at the end of them, and where no sound record begins:
// then `bytes` is not empty. Sequence numbers are for the caller to check.
bool take_record(std::span<const uint8_t>& bytes, RawRecord& out);

// A clock reading as time since the recording began: 0 where there is none or it lies before that.
uint64_t since_start_us(uint64_t time_ns, uint64_t started_ns);

// Each fills all of `out` from a record of its kind; false when the record is not sound. Vectors
// keep their capacity.
bool read_step(const RawRecord& record, uint64_t started_ns, Step& out);  // books are left alone
bool read_arrival(const RawRecord& record, Arrival& out);
bool read_departure(const RawRecord& record, Departure& out);
bool read_page(const RawRecord& record, PageChange& out);
bool read_event(const RawRecord& record, uint64_t started_ns, Event& out);
// `step` tells request and position of rows that do not say them; may be null.
bool read_outputs(const RawRecord& record, const Step* step, StepOutput& out);
bool read_loss(const RawRecord& record, LossRecord& out);

}  // namespace redecode
