// traces/event.h - Event and Gap: what a trace says beside steps and outputs.
//
// Neither takes part in the trace's digest: two recordings of the same steps are the same trace,
// whatever was noted beside them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "traces/step.h"

namespace redecode {

enum class EventKind : uint8_t {
  registered,        // `request` got its number; text: the engine's own id, unless redacted
  queued,            // `request` reached the engine and waits
  kv_handed_over,    // KV of `request` came from another instance: a first page, b pages
  blocks_allocated,  // for `request`: a first block, b blocks
  blocks_freed,      // a first block, b blocks
  blocks_copied,     // a from, b to
  blocks_shared,     // `request` uses block a, which b users now have
  environment,       // text: "NAME=value" as changed
  note,              // text: for people
};

// Something that happened before step `before_step` was scheduled.
struct Event {
  StepIndex before_step = 0;
  uint64_t time_us = 0;  // as Step::time_us
  EventKind kind = EventKind::note;
  RequestId request = kNoRequest;
  uint32_t a = 0, b = 0;  // see EventKind
  std::string text;
  bool operator==(const Event&) const = default;
};

// Why steps are missing; bits of Gap::causes.
enum GapCause : uint32_t {
  kGapRingFull = 1u << 0,     // the recorder's ring had no room: the disk or the consumer is slow
  kGapWriteFailed = 1u << 1,  // the file could not be written: disk full
  kGapKilled = 1u << 2,       // the recording process died before they reached the file
  kGapDamaged = 1u << 3,      // a chunk was damaged
  kGapFileMissing = 1u << 4,  // a file of the set is missing
  kGapNotSampled = 1u << 5,   // left out on purpose: a step window or a trigger
  kGapOverwritten = 1u << 6,  // keep-last: older steps made room for newer ones
  kGapCutOut = 1u << 7,       // taken out by `redecode trace cut`
  kGapRecordTooLarge = 1u << 8,  // a record that fits no chunk or no ring
};

// Steps that were run and are not in the trace. The steps after a gap begin where `last` + 1 says.
struct Gap {
  StepIndex first = 0, last = 0;  // inclusive
  uint64_t count = 0;             // of steps; last - first + 1 where all are known to be missing
  uint64_t bytes = 0;             // of raw or stored records that went with them; 0 if not known
  uint32_t causes = 0;            // GapCause bits
  bool operator==(const Gap&) const = default;
};

std::string_view to_text(EventKind);
bool from_text(std::string_view text, EventKind& out);
// "ring full, write failed": the causes in words; "unknown" for none.
std::string gap_causes_text(uint32_t causes);
// "steps 120..180 (61 steps, 81,740 bytes) are missing: ring full".
std::string to_text(const Gap& gap);

}  // namespace redecode
