// recorder/ring/ring_file.h - RingFile: the ring of a process that has died, read from its file.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "recorder/ring/assembler.h"
#include "traces/byte_source.h"

namespace redecode {

// What the header of a ring file says, checked.
struct RingState {
  uint64_t ring_bytes = 0, head = 0, tail = 0;
  uint64_t pid = 0;
  uint32_t lane = 0;
  int64_t started_unix_us = 0;
  uint64_t started_ns = 0;
  bool keeps_last = false;
  uint64_t steps_seen = 0, steps_dropped = 0;
  // Lost at the end, without a loss record: there was no room for one.
  uint64_t pending_dropped = 0, pending_first = 0, pending_last = 0, pending_bytes = 0;
};

class RingFile {
 public:
  // Errors: corrupt (no ring, or a damaged header), version, limit, truncated; as open_file.
  explicit RingFile(std::unique_ptr<ByteSource> source);
  const RingState& state() const { return state_; }
  const std::string& name() const { return name_; }
  // What was committed and not given back, oldest first, in one piece. Cost: one copy of it.
  std::vector<uint8_t> contents();

 private:
  std::unique_ptr<ByteSource> source_;
  std::string name_;
  RingState state_;
};

struct DrainResult {
  uint64_t rings = 0, records = 0;
  uint64_t duplicates = 0;        // had reached the trace already
  uint64_t steps_seen = 0;        // by the producers, as their own counters say
  uint64_t unreadable_bytes = 0;  // behind a record that is not sound
};

// Everything in the rings that the trace does not hold yet, into `target`, in order. `next_step`:
// behind the trace's last step. Errors: as RingFile, but for a ring that is not there any more.
DrainResult drain_rings(std::span<const std::filesystem::path> rings, StepIndex next_step,
                        RecordTarget& target);

// The rings that the recording of `trace` left behind, as its breadcrumb file says; none without
// one. Errors: environment, when the process that records it is still alive.
std::vector<std::filesystem::path> rings_of(const std::filesystem::path& trace);

}  // namespace redecode
